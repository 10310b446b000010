// `useChanges`: tells a screen whenever something has changed on the server.

import { createContext, useContext, useEffect, useRef } from "react";
import type { ChangeListener, ServerChanges } from "../api/server-changes.ts";

/** The changes of the server that the page is signed in to. */
export const ChangesContext = createContext<ServerChanges | undefined>(undefined);

/** The `meta` of a query that is read again after changes, without a hook of its own. */
export const LIVE = { isLive: true };

export function useChanges(listener: ChangeListener): void {
  const changes = useContext(ChangesContext);
  const latest = useRef(listener);
  latest.current = listener;
  useEffect(
    () =>
      changes?.onChange({
        read: () => latest.current.read(),
        show: (sessions) => latest.current.show?.(sessions) ?? false,
      }),
    [changes],
  );
}
