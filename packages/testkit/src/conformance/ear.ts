// Who listens to arrivals. They come when they come: over a network that may be after the answer of what made them.

import type { Arrival } from "@holdfast/core";
import type { Fixture } from "./fixture.ts";

export interface Ear {
  /** What was heard, as soon as it was that much. */
  heard(count: number): Promise<readonly Arrival[]>;
  unsubscribe(): void;
}

export function listen(fixture: Fixture, also?: () => void): Ear {
  const arrivals: Arrival[] = [];
  let wake = () => {};
  const unsubscribe = fixture.storage.subscribe((arrival) => {
    arrivals.push(arrival);
    also?.();
    wake();
  });
  return {
    unsubscribe,
    async heard(count) {
      while (arrivals.length < count) await new Promise<void>((resolve) => (wake = resolve));
      return arrivals;
    },
  };
}
