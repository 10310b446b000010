// Answers one item of the inbox in place.
//
//   inbox-answer-1. A key answers only the item that has the focus, and only once for each press.
//   inbox-answer-2. The rule that an answer would keep is shown before it is kept.
//   inbox-answer-3. Keys and buttons have one rule: what has not been shown whole is denied at most, and what has just moved is not answered.

import { useQueryClient } from "@tanstack/react-query";
import { useRef, useState, type RefObject } from "react";
import { call } from "../../api/client.ts";
import { textOrJson } from "../../api/input-form.ts";
import type { OpenItem } from "../../api/open-items.ts";
import { payerPath, RaiseBudget } from "../../parts/raise-budget.tsx";
import { Button, Command, Problem } from "../../parts/parts.tsx";
import { useKeys } from "../../parts/shell.tsx";
import { shown } from "../../parts/text.ts";
import { sessionPath, useDraft, useRequest } from "../../parts/use-session.ts";

type Scope = "once" | "session" | "project";

export function Answer({
  item,
  card,
  isSeen,
  isAtRest,
  onUnpaused,
  onAnswered,
}: {
  readonly item: OpenItem;
  readonly card: RefObject<HTMLElement | null>;
  /** Whether all of the item's text was shown. */
  readonly isSeen: boolean;
  /** Whether the card has stood still for a moment. */
  readonly isAtRest: boolean;
  readonly onUnpaused: () => void;
  readonly onAnswered: () => void;
}) {
  const { wait, sessionId, kind, commands, session, pauseReason, lastingRule } = item;
  const [scope, setScope] = useState<Scope>("once");
  const { run, isBusy, error } = useRequest();
  const [done, setDone] = useState<string>();
  const [text, setText] = useDraft(`answer to ${item.id}`);
  const [isWriting, setWriting] = useState(wait?.answer === "any" || text !== "");
  const box = useRef<HTMLTextAreaElement>(null);
  const queries = useQueryClient();
  /** @returns whether it is done. */
  const act = async (said: string, request: () => Promise<unknown>): Promise<boolean> => {
    if (isBusy || done !== undefined || !isAtRest) return false; // inbox-answer-1, inbox-answer-3.
    if (!(await run(request))) return false;
    setText("");
    const hasFocus = card.current?.contains(document.activeElement) === true;
    setDone(said);
    if (hasFocus) onAnswered();
    if (kind === "pause") onUnpaused();
    void queries.invalidateQueries({ queryKey: ["inbox"] });
    return true;
  };
  const send = (said: string, path: string, body?: unknown): Promise<boolean> =>
    act(said, () => call("POST", path, body));
  const answer = (said: string, value: unknown): Promise<boolean> =>
    send(said, sessionPath(sessionId, "answer"), { question: String(wait?.id), answer: value });
  const reason = {
    ...(text.trim() === "" ? {} : { reason: text }),
    ...(scope === "once" ? {} : { remember: { scope } }),
  };
  const [isRefused, setRefused] = useState(false);
  /** inbox-answer-3. */
  const ifSeen = (work: () => void) => (): void => {
    setRefused(!isSeen);
    if (isSeen) work();
  };
  const approve = ifSeen(() => void answer("Approved", { approved: true, ...reason }));
  const deny = (): void => void answer("Denied", { approved: false, ...reason });
  const value = textOrJson(text);
  const write = (): void => {
    setWriting(true);
    setTimeout(() => box.current?.focus());
  };
  const unpause = ifSeen(() => void send("It continues", sessionPath(sessionId, "unpause")));
  const writeAnswer = ifSeen(() => text !== "" && void answer("Answered", value));
  const isDisabled = isBusy || !isAtRest;
  const canApprove = wait !== undefined && wait.answer !== "any";
  useKeys(
    done === undefined
      ? {
          ...(canApprove ? { a: approve, d: deny } : {}),
          ...(wait === undefined ? {} : { e: write }),
          ...(kind === "pause" && pauseReason !== "budget_exceeded" ? { u: unpause } : {}),
        }
      : {},
    card,
  );
  if (done !== undefined)
    return (
      <p role="status" className="mt-3 font-medium text-good">
        {done}
        {session.status === "input_required" ? ". The session takes it when it runs." : ""}
      </p>
    );
  return (
    <div className="mt-3 space-y-2">
      {isWriting ? (
        <textarea
          ref={box}
          aria-label={canApprove ? "Reason" : "Answer"}
          placeholder={canApprove ? "Reason, which the agent reads" : "Answer: text, or JSON"}
          value={text}
          rows={2}
          // A text that is written while the answer is under way would be lost.
          readOnly={isBusy}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === "Escape") event.currentTarget.blur();
            if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.repeat && !canApprove)
              writeAnswer();
          }}
          className="w-full rounded-md border border-line bg-ground px-3 py-2"
        />
      ) : null}
      <div className="flex flex-wrap items-center gap-2">
        {canApprove ? (
          <>
            <Button kind="main" hint="a" isDisabled={isDisabled || !isSeen} onClick={approve}>
              Approve
            </Button>
            <Button kind="danger" hint="d" isDisabled={isDisabled} onClick={deny}>
              Deny
            </Button>
            {isWriting ? null : (
              <Button hint="e" onClick={write}>
                With a reason
              </Button>
            )}
            {lastingRule === undefined ? null : (
              <LastingRule rule={lastingRule} scope={scope} onChange={setScope} />
            )}
          </>
        ) : null}
        {wait !== undefined && !canApprove ? (
          <Button
            kind="main"
            hint="Ctrl Enter"
            isDisabled={isDisabled || !isSeen || text === ""}
            onClick={writeAnswer}
          >
            {typeof value === "string" ? "Answer" : "Answer as JSON"}
          </Button>
        ) : null}
        {kind === "pause" && pauseReason === "budget_exceeded" ? (
          <RaiseBudget
            session={session}
            draft={`limit of ${sessionId}`}
            isBusy={isDisabled || !isSeen}
            onRaise={(budget) =>
              act("The limit is raised, and the session continues", () =>
                call("PATCH", payerPath(session), budget),
              )
            }
          />
        ) : null}
        {kind === "pause" && pauseReason !== "budget_exceeded" ? (
          <Button kind="main" hint="u" isDisabled={isDisabled || !isSeen} onClick={unpause}>
            Unpause
          </Button>
        ) : null}
        <details className="text-soft">
          <summary>In a terminal</summary>
          {commands.map((command) => (
            <div key={command}>
              <Command>{command}</Command>
            </div>
          ))}
        </details>
      </div>
      {isSeen || !isAtRest ? null : (
        <p role="status" className={isRefused ? "text-bad" : "text-soft"}>
          See the rest first: only what was shown whole is approved.
        </p>
      )}
      {error === undefined ? null : <Problem error={error} />}
    </div>
  );
}

/** inbox-answer-2. */
function LastingRule(props: {
  readonly rule: string;
  readonly scope: Scope;
  readonly onChange: (scope: Scope) => void;
}) {
  const { rule, scope, onChange } = props;
  return (
    <label className="flex basis-full flex-wrap items-center gap-2 text-soft">
      The answer holds
      <select
        value={scope}
        onChange={(event) => onChange(event.target.value as Scope)}
        className="rounded-md border border-line bg-panel px-2 py-1 text-text"
      >
        <option value="once">once</option>
        <option value="session">for this session</option>
        <option value="project">for this project</option>
      </select>
      {scope === "once" ? "" : "as the rule"}
      {scope === "once" ? null : <Command>{shown(rule)}</Command>}
    </label>
  );
}
