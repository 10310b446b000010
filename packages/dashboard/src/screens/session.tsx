// One session: what it is, why it waits, and its timeline, conversation and journal as they grow.

import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { lazy, Suspense, useRef } from "react";
import { budgetUses, costText, type TimelineBuilder } from "@holdfast/proto/view";
import { call } from "../api/client.ts";
import { isEnded, type Session } from "../api/types.ts";
import { LongText } from "../parts/long-text.tsx";
import { Button, Problem, RecordedErrorView, StatusMark } from "../parts/parts.tsx";
import { payerPath, RaiseBudget } from "../parts/raise-budget.tsx";
import { useKeys } from "../parts/shell.tsx";
import { brief, dateText, duration, json, whyText } from "../parts/text.ts";
import { sessionPath, useAbout, useLiveSession, useRequest } from "../parts/use-session.ts";
import { Conversation } from "./conversation.tsx";
import { Timeline } from "./timeline.tsx";
import { Tree } from "./tree.tsx";

const TABS = ["timeline", "conversation", "journal", "workspace", "tree"] as const;
type Tab = (typeof TABS)[number];

export interface SessionSearch {
  readonly tab?: Tab;
  /** The record of the journal that is shown, and the session beside this one. */
  readonly at?: number;
  readonly beside?: string;
}

const SESSION_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

export function readSessionSearch(search: Readonly<Record<string, unknown>>): SessionSearch {
  const tab = TABS.find((each) => each === search["tab"]);
  if (tab === undefined || tab === "timeline") return {};
  if (tab !== "journal") return { tab };
  const { at, beside } = search;
  // An id of digits alone is a number in an address.
  const id = typeof beside === "number" ? String(beside) : beside;
  return {
    tab,
    ...(Number.isSafeInteger(at) && Number(at) >= 0 ? { at: Number(at) } : {}),
    ...(typeof id === "string" && SESSION_ID.test(id) ? { beside: id } : {}),
  };
}

/** Loaded when it is looked at. */
const Workspace = lazy(() => import("./workspace/workspace.tsx"));
const Journal = lazy(() => import("./journal/journal.tsx"));

export function SessionScreen() {
  const { id } = useParams({ from: "/sessions/$id" });
  const { tab = "timeline", at, beside } = useSearch({ from: "/sessions/$id" });
  const navigate = useNavigate({ from: "/sessions/$id" });
  const live = useLiveSession(id);
  const { session, error } = live;
  const go = (next: object): void => void navigate({ search: readSessionSearch({ ...next }), replace: true });
  const show = (next: Tab): void => go({ tab: next });
  useKeys({
    t: () => show("timeline"),
    c: () => show("conversation"),
    l: () => show("journal"),
    w: () => show("workspace"),
    b: () => show("tree"),
  });
  if (session === undefined)
    return (
      <div className="p-3">
        {error === undefined ? (
          <p className="p-3 text-soft">Reading the session…</p>
        ) : (
          <Problem error={error} />
        )}
      </div>
    );
  return (
    <div className="flex h-full flex-col">
      <Head session={session} timeline={live.timeline} />
      {error === undefined ? null : (
        <div className="px-3 pb-2">
          <Problem error={error} />
        </div>
      )}
      <div
        role="tablist"
        aria-label="Views of the session"
        className="flex shrink-0 gap-1 overflow-x-auto overflow-y-hidden border-b border-line px-3"
      >
        {TABS.map((each) => (
          <button
            key={each}
            type="button"
            role="tab"
            aria-selected={each === tab}
            onClick={() => show(each)}
            className={`-mb-px shrink-0 border-b-2 px-3 py-1.5 capitalize ${each === tab ? "border-accent font-semibold text-accent" : "border-transparent text-soft hover:text-text"}`}
          >
            {each}
          </button>
        ))}
      </div>
      <div role="tabpanel" aria-label={tab} className="min-h-0 flex-1">
        {tab === "timeline" ? <Timeline live={live} /> : null}
        {tab === "conversation" ? <Conversation live={live} /> : null}
        <Suspense fallback={<p className="p-3 text-soft">Loading…</p>}>
          {tab === "journal" ? (
            <Journal
              live={live}
              session={session}
              at={at}
              beside={beside}
              onGo={(place) => go({ tab, ...place })}
              key={id}
            />
          ) : null}
          {tab === "workspace" ? <Workspace session={session} key={id} /> : null}
        </Suspense>
        {tab === "tree" ? <Tree session={session} timeline={live.timeline} key={id} /> : null}
      </div>
    </div>
  );
}

