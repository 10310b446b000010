// Hooks over the API: the session of a screen, the bearer of the token, and requests that change something.

import { useQuery } from "@tanstack/react-query";
import { useEffect, useState, useSyncExternalStore } from "react";
import { call } from "../api/client.ts";
import { LiveSession, type LiveState } from "../api/live-session.ts";
import type { About } from "../api/types.ts";

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

export function useAbout(): About | undefined {
  return useQuery({
    queryKey: ["about"],
    queryFn: () => call<About>("GET", "/ui/about"),
    staleTime: Infinity,
  }).data;
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

export function sessionPath(sessionId: string, action?: string): string {
  return `/v1/sessions/${encodeURIComponent(sessionId)}${action === undefined ? "" : `/${action}`}`;
}
