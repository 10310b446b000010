// Answers one item of the inbox in place.
//
//   inbox-answer-1. A key answers only the item that has the focus, and only once for each press.
//   - The rule that an answer would keep is shown before it is kept.
//   inbox-answer-3. Keys and buttons have one rule: what has not been shown whole is denied at most, and what
//       has just moved is not answered.

import { viewCall } from "@holdfast/proto/view";
import { useRef, useState, type ReactNode, type RefObject } from "react";
import { call } from "../../api/client.ts";
import { textOrJson } from "../../api/input-form.ts";
import { canApprove, type OpenItem } from "../../api/open-items.ts";
import { payerPath, RaiseBudget } from "../../parts/raise-budget.tsx";
import { Button, Command, ContinuesBy, Problem } from "../../parts/parts.tsx";
import { useKeys } from "../../parts/shell.tsx";
import { shown } from "../../parts/text.ts";
import { sessionPath } from "../../parts/use-session.ts";
import { EditedCall, useEditedCall } from "./edited-call.tsx";
import { useAnswering, type Answering, type AnswerProps } from "./use-answering.ts";

export function Answer(props: AnswerProps) {
  const { item, card, isSeen, isAtRest } = props;
  const answering = useAnswering(props);
  const { done, isRefused, error } = answering;
  const said = done ?? (item.kind === "answered" ? "The question has an answer" : undefined);
  if (said !== undefined)
    return (
      <p role="status" className="mt-3">
        <span className="font-medium text-good">{said}.</span>{" "}
        {item.session.status === "input_required" ? (
          <>
            The session takes it when it runs. <ContinuesBy sessionId={item.sessionId} />
          </>
        ) : null}
      </p>
    );
  const Kind = kindOf(item);
  return (
    <div className="mt-3 space-y-2">
      <Kind item={item} card={card} answering={answering} />
      {isSeen || !isAtRest ? null : (
        <p role="status" className={isRefused ? "text-bad" : "text-soft"}>
          See the rest first: only what was shown whole is approved.
        </p>
      )}
      {error === undefined ? null : <Problem error={error} />}
    </div>
  );
}

interface KindProps {
  readonly item: OpenItem;
  readonly card: RefObject<HTMLElement | null>;
  readonly answering: Answering;
}

function kindOf(item: OpenItem): (props: KindProps) => ReactNode {
  if (canApprove(item)) return Approval;
  if (item.wait !== undefined) return WrittenAnswer;
  if (item.kind !== "pause") return Buttons;
  return item.pauseReason === "budget_exceeded" ? UsedUpBudget : Pause;
}

function Approval({ item, card, answering }: KindProps) {
  const { lastingRule, editable } = item;
  const { text, takesNoAnswer, takesNoApproval, answer, ifSeen } = answering;
  const edit = useEditedCall(item);
  const [scope, setScope] = useState<Scope>("once");
  const { box, isWriting, write } = useAnswerBox(text !== "");
  const reason = {
    ...(text.trim() === "" ? {} : { reason: text }),
    ...(scope === "once" ? {} : { remember: { scope } }),
  };
  const approve = ifSeen(() => {
    const input = edit.read();
    if (input.problem !== undefined) return;
    const isEdited = input.value !== undefined;
    const approval = { approved: true, ...reason, ...(isEdited ? { input: input.value } : {}) };
    const { tool = "", folder } = item;
    // The receipt is about the call that runs.
    if (isEdited)
      answer("Approved with an edit", approval, { ...item, work: viewCall(tool, input.value, folder) });
    else answer("Approved", approval);
    edit.done();
  });
  const deny = (): void => answer("Denied", { approved: false, ...reason });
  useKeys({ a: approve, d: deny, e: write }, card);
  return (
    <>
      {isWriting ? (
        <AnswerBox box={box} label="Reason" hint="Reason, which the agent reads" answering={answering} />
      ) : null}
      {edit.isOpen ? <EditedCall edit={edit} isBusy={answering.isBusy} /> : null}
      <Buttons item={item}>
        <Button kind="main" hint="a" isDisabled={takesNoApproval} onClick={approve}>
          {edit.isOpen ? "Approve this call" : "Approve"}
        </Button>
        <Button kind="danger" hint="d" isDisabled={takesNoAnswer} onClick={deny}>
          Deny
        </Button>
        {isWriting ? null : (
          <Button hint="e" onClick={write}>
            With a reason
          </Button>
        )}
        {editable === undefined ? null : (
          <Button onClick={edit.isOpen ? edit.done : edit.open}>
            {edit.isOpen ? "Keep the call as it was" : "Edit the call"}
          </Button>
        )}
        {lastingRule === undefined ? null : (
          <LastingRule rule={lastingRule} scope={scope} onChange={setScope} />
        )}
      </Buttons>
    </>
  );
}

