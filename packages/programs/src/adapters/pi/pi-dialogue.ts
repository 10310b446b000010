// `PiDialogue`: one turn over Pi's RPC mode.
//
//   - Pi opens a session by its id or makes an empty one. An empty one, or another id, is `unknown_session`
//     for a resumed session, and no prompt is sent to it.
//   - The turn is over when Pi has settled: `agent_end` may be followed by retries and by queued messages.
//   - A refused command may come back without its id. Such a response belongs to the oldest open command of
//     its name.
//   - The gate asks about every call. Calls that only read are allowed at once, and so are changes of files
//     in the mode `acceptEdits`.

import type { Delivery, ExternalEnd, PermissionAnswer } from "../../session/external-agent-protocol.ts";
import { fieldsOf, listOf, parseFields, partsText, textOr, type Fields } from "../../session/fields.ts";
import type { DialogueTurn, LineDialogue } from "../lines/line-dialogue.ts";
import { piCallOf, piModel } from "./pi-record.ts";

const READING = ["read", "ls", "find", "grep"];
const EDITING = ["edit", "write"];
/** The titles of the requests of our extension (`pi-gate.ts`). */
const GATE = "holdfast:permission";
const CALL = "holdfast:call";

interface Command {
  readonly id: string;
  readonly type: string;
  readonly reply: (response: Fields) => void;
}

export class PiDialogue implements LineDialogue {
  hasStarted = false;
  readonly #turn: DialogueTurn;
  #commands: Command[] = [];
  #commandCount = 0;
  #isPrompted = false;
  #end: ExternalEnd = { type: "answered", text: "" };
  readonly #asked = new Set<string>();

  constructor(turn: DialogueTurn) {
    this.#turn = turn;
  }

  begin(): void {
    this.#command("get_state", {}, (response) => this.#opened(response));
  }

