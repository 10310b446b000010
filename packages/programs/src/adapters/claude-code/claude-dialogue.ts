// `ClaudeDialogue`: one turn over the stream-json protocol of Claude Code. `ClaudeMessages` reads the messages
// about its work.
//
//   - A message of the user is taken when the program says that it has begun with it.
//   - A request of a kind that is not known gets an error as its answer, because the program waits for one.

import { randomUUID } from "node:crypto";

import type { Delivery, PermissionAnswer, PermissionRequest } from "../../session/external-agent-protocol.ts";
import { fieldsOf, type Fields } from "../../session/fields.ts";
import type { DialogueTurn, LineDialogue } from "../lines/line-dialogue.ts";
import { ClaudeMessages } from "./claude-messages.ts";
import { claudeAnswer, claudeRequest } from "./claude-questions.ts";

export class ClaudeDialogue implements LineDialogue {
  readonly #turn: DialogueTurn;
  readonly #messages: ClaudeMessages;
  readonly #asked = new Map<string, PermissionRequest>();
  /** The messages to the running turn that the program has not begun with, by their ids. */
  readonly #steered = new Map<unknown, (delivery: Delivery) => void>();

  constructor(turn: DialogueTurn) {
    this.#turn = turn;
    this.#messages = new ClaudeMessages(turn);
  }

  get hasStarted(): boolean {
    return this.#messages.hasStarted;
  }

  begin(): void {
    this.#say(this.#turn.prompt, this.#turn.isCommand);
  }

  message(message: Fields): void {
    const { type, subtype, state, request_id: requestId } = message;
    // The program has read its settings before it says that it begins.
    if (subtype === "init") this.#turn.toolFile?.remove();
    if (state === "started" || state === "completed")
      for (const id of Object.values(message)) this.#steered.get(id)?.("injected");
    if (typeof requestId !== "string") this.#messages.message(message);
    else if (type === "control_request") this.#asks(requestId, fieldsOf(message["request"]));
    else if (type === "control_cancel_request") this.#withdrawn(requestId);
  }

  answer(requestId: string, answer: PermissionAnswer): boolean {
    const request = this.#asked.get(requestId);
    if (request === undefined) return false;
    this.#asked.delete(requestId);
    const response = claudeAnswer(request, answer);
    this.#respond({ subtype: "success", request_id: requestId, response });
    return true;
  }

  steer(text: string): Promise<Delivery> {
    const { promise, resolve } = Promise.withResolvers<Delivery>();
    this.#steered.set(this.#say(text), resolve);
    return promise;
  }

  next(prompt: string, isCommand?: true): void {
    this.#say(prompt, isCommand);
  }

  interrupt(): void {
    const request = { subtype: "interrupt", cancel_queued: true };
    this.#turn.send({ type: "control_request", request_id: randomUUID(), request });
  }

  #asks(requestId: string, request: Fields): void {
    const asked = claudeRequest(requestId, request);
    if (typeof asked === "string")
      return this.#respond({
        subtype: "error",
        request_id: requestId,
        error: `Holdfast does not support the request ${asked}`,
      });
    this.#asked.set(requestId, asked);
    this.#turn.emit({ type: "permission_request", request: asked });
  }

  #withdrawn(requestId: string): void {
    if (this.#asked.delete(requestId)) this.#turn.emit({ type: "permission_withdrawn", requestId });
  }

  #respond(response: Fields): void {
    this.#turn.send({ type: "control_response", response });
  }

  /**
   * `client_composed` keeps the program from reading commands and names of files in a text that a machine may
   * have written. A command is one that a person has typed.
   *
   * @returns the id of the message.
   */
  #say(text: string, isCommand = false): string {
    const uuid = randomUUID();
    const message = { role: "user", content: [{ type: "text", text }] };
    this.#turn.send({ type: "user", uuid, client_composed: !isCommand, parent_tool_use_id: null, message });
    return uuid;
  }
}
