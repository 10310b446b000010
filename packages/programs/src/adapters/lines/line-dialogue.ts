// The port between a turn (`LineTurn`) and a protocol of JSON lines (`LineDialogue`). A dialogue knows the
// messages and no process.

import type {
  Delivery,
  ExternalEnd,
  ExternalEvent,
  PermissionAnswer,
} from "../../session/external-agent-protocol.ts";
import type { WayBack } from "../../session/way-back/way-back.ts";
import type { Fields } from "../../session/fields.ts";

/** A file by which a program learns of the tools of the session. It is for the user alone, because it has their token. */
export interface ToolFile {
  readonly path: string;
  /** May be called twice. */
  remove(): void;
}

/** The turn, as its dialogue sees it. */
export interface DialogueTurn {
  readonly prompt: string;
  readonly isCommand?: true | undefined;
  readonly folder: string;
  readonly model: string | null;
  readonly permissionMode: string;
  /** The id of our choice for the session. */
  readonly agentSessionId: string;
  /** The id of the session to resume; `null` for a new session. */
  readonly resumedId: string | null;
  /** The last turn of the resumed session was cut off. */
  readonly isCutOff: boolean;
  /** The tools of the session. */
  readonly wayBack: WayBack | undefined;
  /** The file with the tools of the session, which goes with the turn. A dialogue may remove it before. */
  readonly toolFile?: ToolFile | undefined;
  /** The providers of models behind an address of the user's own, where a name says nothing of a price. */
  readonly unpriced: readonly string[];
  /** Writes one message. */
  send(message: Fields): void;
  emit(event: ExternalEvent): void;
  /** The prompt is done: the turn is over, or `next` follows. */
  end(end: ExternalEnd): void;
}

/** One turn in the words of one protocol. */
export interface LineDialogue {
  /**
   * Whether the program has opened the session. From then on a death is one of a turn that has begun, and
   * `session_started` was the first event.
   */
  readonly hasStarted: boolean;
  /**
   * Sends the first messages. The prompt may be among them where the program refuses a session that it does not
   * know. Where it would open another one in its place, the prompt waits until a message has named the session.
   * `unknown_session` means that no prompt was carried out (external-agent-protocol-4).
   */
  begin(): void;
  /** Reads a message of the program. An unknown message changes nothing (external-agent-protocol-6). */
  message(message: Fields): void;
  /** external-agent-protocol-5. @returns whether the request was open. */
  answer(requestId: string, answer: PermissionAnswer): boolean;
  /**
   * Adds a message to the turn. May be called at any time after `begin`. Before the prompt was sent the message
   * is `rejected`, unless the program keeps the order of its input. `injected` means that the program has it.
   * The promise never rejects, and one that is pending at the end of the turn counts as `rejected`.
   */
  steer(text: string): Promise<Delivery>;
  /** Begins with another prompt after the answer. Absent where a process takes one prompt. */
  next?(prompt: string, isCommand?: true): void;
  /** Asks the program to end the turn, and answers open requests. */
  interrupt(): void;
  /** The process has ended: emits what is left of its messages. */
  closed?(): void;
}

export type MakeDialogue = (turn: DialogueTurn) => LineDialogue;