/** An answer of any form: a text, or JSON. */
function WrittenAnswer({ item, card, answering }: KindProps) {
  const { text, takesNoApproval, answer, ifSeen } = answering;
  const { box, write } = useAnswerBox(true);
  const value = textOrJson(text);
  const send = ifSeen(() => text !== "" && answer("Answered", value));
  useKeys({ e: write }, card);
  return (
    <>
      <AnswerBox box={box} label="Answer" hint="Answer: text, or JSON" answering={answering} onSend={send} />
      <Buttons item={item}>
        <Button kind="main" hint="Ctrl Enter" isDisabled={takesNoApproval || text === ""} onClick={send}>
          {typeof value === "string" ? "Answer" : "Answer as JSON"}
        </Button>
      </Buttons>
    </>
  );
}

function UsedUpBudget({ item, answering }: KindProps) {
  const { session, sessionId } = item;
  const { takesNoApproval, act } = answering;
  return (
    <Buttons item={item}>
      <RaiseBudget
        session={session}
        draft={`limit of ${sessionId}`}
        isBusy={takesNoApproval}
        onRaise={(budget) =>
          act("The limit is raised, and the session continues", () =>
            call("PATCH", payerPath(session), budget),
          )
        }
      />
    </Buttons>
  );
}

function Pause({ item, card, answering }: KindProps) {
  const { act, ifSeen, takesNoApproval } = answering;
  const unpause = ifSeen(
    () => void act("It continues", () => call("POST", sessionPath(item.sessionId, "unpause"))),
  );
  useKeys({ u: unpause }, card);
  return (
    <Buttons item={item}>
      <Button kind="main" hint="u" isDisabled={takesNoApproval} onClick={unpause}>
        Unpause
      </Button>
    </Buttons>
  );
}

/** The buttons of an answer, and the commands that answer in a terminal. */
function Buttons(props: { readonly item: OpenItem; readonly children?: ReactNode }) {
  const { item, children } = props;
  return (
    <div className="flex flex-wrap items-center gap-2">
      {children}
      <details className="text-soft">
        <summary>In a terminal</summary>
        {item.commands.map((command) => (
          <div key={command}>
            <Command>{command}</Command>
          </div>
        ))}
      </details>
    </div>
  );
}

/** Whether the box for a text is open, and the call that opens it and gives it the focus. */
function useAnswerBox(isOpen: boolean) {
  const [isWriting, setWriting] = useState(isOpen);
  const box = useRef<HTMLTextAreaElement>(null);
  const write = (): void => {
    setWriting(true);
    setTimeout(() => box.current?.focus());
  };
  return { box, isWriting, write };
}

function AnswerBox(props: {
  readonly box: RefObject<HTMLTextAreaElement | null>;
  readonly label: string;
  readonly hint: string;
  readonly answering: Answering;
  readonly onSend?: () => void;
}) {
  const { box, label, hint, answering, onSend } = props;
  const { text, setText, isBusy } = answering;
  return (
    <textarea
      ref={box}
      aria-label={label}
      placeholder={hint}
      value={text}
      rows={2}
      // A text that is written while the answer is under way would be lost.
      readOnly={isBusy}
      onChange={(event) => setText(event.target.value)}
      onKeyDown={(event) => {
        if (event.key === "Escape") event.currentTarget.blur();
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.repeat) onSend?.();
      }}
      className="field w-full"
    />
  );
}

type Scope = "once" | "session" | "project";

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
        className="field text-text"
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
