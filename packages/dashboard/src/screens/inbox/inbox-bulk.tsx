// Answers several items of the inbox at once.
//
//   - Every action that is to be approved is shown whole once more before it is approved, to its last line.
//   - Items are answered one by one. An item that could not be answered stays, with the reason.

import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState, type RefObject } from "react";
import { call, toError } from "../../api/client.ts";
import type { OpenItem } from "../../api/open-items.ts";
import { LongText } from "../../parts/long-text.tsx";
import { useSeen } from "./seen.ts";
import { Button } from "../../parts/parts.tsx";
import { brief, count as countOf, shown } from "../../parts/text.ts";
import { sessionPath, useOwnName } from "../../parts/use-session.ts";
import { receiptOf, type Notice } from "./notices.tsx";

export function BulkAnswer({
  items,
  onDone,
  onNotice,
}: {
  readonly items: readonly OpenItem[];
  readonly onDone: () => void;
  readonly onNotice: (notice: Notice) => void;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [failures, setFailures] = useState<readonly string[]>([]);
  const [isBusy, setBusy] = useState(false);
  const queries = useQueryClient();
  const who = useOwnName();
  useEffect(() => setFailures([]), [items.length]);
  if (items.length === 0) return null;
  const answer = async (approved: boolean): Promise<void> => {
    dialog.current?.close();
    setBusy(true);
    const failed: string[] = [];
    for (const { sessionId, wait, path } of items) {
      const body = { question: String(wait!.id), answer: { approved } };
      await call("POST", sessionPath(sessionId, "answer"), body).catch(
        (error: unknown) => void failed.push(`${path.join(" > ")}: ${toError(error).message}`),
      );
    }
    setBusy(false);
    setFailures(failed);
    const done = items.length - failed.length;
    const said = `${approved ? "Approved" : "Denied"} ${countOf(done, "item")}`;
    if (done > 0) onNotice(receiptOf(said, who, items.length === 1 ? items[0] : undefined));
    await queries.invalidateQueries({ queryKey: ["inbox"] });
    if (failed.length === 0) onDone();
  };
  const count = items.length === 1 ? "One item" : `${items.length} items`;
  return (
    <section aria-label="Selected items" className="border-b border-line bg-panel px-3 py-2">
      <div className="mx-auto flex max-w-4xl flex-wrap items-center gap-2">
        <span className="font-medium">{count} selected</span>
        <Button kind="main" isDisabled={isBusy} onClick={() => dialog.current?.showModal()}>
          Approve…
        </Button>
        <Button kind="danger" isDisabled={isBusy} onClick={() => void answer(false)}>
          Deny
        </Button>
        <Button isDisabled={isBusy} onClick={onDone}>
          Select none
        </Button>
        {failures.map((failure) => (
          <p key={failure} role="alert" className="basis-full text-bad">
            {shown(failure)}
          </p>
        ))}
      </div>
      <ApproveAll items={items} dialog={dialog} onApprove={() => void answer(true)} />
    </section>
  );
}

/** Every action whole once more, to its last line. */
function ApproveAll(props: {
  readonly items: readonly OpenItem[];
  readonly dialog: RefObject<HTMLDialogElement | null>;
  readonly onApprove: () => void;
}) {
  const { items, dialog, onApprove } = props;
  const texts = items.map((item) => [item, `${item.id} ${item.action ?? item.what}`] as const);
  const { isSeen, onSeen } = useSeen(texts.map(([, text]) => text));
  return (
    <dialog
      ref={dialog}
      aria-label="Approve the selected items"
      className="m-auto w-full max-w-screen sm:max-w-2xl rounded-lg border border-line bg-panel p-5 text-text backdrop:bg-veil"
    >
      <h2 className="mb-3 font-semibold">Approve all of these?</h2>
      <ul className="max-h-half space-y-2 overflow-auto" tabIndex={0} aria-label="Selected items">
        {texts.map(([{ path, action, what, tool, folder }, text]) => (
          <li key={text} className="rounded-md bg-raised p-3">
            <p className="text-soft">
              {path.map((name) => brief(name, 60)).join(" › ")}
              {tool === undefined ? "" : ` · ${shown(tool)}`}
              {folder === undefined ? "" : ` in ${shown(folder)}`}
            </p>
            <LongText text={action ?? what} onSeen={() => onSeen(text)} />
          </li>
        ))}
      </ul>
      <div className="mt-4 flex gap-2">
        <Button kind="main" isDisabled={!isSeen} onClick={onApprove}>
          {items.length === 1 ? "Approve it" : `Approve all ${items.length}`}
        </Button>
        <Button onClick={() => dialog.current?.close()}>Not yet</Button>
      </div>
    </dialog>
  );
}
