// One item of a conversation as work: a text, or a call with the lines that it changes or puts out.
//
// Long changes and outputs are folded, and opened in place. The record of a call is one more press.

import {
  foldChange,
  foldOutput,
  type PlanStepView,
  replyOf,
  stepText,
  viewCall,
  viewResult,
  type CallView,
  type DiffLine,
  type ResultView,
  type WorkCall,
  type WorkItem,
} from "@holdfast/proto/view";
import { useMemo, useState } from "react";
import { CallWords } from "../../parts/reading/call-words.tsx";
import { LongText } from "../../parts/long-text.tsx";
import { ScrollBox } from "../../parts/parts.tsx";
import { brief, count, dateText, duration, json, shown } from "../../parts/text.ts";
import { ChangeLines } from "../../parts/reading/change-lines.tsx";

export function WorkRow({ item, isLive }: { readonly item: WorkItem; readonly isLive: boolean }) {
  const indent = item.isOfSubAgent ? "ml-4 border-l-2 border-line pl-3" : "";
  return (
    <div className={indent}>
      {item.type === "call" ? (
        <Call call={item} at={item.at} isLive={isLive} />
      ) : item.type === "plan" ? (
        <Plan steps={item.steps} />
      ) : item.type === "receipt" ? (
        <p className="py-0.5 text-sm text-soft">
          <span aria-hidden className="mr-2 text-good">
            ✓
          </span>
          {RECEIPTS[item.delivery]}
        </p>
      ) : (
        <Said item={item} />
      )}
    </div>
  );
}

const RECEIPTS = {
  steer: "Your message reached the agent in the middle of its work.",
  queue: "Your message waited for the answer, and is the request now.",
} as const;

type SaidItem = Extract<WorkItem, { readonly type: "said" }>;

function Said({ item }: { readonly item: SaidItem }) {
  const { role, content, at, isOfSubAgent } = item;
  const { text } = replyOf(content);
  const name = isOfSubAgent ? `${role} (sub-agent)` : role;
  if (role !== "user" && role !== "assistant")
    return (
      <details className="py-0.5 text-sm text-soft">
        <summary>
          {shown(role)} <span className="ml-1">{brief(text.trimStart(), 100)}</span>
        </summary>
        <ScrollBox label={shown(role)}>
          <LongText text={text === "" ? json(content) : text} />
        </ScrollBox>
      </details>
    );
  return (
    <article
      aria-label={shown(name)}
      title={dateText(at)}
      dir="auto"
      className={role === "user" ? "my-3 ml-6 rounded-lg bg-raised px-4 py-2.5 sm:ml-24" : "py-2"}
    >
      {isOfSubAgent ? <p className="text-xs text-soft">sub-agent</p> : null}
      {text === "" ? <LongText text={json(content)} /> : <LongText text={text} isMarkdown />}
    </article>
  );
}

function Plan({ steps }: { readonly steps: readonly PlanStepView[] }) {
  return (
    <div role="group" aria-label="Plan" className={STEPS}>
      <h2 className="text-xs font-semibold text-soft">Plan</h2>
      <LongText text={planText(steps)} />
    </div>
  );
}

const STEPS = "my-2 rounded-md border border-line bg-panel px-3 py-2";

function planText(steps: readonly PlanStepView[]): string {
  return steps.map(stepText).join("\n");
}

interface CallProps {
  readonly call: WorkCall;
  readonly at: number;
  readonly isLive: boolean;
}

function Call({ call, at, isLive }: CallProps) {
  const { name, input, result } = call;
  const view = useMemo(() => viewCall(name, input), [name, input]);
  const found = useMemo(
    () => (result === undefined ? undefined : viewResult(view, result.content)),
    [view, result],
  );
  const [isOpen, setOpen] = useState(false);
  const change = view.change ?? found?.change;
  const hasMore = found !== undefined && found.output.length > foldOutput(view, found).length;
  return (
    <div role="group" aria-label={callName(view)} className="py-1">
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
        className="flex w-full items-baseline gap-2 rounded-sm px-1 text-left hover:bg-raised"
      >
        <Mark result={found} isLive={isLive} />
        <span className="min-w-0 flex-1">
          <CallWords call={view} />
        </span>
        {change === undefined ? null : <ChangeMarks change={change} />}
        {hasMore && !isOpen ? (
          <span className="shrink-0 text-xs text-soft">{count(found.output.length, "line")}</span>
        ) : null}
        {result === undefined || result.at - at < 1_000 ? null : (
          <span className="shrink-0 text-xs text-soft">{duration(result.at - at)}</span>
        )}
        <span aria-hidden className="w-3 shrink-0 text-xs text-soft">
          {isOpen ? "▾" : "▸"}
        </span>
      </button>
      <div className="ml-6">
        {change === undefined ? null : <Change change={change} isOpen={isOpen} path={view.subject} />}
        {view.steps === undefined || view.steps.length === 0 ? null : (
          <div className={STEPS}>
            <LongText text={planText(view.steps)} />
          </div>
        )}
        {isOpen ? (
          <Whole call={call} view={view} result={found} />
        ) : found === undefined || (change !== undefined && !found.hasFailed) ? null : (
          <Folded view={view} result={found} />
        )}
      </div>
    </div>
  );
}

