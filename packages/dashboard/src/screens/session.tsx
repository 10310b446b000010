// One session: what it is, why it waits, and its timeline, conversation and journal as they grow.

import { useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { lazy, Suspense, useRef } from "react";
import { isEnded, type Session } from "../api/types.ts";
import { Problem } from "../parts/parts.tsx";
import { useKeys } from "../parts/shell.tsx";
import { useLiveSession } from "../parts/use-session.ts";
import { Conversation } from "./conversation/conversation.tsx";
import { NowLine } from "./now-line.tsx";
import { SessionHead } from "./session-head.tsx";
import { Timeline } from "./timeline/timeline.tsx";
import { Tree } from "./tree.tsx";
import { SESSION_ID } from "../parts/palette.tsx";

const TABS = ["timeline", "conversation", "journal", "workspace", "tree"] as const;
type Tab = (typeof TABS)[number];

export interface SessionSearch {
  readonly tab?: Tab;
  /** The record of the journal that is shown, and the session beside this one. */
  readonly at?: number;
  readonly beside?: string;
}

export function readSessionSearch(search: Readonly<Record<string, unknown>>): SessionSearch {
  const tab = TABS.find((each) => each === search["tab"]);
  if (tab === undefined) return {};
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

/** The time from the first record of a session to its first message. An agent file is read in between. */
const FIRST_MESSAGE_MS = 10_000;

/**
 * The tab that says what a session does: its conversation if it has one, and its timeline otherwise. It is chosen
 * once, so that a message moves nobody who reads.
 */
function useUsualTab(session: Session | undefined): Tab {
  const seen = useRef<{ readonly sessionId: string; readonly at: number; tab?: Tab }>(undefined);
  if (session === undefined || session.nextSeq === 0) return "timeline";
  const { sessionId, entryCount } = session;
  if (seen.current?.sessionId !== sessionId) seen.current = { sessionId, at: Date.now() };
  const { at } = seen.current;
  if (entryCount > 0) seen.current.tab ??= "conversation";
  else if (isEnded(session) || Date.now() - at >= FIRST_MESSAGE_MS) seen.current.tab ??= "timeline";
  return seen.current.tab ?? "timeline";
}

/** Loaded when it is looked at. */
const Workspace = lazy(() => import("./workspace/workspace.tsx"));
const Journal = lazy(() => import("./journal/journal.tsx"));

export function SessionScreen() {
  const { id } = useParams({ from: "/sessions/$id" });
  const search = useSearch({ from: "/sessions/$id" });
  const navigate = useNavigate({ from: "/sessions/$id" });
  const live = useLiveSession(id);
  const { session, error } = live;
  const usual = useUsualTab(session);
  const { tab = usual, at, beside } = search;
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
      <SessionHead session={session} live={live} />
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
      {tab === "conversation" ? null : <NowLine live={live} />}
    </div>
  );
}
