// `StateFile`: the state of the stack as its supervisor writes it (local-stack-1).

import { defined, toError } from "@holdfast/core";
import { replacePrivate } from "@holdfast/system";
import type { StackState, StackStatus } from "@holdfast/place/local-stack";

export type StateChange = Partial<Omit<StackState, "problem">> & { readonly problem?: string | undefined };

export class StateFile {
  readonly #path: string;
  readonly #failed: (message: string) => void;
  #state: StackState;

  /** @param failed called when the file cannot be written. The stack runs without it. */
  constructor(path: string, state: StackState, failed: (message: string) => void) {
    this.#path = path;
    this.#state = state;
    this.#failed = failed;
  }

  get state(): StackState {
    return this.#state;
  }

  /** A stack that has stopped changes no more. */
  change(change: StateChange): void {
    if (isFinal(this.#state.status)) return;
    const { problem, ...state } = { ...this.#state, ...change };
    const processes = isFinal(state.status) ? [] : state.processes;
    this.#state = { ...state, processes, ...defined({ problem }) };
    try {
      replacePrivate(this.#path, `${JSON.stringify(this.#state)}\n`);
    } catch (error) {
      this.#failed(toError(error).message);
    }
  }
}

function isFinal(status: StackStatus): boolean {
  return status === "stopped" || status === "failed";
}
