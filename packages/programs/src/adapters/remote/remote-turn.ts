// One turn of an agent that is no process of this machine's user (`RemoteTurn`): its events, its end and its
// abort. The talk with the agent is given to it.

import { toError } from "@holdfast/core";

import { AgentTurn } from "../../session/program/agent-turn.ts";
import type { ExternalEnd, ExternalEvent } from "../../session/external-agent-protocol.ts";
import type { WayBack } from "../../session/way-back/way-back.ts";

/** Begins the turn and follows it to its end. */
export type RemoteTalk = (turn: {
  readonly emit: (event: ExternalEvent) => void;
  /** Aborted when the turn is. */
  readonly signal: AbortSignal;
}) => Promise<ExternalEnd>;

const ERROR_CHARS = 1_000;

export class RemoteTurn extends AgentTurn {
  readonly ended: Promise<ExternalEnd>;
  readonly #aborting = new AbortController();
  #hasStarted = false;

  constructor(talk: RemoteTalk) {
    super();
    const emit = (event: ExternalEvent): void => {
      if (event.type === "session_started") this.#hasStarted = true;
      this.give(event);
    };
    const { signal } = this.#aborting;
    this.ended = talk({ emit, signal }).then(
      (end) => (signal.aborted && end.type !== "answered" ? { type: "aborted" } : end),
      (error: unknown): ExternalEnd => {
        if (signal.aborted) return { type: "aborted" };
        const message = toError(error).message.slice(0, ERROR_CHARS);
        return { type: "died", message, hasStarted: this.#hasStarted };
      },
    );
  }

  abort(): Promise<ExternalEnd> {
    this.#aborting.abort();
    return this.ended;
  }
}

/** Asks a person by the session. @returns the answer; `undefined` where no session can ask, or the turn is over. */
export async function askSession(
  wayBack: WayBack | undefined,
  input: { readonly question: string; readonly approval?: boolean },
  signal: AbortSignal,
): Promise<string | undefined> {
  if (wayBack === undefined) return undefined;
  const over = new Promise<undefined>((resolve) => {
    signal.addEventListener("abort", () => resolve(undefined), { once: true });
    if (signal.aborted) resolve(undefined);
  });
  const answered = wayBack.call("request_input", input, signal).then(({ text }) => text);
  return Promise.race([answered, over]);
}
