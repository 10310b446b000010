// `followPlaces`: says when sessions of a place have changed, so that a screen reads only then.
//
//   - A coordinator sends a stream of changes. A database's files are looked at without reading them.
//   - A stream that breaks is a change, too: the screen reads, and finds the error. It is opened again after
//     a while.

import { repeat } from "@holdfast/core";
import { SessionService } from "@holdfast/proto";
import { systemClock } from "@holdfast/runtime";
import { CoordinatorConnection } from "@holdfast/storage/remote";
import type { CoordinatorAccess } from "@holdfast/place/coordinator-access";
import type { Database } from "@holdfast/place/project";
import { projectStorage } from "@holdfast/place/project-storage";

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
  const { signal } = ended;
  const follow = async (): Promise<void> => {
    const connection = new CoordinatorConnection({ url, token });
    try {
      const stream = connection.client(SessionService).watchAll({}, { signal, timeoutMs: 0 });
      for await (const _ of stream) onChange();
    } catch {
      // A broken stream is a change, too: the screen reads and finds the error.
      if (!signal.aborted) onChange();
    } finally {
      connection.close();
    }
  };
  const streams = repeat({ clock: systemClock, pauseMs: () => AGAIN_MS, look: follow, atOnce: true });
  return () => {
    streams.close();
    ended.abort();
  };
}
