// `SessionEntries`: the sessions that are claimed in this process or about to be, with the state of each.
//
//   session-entries-1. A session has an entry from the call that brings it here until it is not driven any
//       more and that call is done.

import { ChurnMap, type HoldfastError } from "@holdfast/core";
import type { Agent } from "../agents/define.ts";
import type { SessionDriver } from "../session/session-driver.ts";

/** A session with a driver. */
export interface Live {
  readonly type: "live";
  readonly driver: SessionDriver;
  readonly agent: Agent;
  readonly payers: readonly string[];
  /** How often it was loaded again after a refused commit. */
  readonly reloads: number;
  /** Notifies the caller of `create` that the session will not be created. */
  readonly onFailedCreation: ((error: HoldfastError) => void) | undefined;
}

type State =
  /** It is read, claimed, created or parked. */
  | { readonly type: "activating" }
  /** It is claimed, and its snapshot is loaded. `arrived`: something arrived meanwhile. */
  | { readonly type: "loading"; arrived: boolean }
  | Live;

interface Entry {
  state: State;
  /** Settles with the call that brings the session here; absent after that. */
  activation: Promise<void> | undefined;
}

const ACTIVATING: State = { type: "activating" };

export class SessionEntries {
  readonly #entries = new ChurnMap<string, Entry>();
  #ending: readonly string[] = [];

  get size(): number {
    return this.#entries.size;
  }

  /** The sessions that are claimed here, or about to be. */
  get held(): readonly string[] {
    return [...this.ids(), ...this.#ending];
  }

  /** Whether any session is claimed here, or about to be. */
  get isHolding(): boolean {
    return this.size + this.#ending.length > 0;
  }

  get drivers(): readonly SessionDriver[] {
    return this.allLive().map(({ driver }) => driver);
  }

  /** These sessions stay claimed until their tasks have ended, also when they are not driven any more. */
  keepClaimed(sessionIds: readonly string[]): void {
    this.#ending = sessionIds;
  }

  has(sessionId: string): boolean {
    return this.#entries.has(sessionId);
  }

  ids(): readonly string[] {
    return Array.from(this.#entries, ([sessionId]) => sessionId);
  }

  state(sessionId: string): State | undefined {
    return this.#entries.get(sessionId)?.state;
  }

  live(sessionId: string): Live | undefined {
    const state = this.state(sessionId);
    return state?.type === "live" ? state : undefined;
  }

  allLive(): readonly Live[] {
    return Array.from(this.#entries, ([, { state }]) => state).filter((state) => state.type === "live");
  }

  activation(sessionId: string): Promise<void> | undefined {
    return this.#entries.get(sessionId)?.activation;
  }

  activations(): readonly Promise<void>[] {
    return Array.from(this.#entries, ([, { activation }]) => activation ?? []).flat();
  }

  /** Bring a session here. The entry exists before `begin` is called. */
  activate(sessionId: string, begin: () => Promise<void>): Promise<void> {
    const entry = this.#entries.get(sessionId) ?? { state: ACTIVATING, activation: undefined };
    this.#entries.set(sessionId, entry);
    const activation = begin().finally(() => {
      if (entry.activation !== activation) return;
      entry.activation = undefined;
      if (entry.state.type !== "live") this.#entries.delete(sessionId);
    });
    entry.activation = activation;
    return activation;
  }

  /** The next step of a session that has an entry. */
  set(sessionId: string, state: State): void {
    const entry = this.#entries.get(sessionId);
    if (entry !== undefined) entry.state = state;
  }

  /** The session is not driven any more. */
  leave(sessionId: string): void {
    if (this.activation(sessionId) === undefined) this.#entries.delete(sessionId);
    else this.set(sessionId, ACTIVATING);
  }
}