  message(message: Fields): void {
    switch (message["type"]) {
      case "response":
        return this.#replied(message);
      case "extension_ui_request":
        return this.#asks(message);
      case "message_update": {
        const { type, delta } = fieldsOf(message["assistantMessageEvent"]);
        if (type === "text_delta" && typeof delta === "string")
          this.#turn.emit({ type: "text_delta", text: delta });
        return;
      }
      case "message_end":
        return this.#said(fieldsOf(message["message"]));
      case "tool_execution_start": {
        const { toolCallId: id, toolName, args } = message;
        if (typeof id === "string")
          this.#turn.emit({ type: "tool_call", id, name: textOr(toolName, ""), input: fieldsOf(args) });
        return;
      }
      case "tool_execution_end": {
        const { toolCallId: id, result, isError } = message;
        if (typeof id !== "string") return;
        this.#turn.emit({
          type: "tool_result",
          id,
          text: partsText(fieldsOf(result)["content"]),
          isError: isError === true,
        });
        return;
      }
      case "auto_retry_start":
        this.#turn.emit({
          type: "notice",
          text: `the model's API failed (${textOr(message["errorMessage"], "no reason given")}); it is tried again`,
        });
        return;
      case "agent_settled":
        if (this.#isPrompted) this.#turn.end(this.#end);
        return;
      default: // external-agent-protocol-6.
    }
  }

  answer(requestId: string, answer: PermissionAnswer): boolean {
    if (!this.#asked.delete(requestId)) return false;
    this.#respond(requestId, answer.allowed ? "allow" : answer.message);
    return true;
  }

  steer(text: string): Promise<Delivery> {
    const { promise, resolve } = Promise.withResolvers<Delivery>();
    this.#command("steer", { message: text }, ({ success }) =>
      resolve(success === true ? "injected" : "rejected"),
    );
    return promise;
  }

  next(prompt: string): void {
    this.#end = { type: "answered", text: "" };
    this.#prompt(prompt);
  }

  interrupt(): void {
    for (const id of this.#asked) this.#turn.send({ type: "extension_ui_response", id, cancelled: true });
    this.#asked.clear();
    if (!this.#isPrompted) return this.#turn.end({ type: "aborted" });
    this.#command("clear_queue", {}, () => {});
    this.#command("abort", {}, () => {});
  }

  #opened({ success, data, error }: Fields): void {
    const { sessionId, messageCount, model } = fieldsOf(data);
    const { agentSessionId, resumedId, prompt } = this.#turn;
    if (success !== true)
      return this.#turn.end({ type: "error", message: textOr(error, "Pi does not tell its state") });
    if (sessionId !== agentSessionId || (resumedId !== null && messageCount === 0))
      return this.#turn.end({ type: "unknown_session" });
    this.hasStarted = true;
    this.#turn.emit({ type: "session_started", model: piModel(fieldsOf(model)), boundId: null });
    this.#isPrompted = true;
    this.#prompt(prompt);
  }

  #prompt(message: string): void {
    this.#command("prompt", { message }, (response) => {
      if (response["success"] !== true)
        this.#turn.end({ type: "error", message: textOr(response["error"], "Pi refused the prompt") });
    });
  }

  #command(type: string, fields: Fields, reply: Command["reply"]): void {
    const id = `holdfast-${++this.#commandCount}`;
    this.#commands.push({ id, type, reply });
    this.#turn.send({ id, type, ...fields });
  }

  #replied(response: Fields): void {
    const { id, command: type } = response;
    const command = this.#commands.find((one) => (id === undefined ? one.type === type : one.id === id));
    this.#commands = this.#commands.filter((one) => one !== command);
    command?.reply(response);
  }

  #asks({ id, method, title, placeholder }: Fields): void {
    if (typeof id !== "string" || !["select", "confirm", "input", "editor"].includes(textOr(method, "")))
      return;
    if (title === CALL) return void this.#callsSession(id, parseFields(textOr(placeholder, "")));
    const asked = title === GATE ? parseFields(textOr(placeholder, "")) : undefined;
    // A question of another extension, which nobody here can answer.
    if (asked === undefined) return this.#turn.send({ type: "extension_ui_response", id, cancelled: true });
    const tool = textOr(asked["tool"], "");
    if (READING.includes(tool) || this.#isOfSession(tool)) return this.#respond(id, "allow");
    if (this.#turn.permissionMode === "acceptEdits" && EDITING.includes(tool))
      return this.#respond(id, "allow");
    this.#asked.add(id);
    const request = {
      requestId: id,
      toolCallId: textOr(asked["toolCallId"], ""),
      tool,
      input: fieldsOf(asked["input"]),
    };
    this.#turn.emit({ type: "permission_request", request });
  }

  /**
   * The tools of the session. A tool of Pi's own, or of another extension, may have such a name only where
   * ours is not offered.
   */
  #isOfSession(tool: string): boolean {
    return this.#turn.wayBack?.tools.some(({ name }) => name === tool) === true;
  }

  async #callsSession(id: string, asked: Fields = {}): Promise<void> {
    const { wayBack } = this.#turn;
    const result = await wayBack?.call(textOr(asked["tool"], ""), asked["input"]);
    this.#respond(id, JSON.stringify(result ?? { text: "this session has no tools", isError: true }));
  }

  #respond(id: string, value: string): void {
    this.#turn.send({ type: "extension_ui_response", id, value });
  }

  #said(message: Fields): void {
    const { role, content, stopReason, errorMessage } = message;
    if (role !== "assistant") return;
    let last = "";
    for (const { type, text, thinking } of listOf(content)) {
      if (type === "text" && typeof text === "string" && text !== "") {
        last = text;
        this.#turn.emit({ type: "text", text });
      }
      if (type === "thinking" && typeof thinking === "string" && thinking !== "")
        this.#turn.emit({ type: "thinking", text: thinking });
    }
    const call = piCallOf(message, this.#turn.unpriced);
    if (call !== undefined) this.#turn.emit({ type: "usage", usage: call.usage, recordIds: [call.recordId] });
    if (stopReason === "aborted") this.#end = { type: "aborted" };
    else if (stopReason === "error")
      this.#end = { type: "error", message: textOr(errorMessage, "the model's API failed") };
    else this.#end = { type: "answered", text: last };
  }
}
