// `CustomDialogue`: one turn of a program that speaks Holdfast's own JSON lines, which
// `docs/external-agents.md` describes for people.
//
//   - The first line that the program gets is the prompt. The turn is over with a line of the type `done`,
//     `error` or `unknown_session`, and with nothing else.
//   - A resumed session is `unknown_session` if the program names another id than the one it was given.

import type { Author, Delivery, PermissionAnswer } from "../../session/external-agent-protocol.ts";
import { countOf, fieldsOf, recordedResult, textOr, type Fields } from "../../session/fields.ts";
import { planStepsOf } from "../lines/plan-steps.ts";
import type { DialogueTurn, LineDialogue } from "../lines/line-dialogue.ts";

const NO_TOOLS = { text: "this session has no tools", isError: true };

export class CustomDialogue implements LineDialogue {
  hasStarted = false;
  readonly #turn: DialogueTurn;
  readonly #asked = new Set<string>();
  #lastText = "";
  #callCount = 0;

  constructor(turn: DialogueTurn) {
    this.#turn = turn;
  }

  begin(): void {
    const { prompt: text, agentSessionId: session, resumedId, isCutOff: cutOff, ...place } = this.#turn;
    const { folder, model, permissionMode } = place;
    const resumed = resumedId !== null;
    this.#turn.send({ type: "prompt", text, session, resumed, cutOff, folder, model, permissionMode });
  }

  message(message: Fields): void {
    const { type, text } = message;
    if (type === "unknown_session") return this.#turn.end({ type });
    if (!this.#opens(message)) return;
    const { parent } = message;
    const author: Author = typeof parent === "string" ? { parentCallId: parent } : {};
    switch (type) {
      case "delta":
        return this.#turn.emit({ type: "text_delta", text: textOr(text, "") });
      case "text":
        if (author.parentCallId === undefined) this.#lastText = textOr(text, "");
        return this.#turn.emit({ type, text: textOr(text, ""), ...author });
      case "thinking":
        return this.#turn.emit({ type, text: textOr(text, ""), ...author });
      case "notice":
        return this.#turn.emit({ type, text: textOr(text, "") });
      case "plan":
        return this.#turn.emit({ type, steps: planStepsOf(message["steps"], "text") ?? [], ...author });
      case "tool_call":
        return this.#called(message, author);
      case "tool_result": {
        const id = textOr(message["id"], String(this.#callCount));
        const isError = message["isError"] === true;
        return this.#turn.emit({ type, id, text: recordedResult(textOr(text, "")), isError, ...author });
      }
      case "ask":
        return this.#asks(message);
      case "call":
        return void this.#callsSession(message);
      case "usage":
        return this.#use(message);
      case "done":
        return this.#turn.end({ type: "answered", text: textOr(text, this.#lastText) });
      case "error":
        return this.#turn.end({ type: "error", message: textOr(message["message"], "no reason given") });
      case "aborted":
        return this.#turn.end({ type });
      default: // external-agent-protocol-6.
    }
  }

  answer(requestId: string, answer: PermissionAnswer): boolean {
    if (!this.#asked.delete(requestId)) return false;
    this.#turn.send({ type: "answer", id: requestId, ...answer });
    return true;
  }

  /** A message may come at any moment: the program reads it when it reads its next line. */
  steer(text: string): Promise<Delivery> {
    this.#turn.send({ type: "message", text });
    return Promise.resolve("injected");
  }

  interrupt(): void {
    this.#asked.clear();
    this.#turn.send({ type: "interrupt" });
  }

  /** @returns whether the turn goes on. */
  #opens({ type, session, model }: Fields): boolean {
    if (type === "session" && session !== undefined && session !== this.#turn.agentSessionId) {
      this.#turn.end({ type: "unknown_session" });
      return false;
    }
    if (this.hasStarted) return true;
    this.hasStarted = true;
    this.#turn.emit({ type: "session_started", model: textOr(model, "unknown"), boundId: null });
    return true;
  }

  #called({ id, name, input }: Fields, author: Author): void {
    this.#callCount++;
    const call = {
      id: textOr(id, String(this.#callCount)),
      name: textOr(name, "tool"),
      input: fieldsOf(input),
    };
    this.#turn.emit({ type: "tool_call", ...call, ...author });
  }

  #asks({ id, tool, input }: Fields): void {
    const requestId = textOr(id, "");
    this.#asked.add(requestId);
    const request = { requestId, toolCallId: requestId, tool: textOr(tool, "tool"), input: fieldsOf(input) };
    this.#turn.emit({ type: "permission_request", request });
  }

  async #callsSession({ id, tool, input }: Fields): Promise<void> {
    const { wayBack } = this.#turn;
    const result = (await wayBack?.call(textOr(tool, ""), input)) ?? NO_TOOLS;
    this.#turn.send({ type: "call_result", id, ...result });
  }

  #use({ model, inputTokens, outputTokens }: Fields): void {
    this.#turn.emit({
      type: "usage",
      usage: {
        model: textOr(model, "unknown"),
        inputTokens: countOf(inputTokens),
        outputTokens: countOf(outputTokens),
      },
    });
  }
}
