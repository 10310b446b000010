// Answers one item of the inbox in place.
//
//   inbox-answer-1. A key answers only the item that is selected, and only once.
//   inbox-answer-2. The rule that an answer would keep is shown before it is kept.

import { useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { call } from "../../api/client.ts";
import { textOrJson } from "../../api/input-form.ts";
import type { OpenItem } from "../../api/open-items.ts";
import { RaiseBudget } from "../../parts/raise-budget.tsx";
import { Button, Command, Problem } from "../../parts/parts.tsx";
import { useKeys } from "../../parts/shell.tsx";
import { shown } from "../../parts/text.ts";
import { sessionPath, useRequest } from "../../parts/use-session.ts";

type Scope = "once" | "session" | "project";

export function Answer({
  item,
  isSelected,
  onUnpaused,
}: {
  readonly item: OpenItem;
  readonly isSelected: boolean;
  readonly onUnpaused: () => void;
}) {
  const { wait, sessionId, kind, commands, session, pauseReason, lastingRule } = item;
  const [scope, setScope] = useState<Scope>("once");
  const { run, isBusy, error } = useRequest();
  const [done, setDone] = useState<string>();
  const [text, setText] = useState("");
  const [isWriting, setWriting] = useState(wait?.answer === "any");
  const box = useRef<HTMLTextAreaElement>(null);
  const queries = useQueryClient();
  const act = async (said: string, request: () => Promise<unknown>): Promise<void> => {
    if (isBusy || done !== undefined) return; // inbox-answer-1.
    if (!(await run(request))) return;
    setDone(said);
    if (kind === "pause") onUnpaused();
    void queries.invalidateQueries({ queryKey: ["inbox"] });
  };
  const send = (said: string, path: string, body?: unknown): Promise<void> =>
    act(said, () => call("POST", path, body));
  const answer = (said: string, value: unknown): Promise<void> =>
    send(said, sessionPath(sessionId, "answer"), { question: String(wait?.id), answer: value });
  const reason = {
    ...(text.trim() === "" ? {} : { reason: text }),
    ...(scope === "once" ? {} : { remember: { scope } }),
  };
  const approve = (): void => void answer("Approved", { approved: true, ...reason });
  const deny = (): void => void answer("Denied", { approved: false, ...reason });
  const write = (): void => {
    setWriting(true);
    setTimeout(() => box.current?.focus());
  };
  const unpause = (): void => void send("It continues", sessionPath(sessionId, "unpause"));
  const canApprove = wait !== undefined && wait.answer !== "any";
  useKeys(
    isSelected && done === undefined
      ? {
          ...(canApprove ? { a: approve, d: deny } : {}),
          ...(wait === undefined ? {} : { e: write }),
          ...(kind === "pause" && pauseReason !== "budget_exceeded" ? { u: unpause } : {}),
        }
      : {},
  );
  if (done !== undefined)
    return (
      <p role="status" className="mt-3 font-medium text-good">
        {done}
        {session.status === "input_required" ? ". The session takes it when it runs." : ""}
      </p>
    );
  const value = textOrJson(text);
  return (
    <div className="mt-3 space-y-2">
      {isWriting ? (
        <textarea
          ref={box}
          aria-label={canApprove ? "Reason" : "Answer"}
          placeholder={canApprove ? "Reason, which the agent reads" : "Answer: text, or JSON"}
          value={text}
          rows={2}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === "Escape") event.currentTarget.blur();
            if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !canApprove && text !== "")
              void answer("Answered", value);
          }}
          className="w-full rounded-md border border-line bg-ground px-3 py-2"
        />
      ) : null}
      <div className="flex flex-wrap items-center gap-2">
        {canApprove ? (
          <>
            <Button kind="main" hint="a" isDisabled={isBusy} onClick={approve}>
              Approve
            </Button>
            <Button kind="danger" hint="d" isDisabled={isBusy} onClick={deny}>
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
            isDisabled={isBusy || text === ""}
            onClick={() => void answer("Answered", value)}
          >
            {typeof value === "string" ? "Answer" : "Answer as JSON"}
          </Button>
        ) : null}
        {kind === "pause" && pauseReason === "budget_exceeded" ? (
          <RaiseBudget
            session={session}
            isBusy={isBusy}
            onRaise={(budget) =>
              void act("The limit is raised, and the session continues", () =>
                call("PATCH", sessionPath(sessionId, "budget"), budget),
              )
            }
          />
        ) : null}
        {kind === "pause" && pauseReason !== "budget_exceeded" ? (
          <Button kind="main" hint="u" isDisabled={isBusy} onClick={unpause}>
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