function Head({ session, timeline }: { readonly session: Session; readonly timeline: TimelineBuilder }) {
  const {
    sessionId,
    agent,
    parentSessionId,
    createdAt,
    endedAt,
    account,
    persistence,
    error,
    input,
    output,
    status,
  } = session;
  const isLocal = useAbout()?.isLocal ?? true;
  const why = whyText(session, isLocal);
  const hasJournal = persistence === undefined || persistence === "full";
  const cost = hasJournal && timeline.usage === undefined ? "" : `own calls ${costText(timeline.usage)}`;
  const hasError =
    error !== undefined &&
    (status === "failed" || status === "cancelled" || (status === "paused" && why !== error.message)) &&
    session.pauseReason !== "budget_exceeded"; // `why` says it.
  const facts = [
    `started ${dateText(createdAt)}`,
    endedAt === undefined ? "" : `took ${duration(endedAt - createdAt)}`,
    cost,
    ...(account === undefined || session.pauseReason === "budget_exceeded"
      ? []
      : budgetUses(account).map(({ text }) => `budget: ${text}`)),
    session.runnerId === undefined ? "" : `on ${session.runnerId}`,
    session.owner === undefined ? "" : `of ${session.owner}`,
  ].filter((fact) => fact !== "");
  return (
    <header className="max-h-[45%] shrink-0 space-y-2 overflow-auto px-3 py-3">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <h1 className="text-lg font-semibold">{brief(agent, 80)}</h1>
        <StatusMark session={session} />
        <div className="ml-auto flex flex-wrap justify-end gap-2">
          <Actions session={session} />
        </div>
      </div>
      <p className="flex flex-wrap gap-x-3 text-[13px] text-soft">
        <span className="font-mono">{sessionId}</span>
        {facts.map((fact) => (
          <span key={fact}>{fact}</span>
        ))}
        {parentSessionId === undefined ? null : (
          <Link to="/sessions/$id" params={{ id: parentSessionId }} className="text-accent underline">
            its parent
          </Link>
        )}
        {session.originSessionId === undefined ? null : (
          <Link
            to="/sessions/$id"
            params={{ id: session.originSessionId }}
            search={{ tab: "journal", beside: sessionId }}
            className="text-accent underline"
          >
            forked from another session
          </Link>
        )}
        {session.children > 0 ? (
          <Link
            to="/sessions/$id"
            params={{ id: sessionId }}
            search={{ tab: "tree" }}
            className="text-accent underline"
          >
            {session.children} children
          </Link>
        ) : null}
      </p>
      {why === "" || isEnded(session) ? null : (
        <p>
          {brief(why, 240)}{" "}
          {status === "input_required" ? (
            <Link to="/" className="text-accent underline">
              answer in the inbox
            </Link>
          ) : null}
        </p>
      )}
      {hasError ? <RecordedErrorView error={error} /> : null}
      <Value name="Input" value={input} />
      <Value name="Output" value={output} />
    </header>
  );
}

function Value({ name, value }: { readonly name: string; readonly value: unknown }) {
  if (value === undefined || value === null) return null;
  const text = typeof value === "string" ? value : json(value);
  return (
    <details>
      <summary className="truncate text-soft">
        {name} <span className="font-mono text-[13px]">{brief(text, 140)}</span>
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
  if (isEnded(session)) return null;
  const post = (action: string, body?: object): void =>
    void run(() => call("POST", sessionPath(sessionId, action), body));
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
        <Button isDisabled={isBusy} onClick={() => post("unpause")}>
          Unpause
        </Button>
      ) : (
        <Button isDisabled={isBusy} onClick={() => post("pause")}>
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
      <dialog
        ref={sure}
        aria-label="Cancel the session"
        className="m-auto max-w-md rounded-lg border border-line bg-panel p-5 text-text backdrop:bg-black/40"
      >
        <p>Cancel this session and everything below it? It cannot continue afterwards.</p>
        <div className="mt-4 flex gap-2">
          <Button
            kind="danger"
            onClick={() => {
              sure.current?.close();
              post("cancel", {});
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
