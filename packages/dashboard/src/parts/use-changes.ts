// `useChanges`: reads again what a screen shows whenever something has changed on the server.

import { createContext, useContext, useEffect, useRef } from "react";
import type { ServerChanges } from "../api/server-changes.ts";

/** The changes of the server that the page is signed in to. */
export const ChangesContext = createContext<ServerChanges | undefined>(undefined);

/** The `meta` of a query that is read again after changes, without a hook of its own. */
export const LIVE = { isLive: true };

/** @param read must not throw. */
export function useChanges(read: () => Promise<unknown>): void {
  const changes = useContext(ChangesContext);
  const latest = useRef(read);
  latest.current = read;
  useEffect(() => changes?.onChange(() => latest.current()), [changes]);
}
