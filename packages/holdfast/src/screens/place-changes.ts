// `followPlaces`: says when sessions of a place have changed, so that a screen reads only then.
//
//   place-changes-1. A coordinator sends a stream of changes. A database's files are looked at without reading them.
//   place-changes-2. A stream that breaks is a change, too: the screen reads, and finds the error. It is opened again after a while.

import { SessionService } from "@holdfast/proto";
import { CoordinatorConnection } from "@holdfast/storage/remote";
import type { CoordinatorAccess } from "../place/coordinator-access.ts";
import type { Database } from "../place/project.ts";
import { projectStorage } from "../place/project-storage.ts";

const AGAIN_MS = 1_000;

/** @param onChange must not throw. @returns the end of following. */
export function followPlaces(places: readonly Database[], onChange: () => void): () => void {
  const ends = places.map((place) =>
    place.coordinator === undefined
      ? (projectStorage(place).follow?.(undefined, onChange) ?? (() => {}))
      : followCoordinator(place.coordinator, onChange),
  );
  return () => ends.forEach((end) => end());
}

function followCoordinator({ url, token }: CoordinatorAccess, onChange: () => void): () => void {
  const ended = new AbortController();
  void (async () => {
    while (!ended.signal.aborted) {
      const connection = new CoordinatorConnection({ url, token });
      try {
        const stream = connection.client(SessionService).watchAll({}, { signal: ended.signal, timeoutMs: 0 });
        for await (const _ of stream) onChange();
      } catch {
        if (!ended.signal.aborted) onChange(); // place-changes-2.
      } finally {
        connection.close();
      }
      if (!ended.signal.aborted) await pause(AGAIN_MS, ended.signal);
    }
  })();
  return () => ended.abort();
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  signal.addEventListener("abort", () => resolve(), { once: true });
  return promise.finally(() => clearTimeout(timer));
}
