// The head of a session's screen: its status, facts and relatives, why it waits, its input and output, and
// its buttons.

import { Link } from "@tanstack/react-router";
import { useMemo, useRef, useState } from "react";
import { budgetUses, isWhyOfCause, ownCostText, type TimelineBuilder } from "@holdfast/proto/view";
import { call } from "../api/client.ts";
import type { LiveState } from "../api/live-session.ts";
import { itemOfQuestion } from "../api/open-items.ts";
import { useRunnerName } from "../api/use-runners.ts";
import { isEnded, type Session } from "../api/types.ts";
import { LongText } from "../parts/long-text.tsx";
import { Button, ContinuesBy, Problem, StatusMark } from "../parts/parts.tsx";
import { payerPath, RaiseBudget } from "../parts/raise-budget.tsx";
import { brief, count, dateText, duration, json, whyText } from "../parts/text.ts";
import { sessionPath, useAbout, useRequest } from "../parts/use-session.ts";
import { Cause, Retry } from "./session-cause.tsx";

export function SessionHead({ session, live }: { readonly session: Session; readonly live: LiveState }) {
  const { timeline } = live;
  const { sessionId, title, agent, error, input, output, status, originSessionId } = session;
  const about = useAbout();
  const isLocal = about?.isLocal ?? true;
  const runnerName = useRunnerName(session.runnerId, about?.kind === "admin");
  const why = whyText(session, isLocal);
  const asked = session.waits.filter(({ type }) => type === "input");
  const open = asked.find(({ answered }) => answered !== true);
  const isAnswered = asked.length > 0 && open === undefined;
  return (
    <header className="max-h-1/2 shrink-0 space-y-2 overflow-auto px-3 py-3">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <h1 className="text-lg font-semibold">{brief(agent, 80)}</h1>
        {title === undefined ? null : <p className="min-w-0 text-lg break-words">{brief(title)}</p>}
        <StatusMark session={session} />
        <div className="ml-auto flex flex-wrap justify-end gap-2">
          {status === "failed" || status === "cancelled" ? (
            <Retry session={session} rows={live.journal.rows} key={sessionId} />
          ) : null}
          <Actions session={session} />
        </div>
      </div>
      <p className="flex flex-wrap gap-x-3 text-sm text-soft">
        <span className="font-mono">{sessionId}</span>
        {factsOf(session, timeline, runnerName).map((fact) => (
          <span key={fact}>{fact}</span>
        ))}
        <Relatives session={session} />
      </p>
      {why === "" || isEnded(session) ? null : (
        <p>
          {brief(why, 240)}{" "}
          {isAnswered ? (
            <>
              It has an answer, which the session takes when it runs. <ContinuesBy sessionId={sessionId} />
            </>
          ) : status === "input_required" ? (
            <>
              <Link
                to="/sessions/$id"
                params={{ id: sessionId }}
                search={{ tab: "conversation" }}
                className="text-accent underline"
              >
                answer here
              </Link>{" "}
              or{" "}
              <Link
                to="/inbox"
                search={open === undefined ? {} : { item: itemOfQuestion(sessionId, open) }}
                className="text-accent underline"
              >
                answer in the inbox
              </Link>
            </>
          ) : null}
        </p>
      )}
      {error !== undefined && showsError(session) ? (
        <Cause error={error} isFault={status !== "cancelled"} />
      ) : null}
      {isLocal && originSessionId !== undefined && status === "submitted" ? (
        <p role="status">
          <ContinuesBy sessionId={sessionId} />
        </p>
      ) : null}
      <Value name="Input" value={input} />
      {live.entries.length < session.entryCount || live.work.said(output) ? null : (
        <Value name="Output" value={output} />
      )}
    </header>
  );
}

function factsOf(
  session: Session,
  timeline: TimelineBuilder,
  runnerName: string | undefined,
): readonly string[] {
  const { createdAt, endedAt, account, persistence, pauseReason, runnerId, owner } = session;
  const hasJournal = persistence === undefined || persistence === "full";
  return [
    `started ${dateText(createdAt)}`,
    endedAt === undefined ? "" : `took ${duration(endedAt - createdAt)}`,
    hasJournal && timeline.usage === undefined ? "" : ownCostText(timeline.usage),
    ...(account === undefined || pauseReason === "budget_exceeded"
      ? []
      : budgetUses(account).map(({ text }) => `budget: ${text}`)),
    runnerId === undefined ? "" : `on ${runnerName ?? runnerId}`,
    owner === undefined ? "" : `of ${owner}`,
  ].filter((fact) => fact !== "");
}