function callName({ verb, subject }: CallView): string {
  return brief(subject === "" ? verb : `${verb} ${subject}`, 120);
}

function Mark({ result, isLive }: { readonly result: ResultView | undefined; readonly isLive: boolean }) {
  const [mark, colour, said] =
    result === undefined
      ? isLive
        ? (["●", "pulse text-busy", "under way"] as const)
        : (["–", "text-soft", "without a result"] as const)
      : result.hasFailed
        ? (["✕", "text-bad", "failed"] as const)
        : (["✓", "text-good", "done"] as const);
  return (
    <span className={`w-4 shrink-0 text-center text-xs ${colour}`}>
      <span aria-hidden>{mark}</span>
      <span className="sr-only">{said}</span>
    </span>
  );
}

function ChangeMarks({ change }: { readonly change: readonly DiffLine[] }) {
  const added = change.filter(({ type }) => type === "added").length;
  const deleted = change.length - added;
  return (
    <span className="shrink-0 font-mono text-xs">
      {added > 0 ? <span className="text-good">+{added}</span> : null}{" "}
      {deleted > 0 ? <span className="text-bad">−{deleted}</span> : null}
    </span>
  );
}

function Change(props: {
  readonly change: readonly DiffLine[];
  readonly isOpen: boolean;
  readonly path: string;
}) {
  const { change, isOpen, path } = props;
  const folded = foldChange(change);
  return (
    <>
      <ChangeLines path={path} lines={isOpen ? change : folded} />
      {isOpen || folded.length === change.length ? null : (
        <p className="text-xs text-soft">{count(change.length - folded.length, "more line")}</p>
      )}
    </>
  );
}

/** The lines that say most, until somebody opens the call. */
function Folded({ view, result }: { readonly view: CallView; readonly result: ResultView }) {
  // Contents of files and lists were asked for by the agent, and not by the person.
  if (!result.hasFailed && view.verb !== "Run") return null;
  const lines = foldOutput(view, result);
  if (lines.length === 0) return null;
  return (
    <p className={`exact ${result.hasFailed ? "text-bad" : "text-soft"}`}>
      {lines.map((line) => shown(line.slice(0, LINE_CHARS))).join("\n")}
    </p>
  );
}

const LINE_CHARS = 400;

/** Everything of a call: what the agent asked for beyond the subject, its whole output, and both as recorded. */
function Whole(props: {
  readonly call: WorkCall;
  readonly view: CallView;
  readonly result: ResultView | undefined;
}) {
  const { call, view, result } = props;
  const [isRaw, setRaw] = useState(false);
  const output = useMemo(() => result?.output.join("\n") ?? "", [result]);
  return (
    <div className="space-y-1 pb-1">
      {view.subject.length > 80 ? <p className="exact">{shown(view.subject)}</p> : null}
      {output === "" ? (
        <p className="text-sm text-soft">
          {result === undefined ? "It has no result yet." : "It said nothing."}
        </p>
      ) : (
        <ScrollBox label={`Output of ${callName(view)}`}>
          <LongText text={output} />
        </ScrollBox>
      )}
      <button
        type="button"
        aria-expanded={isRaw}
        onClick={() => setRaw(!isRaw)}
        className="text-xs text-soft underline"
      >
        {isRaw ? "Hide the record" : "As recorded"}
      </button>
      {isRaw ? (
        <ScrollBox label={`Record of ${callName(view)}`}>
          <LongText text={json({ tool: call.name, input: call.input, result: call.result?.content })} />
        </ScrollBox>
      ) : null}
    </div>
  );
}
