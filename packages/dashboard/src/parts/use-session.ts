// Hooks over the API: the session of a screen, the bearer of the token, messages, and requests that change
// something.

import { useQuery } from "@tanstack/react-query";
import { createContext, useContext, useEffect, useRef, useState, useSyncExternalStore } from "react";
import { call } from "../api/client.ts";
import { readDraft, writeDraft } from "../api/drafts.ts";
import { LiveSession, type LiveState } from "../api/live-session.ts";
import { Outbox } from "../api/outbox.ts";
import type { About } from "../api/types.ts";
import { brief } from "./text.ts";

/** A session as it runs, while the screen is open. */
export function useLiveSession(sessionId: string): LiveState {
  const [live, setLive] = useState(() => new LiveSession(sessionId));
  useEffect(() => {
    const next = new LiveSession(sessionId);
    setLive(next);
    next.begin();
    return () => next.end();
  }, [sessionId]);
  return useSyncExternalStore(live.subscribe, () => live.state);
}

/** By the ids of sessions. Each sign-in has its own, so that nothing of one person is sent as another. */
export const OutboxContext = createContext(new Map<string, Outbox>());

/** The messages of a person to a session, on whichever screen the person is. */
export function useOutbox(sessionId: string): Outbox {
  const known = useContext(OutboxContext);
  const outbox = known.get(sessionId) ?? new Outbox(sessionId);
  known.set(sessionId, outbox);
  return outbox;
}

/**
 * A text that a person writes, kept under a name as long as the tab is open. Empty again when it was used.
 *
 * @param initial the text to begin with.
 */
export function useDraft(
  name: string,
  initial = "",
): readonly [text: string, setText: (text: string) => void] {
  const [kept, setKept] = useState(() => ({ name, text: readDraft(name) || initial }));
  const set = (text: string): void => {
    writeDraft(name, text);
    setKept({ name, text });
  };
  return [kept.name === name ? kept.text : readDraft(name) || initial, set];
}

export function useAbout(): About | undefined {
  return useQuery({
    queryKey: ["about"],
    queryFn: () => call<About>("GET", "/ui/about"),
    staleTime: Infinity,
  }).data;
}

/** The person, as their token names them. Over a database of this machine it is nobody else. */
export function useOwnName(): string {
  const about = useAbout();
  return about === undefined || about.isLocal ? "you" : `you (${brief(about.name, 60)})`;
}

/** A request of a person: whether it is under way, and its error. */
export function useRequest(): {
  readonly run: (work: () => Promise<unknown>) => Promise<boolean>;
  readonly isBusy: boolean;
  readonly error: unknown;
} {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const run = async (work: () => Promise<unknown>): Promise<boolean> => {
    setBusy(true);
    setError(undefined);
    try {
      await work();
      return true;
    } catch (thrown) {
      setError(thrown);
      return false;
    } finally {
      setBusy(false);
    }
  };
  return { run, isBusy, error };
}

/**
 * A key for a request that may count once only, although its answer can be lost: it stays the same over every
 * retry.
 *
 * @param content what the request says. Another content has another key.
 * @returns the key, and a call after an answer: what is asked for next is another request.
 */
export function useRequestKey(content: string): { readonly key: string; readonly renew: () => void } {
  const kept = useRef<{ readonly content: string; readonly key: string }>(undefined);
  if (kept.current?.content !== content) kept.current = { content, key: crypto.randomUUID() };
  return { key: kept.current.key, renew: () => (kept.current = undefined) };
}

export function sessionPath(sessionId: string, action?: string): string {
  return `/v1/sessions/${encodeURIComponent(sessionId)}${action === undefined ? "" : `/${action}`}`;
}