/** Whether its error says more than the reason why it waits. */
function showsError(session: Session): boolean {
  const { status } = session;
  return status === "failed" || status === "cancelled" || (status === "paused" && !isWhyOfCause(session));
}

/** Links to its parent, the session that it was forked from, and its children. */
function Relatives({ session }: { readonly session: Session }) {
  const { sessionId, parentSessionId, originSessionId, children } = session;
  return (
    <>
      {parentSessionId === undefined ? null : (
        <Link to="/sessions/$id" params={{ id: parentSessionId }} className="text-accent underline">
          its parent
        </Link>
      )}
      {originSessionId === undefined ? null : (
        <Link
          to="/sessions/$id"
          params={{ id: originSessionId }}
          search={{ tab: "journal", beside: sessionId }}
          className="text-accent underline"
        >
          forked from another session
        </Link>
      )}
      {children > 0 ? (
        <Link
          to="/sessions/$id"
          params={{ id: sessionId }}
          search={{ tab: "tree" }}
          className="text-accent underline"
        >
          {count(children, "child", "children")}
        </Link>
      ) : null}
    </>
  );
}

function Value({ name, value }: { readonly name: string; readonly value: unknown }) {
  // A value of some megabytes takes long to write, and the head is drawn again with each change.
  const text = useMemo(() => (typeof value === "string" ? value : json(value)), [value]);
  if (value === undefined || value === null) return null;
  return (
    <details>
      <summary className="truncate text-soft">
        {name} <span className="font-mono text-sm">{brief(text, 140)}</span>
      </summary>
      <div className="mt-1 rounded-md bg-raised p-3">
        <LongText text={text} />
      </div>
    </details>
  );
}

function Actions({ session }: { readonly session: Session }) {
  const { sessionId, status, pauseReason } = session;
  const { run, isBusy, error } = useRequest();
  const sure = useRef<HTMLDialogElement>(null);
  const [isUnpaused, setUnpaused] = useState(false);
  if (isEnded(session)) return null;
  const post = async (action: string, body?: object): Promise<boolean> =>
    run(() => call("POST", sessionPath(sessionId, action), body));
  return (
    <>
      {status === "paused" && pauseReason === "budget_exceeded" ? (
        <RaiseBudget
          session={session}
          draft={`limit of ${sessionId}`}
          isBusy={isBusy}
          onRaise={(budget) => run(() => call("PATCH", payerPath(session), budget))}
        />
      ) : status === "paused" ? (
        <Button isDisabled={isBusy} onClick={() => void post("unpause").then(setUnpaused)}>
          Unpause
        </Button>
      ) : (
        <Button isDisabled={isBusy} onClick={() => void post("pause")}>
          Pause
        </Button>
      )}
      <Button
        kind="danger"
        isDisabled={isBusy || status === "cancelling"}
        onClick={() => sure.current?.showModal()}
      >
        Cancel…
      </Button>
      {error === undefined ? null : <Problem error={error} />}
      {isUnpaused && status !== "paused" ? (
        <p role="status" className="basis-full text-right">
          It is unpaused. <ContinuesBy sessionId={sessionId} />
        </p>
      ) : null}
      <dialog
        ref={sure}
        aria-label="Cancel the session"
        className="m-auto max-w-md rounded-lg border border-line bg-panel p-5 text-text backdrop:bg-veil"
      >
        <p>Cancel this session and everything below it? It cannot continue afterwards.</p>
        <div className="mt-4 flex gap-2">
          <Button
            kind="danger"
            onClick={() => {
              sure.current?.close();
              void post("cancel", {});
            }}
          >
            Cancel the session
          </Button>
          <Button onClick={() => sure.current?.close()}>Keep it</Button>
        </div>
      </dialog>
    </>
  );
}
