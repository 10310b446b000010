// `AgentTurn`: a turn that gives its events to its subscriber and takes no message. Turns that take messages
// replace the methods for them.

import type {
  Delivery,
  ExternalAgent,
  ExternalEnd,
  ExternalEvent,
  PermissionAnswer,
  Queueing,
} from "../external-agent-protocol.ts";

/** Events that wait for their subscriber, which comes at once. */
const EVENTS_MAX = 10_000;
export const TOO_MANY_EVENTS = `it wrote more than ${EVENTS_MAX} events at once`;

/** The abilities of an agent whose turns are no more than this. */
export const TAKES_NO_MESSAGE = { steer: "none", followUp: "none", usage: "none", model: false } as const;

export abstract class AgentTurn implements ExternalAgent {
  abstract readonly ended: Promise<ExternalEnd>;
  #subscriber: ((event: ExternalEvent) => void) | undefined;
  readonly #waiting: ExternalEvent[] = [];

  /** @returns whether it was kept: more events have come before the subscriber otherwise than are. */
  protected give(event: ExternalEvent): boolean {
    if (this.#subscriber !== undefined) this.#subscriber(event);
    else if (this.#waiting.length <= EVENTS_MAX) this.#waiting.push(event);
    return this.#waiting.length <= EVENTS_MAX;
  }

  subscribe(subscriber: (event: ExternalEvent) => void): void {
    this.#subscriber = subscriber;
    for (const event of this.#waiting.splice(0)) subscriber(event);
  }

  steer(_text: string): Promise<Delivery> {
    return Promise.resolve("rejected");
  }

  followUp(_text: string): Promise<Queueing> {
    return Promise.resolve("rejected");
  }

  answerPermission(_requestId: string, _answer: PermissionAnswer): Promise<boolean> {
    return Promise.resolve(false);
  }

  abstract abort(isUrgent?: boolean): Promise<ExternalEnd>;
}

class UnknownSession extends AgentTurn {
  readonly ended = Promise.resolve<ExternalEnd>({ type: "unknown_session" });

  abort(): Promise<ExternalEnd> {
    return this.ended;
  }
}

/** A turn of a session that the program cannot know. No process is started. */
export function unknownSession(): ExternalAgent {
  return new UnknownSession();
}
