// A listener to arrivals. Over a network, an arrival may come after the answer to the change that caused it.

import type { Arrival } from "@holdfast/core";
import type { Fixture } from "./fixture.ts";

export interface ArrivalListener {
  /** The received arrivals, as soon as there are this many. */
  received(count: number): Promise<readonly Arrival[]>;
  unsubscribe(): void;
}

export function listen(fixture: Fixture, also?: () => void): ArrivalListener {
  const arrivals: Arrival[] = [];
  let wake = () => {};
  const unsubscribe = fixture.storage.subscribe((arrival) => {
    arrivals.push(arrival);
    also?.();
    wake();
  });
  return {
    unsubscribe,
    async received(count) {
      while (arrivals.length < count) await new Promise<void>((resolve) => (wake = resolve));
      return arrivals;
    },
  };
}
