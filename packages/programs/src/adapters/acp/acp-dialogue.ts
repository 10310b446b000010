// `AcpDialogue`: one turn over the Agent Client Protocol.
//
//   - A session is resumed by the id that the agent gave to it. No second prompt is sent while one is at
//     work: agents do five different things with it. It is sent after the answer, in the same process.
//   - The program's own statement of its abilities counts, unless the table of agents (`ACP_AGENTS`) says that
//     it is wrong.
//   - An open question is answered with `cancelled` when its turn is aborted, as the protocol asks.
//   - The model and the mode are set again in every turn, before its prompt (`acp-options.ts`).
//   acp-dialogue-6. A message joins the turn where the program offers the extension for that
//       (`_session/steering`). Otherwise the turn is interrupted for it, if the program can resume.
//   - A resumed program whose updates are all of another session has opened that one, and does not know ours.

import { randomUUID } from "node:crypto";
import { setImmediate } from "node:timers";
import { toError } from "@holdfast/core";
import type { AnyMessage, ClientConnection } from "@agentclientprotocol/sdk";

import type { Delivery, ExternalEnd, PermissionAnswer } from "../../session/external-agent-protocol.ts";
import type { WayBack } from "../../session/way-back/way-back.ts";
import { WAY_BACK } from "../../session/way-back/way-back-tools.ts";
import { countOf, fieldsOf, isFields, listOf, textOr, type Fields } from "../../session/fields.ts";
import type { DialogueTurn, LineDialogue } from "../lines/line-dialogue.ts";
import { ERROR_CHARS } from "../lines/line-turn.ts";
import { choicesOf, currentModel, optionRequest } from "./acp-options.ts";
import type { AcpAgentFacts } from "./acp-quirks.ts";
import { AcpUpdates } from "./acp-updates.ts";

interface OpenedSession extends Fields {
  readonly sessionId: string;
}

export class AcpDialogue implements LineDialogue {
  /** The updates that a loaded session repeats are none of this turn. */
  hasStarted = false;
  readonly #turn: DialogueTurn;
  readonly #facts: AcpAgentFacts;
  readonly #updates: AcpUpdates;
  readonly #asked = new Map<string, (answer: PermissionAnswer | undefined) => void>();
  readonly #messages: ReadableStream<AnyMessage>;
  #input: ReadableStreamDefaultController<AnyMessage> | undefined;
  #connection: ClientConnection | undefined;
  #sessionId: string | undefined;
  /** The answer of the program to the first request. */
  #started: Fields = {};
  /** Whose updates have come since the prompt: once those of its own session have, those of others are of its sub-agents. */
  #updated: "own" | "other" | undefined;
  #isInterrupted = false;
  #isClosed = false;

  constructor(turn: DialogueTurn, facts: AcpAgentFacts) {
    this.#turn = turn;
    this.#facts = facts;
    this.#updates = new AcpUpdates((event) => turn.emit(event), facts);
    this.#messages = new ReadableStream({ start: (controller) => void (this.#input = controller) });
  }

  begin(): void {
    this.#endWith(this.#open());
  }

  message(message: Fields): void {
    if (message["jsonrpc"] === "2.0") this.#input?.enqueue(message as unknown as AnyMessage);
  }

  answer(requestId: string, answer: PermissionAnswer): boolean {
    const resolve = this.#asked.get(requestId);
    this.#asked.delete(requestId);
    resolve?.(answer);
    return resolve !== undefined;
  }

  /** acp-dialogue-6. */
  async steer(text: string): Promise<Delivery> {
    const sessionId = this.#sessionId;
    const { supported } = fieldsOf(fieldsOf(this.#started["_meta"])["steering"]);
    if (supported !== true || sessionId === undefined) return "rejected";
    const prompt = [{ type: "text", text }];
    const { outcome } = await this.#request("_session/steering", { sessionId, prompt }).catch(
      (): Fields => ({}),
    );
    return outcome === "injected" ? "injected" : "rejected";
  }

  next(prompt: string): void {
    this.#endWith(this.#prompt(prompt));
  }

  interrupt(): void {
    this.#isInterrupted = true;
    const sessionId = this.#sessionId;
    if (sessionId === undefined) return this.#turn.end({ type: "aborted" });
    this.#connection?.agent.notify("session/cancel", { sessionId }).catch(() => {});
    this.#cancelAsked();
  }

  closed(): void {
    this.#isClosed = true;
    this.#connection?.close();
    this.#updates.flush();
  }

  #endWith(talk: Promise<ExternalEnd>): void {
    talk.then(
      (end) => this.#turn.end(end),
      (error: unknown) => {
        // The end of the process says why its connection was closed.
        if (!this.#isClosed) this.#turn.end(refused(error));
      },
    );
  }

  /** @returns the version of the protocol. */
  async #connect(): Promise<number> {
    const { client, methods, PROTOCOL_VERSION } = await import("@agentclientprotocol/sdk"); // It takes longer than starting Node.
    this.#connection = client({ name: "holdfast" })
      .onNotification("*", ({ params }) => this.#update(params))
      .onRequest(methods.client.session.requestPermission as string, fieldsOf, ({ params }) =>
        this.#permission(params),
      )
      .connect({
        readable: this.#messages,
        writable: new WritableStream({ write: (message) => this.#turn.send(message) }),
      });
    return PROTOCOL_VERSION;
  }

  /** The talk with the program until the end of its first prompt: its abilities, a session, the prompt. */
  async #open(): Promise<ExternalEnd> {
    const protocolVersion = await this.#connect();
    this.#started = await this.#request("initialize", {
      protocolVersion,
      clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
    });
    const opened = await this.#session(fieldsOf(this.#started["agentCapabilities"]));
    if (opened === undefined) return { type: "unknown_session" };
    const { sessionId } = opened;
    this.#sessionId = sessionId;
    const model = currentModel(await this.#choose(opened)) ?? "unknown";
    this.hasStarted = true;
    this.#turn.emit({ type: "session_started", model, boundId: sessionId });
    return this.#prompt(this.#turn.prompt);
  }

  async #prompt(text: string): Promise<ExternalEnd> {
    const prompt = [{ type: "text", text }];
    const response = await this.#request("session/prompt", { sessionId: this.#sessionId, prompt });
    await new Promise((resolve) => setImmediate(resolve)); // Updates that came before the response are handled.
    this.#updates.flush();
    if (this.#turn.resumedId !== null && this.#updated === "other") return { type: "unknown_session" };
    this.#use(fieldsOf(response["usage"]));
    const { stopReason: reason } = response;
    if (reason === "cancelled") return { type: "aborted" };
    if (reason === "end_turn") return { type: "answered", text: this.#updates.lastText };
    return { type: "error", message: `the turn ended with ${textOr(reason, "no reason")}` };
  }

  /** @returns the choices that the session has then. */
  async #choose({ sessionId, ...opened }: OpenedSession): Promise<Fields> {
    let offered: Fields = opened;
    for (const choice of choicesOf(this.#turn, this.#facts.modes)) {
      const request = optionRequest(offered, choice, this.#facts.name);
      if (request === undefined) continue;
      offered = { ...offered, ...(await this.#request(request.method, { sessionId, ...request.params })) };
    }
    return offered;
  }

  /** @returns the session with the choices that it offers, `undefined` when the program does not know it. */
  async #session(abilities: Fields): Promise<OpenedSession | undefined> {
    const { folder, resumedId, wayBack } = this.#turn;
    const place = { cwd: folder, mcpServers: wayBack === undefined ? [] : [serverOf(wayBack)] };
    if (resumedId === null) {
      const opened = await this.#request("session/new", place);
      return { ...opened, sessionId: textOr(opened["sessionId"], "") };
    }
    const canResume = isFields(fieldsOf(abilities["sessionCapabilities"])["resume"]);
    if (!canResume && abilities["loadSession"] !== true) return undefined;
    try {
      const method = canResume ? "session/resume" : "session/load";
      return { ...(await this.#request(method, { ...place, sessionId: resumedId })), sessionId: resumedId };
    } catch (error) {
      if (this.#isClosed) throw error;
      return undefined;
    }
  }

  async #request(method: string, params: Fields): Promise<Fields> {
    return fieldsOf(await this.#connection?.agent.request(method, params));
  }

  #update(params: unknown): void {
    const { update, sessionId } = fieldsOf(params);
    if (!this.hasStarted || !isFields(update)) return;
    if (sessionId !== this.#sessionId) {
      this.#updated ??= "other";
      return;
    }
    this.#updated = "own";
    this.#updates.update(update);
  }

  async #permission({ toolCall, options }: Fields): Promise<Fields> {
    const call = fieldsOf(toolCall);
    const toolCallId = textOr(call["toolCallId"], "");
    this.#updates.call(call, true);
    const { name: tool, input } = this.#updates.callOf(toolCallId);
    const requestId = randomUUID();
    const { promise, resolve } = Promise.withResolvers<PermissionAnswer | undefined>();
    this.#asked.set(requestId, resolve);
    if (this.#isInterrupted) this.#cancelAsked();
    else this.#turn.emit({ type: "permission_request", request: { requestId, toolCallId, tool, input } });
    const answer = await promise;
    const kind = answer?.allowed === true ? "allow_once" : "reject_once";
    const option = answer && listOf(options).find((one) => one["kind"] === kind);
    return {
      outcome:
        option === undefined
          ? { outcome: "cancelled" }
          : { outcome: "selected", optionId: option["optionId"] },
    };
  }

  #cancelAsked(): void {
    for (const resolve of this.#asked.values()) resolve(undefined);
    this.#asked.clear();
  }

  #use(usage: Fields): void {
    if (!this.#facts.reportsUsage) return;
    const output = countOf(usage["outputTokens"]);
    // The total has the tokens of a cache, which `inputTokens` of some programs has not.
    const input = Math.max(countOf(usage["inputTokens"]), countOf(usage["totalTokens"]) - output);
    if (input + output === 0) return;
    const model = `${this.#facts.name}/unknown`;
    this.#turn.emit({ type: "usage", usage: { model, inputTokens: input, outputTokens: output } });
  }
}

/** The tools of the session as an MCP server. Every agent accepts one over standard streams. */
function serverOf({ command, args, env }: WayBack): Fields {
  const variables = Object.entries(env).map(([name, value]) => ({ name, value }));
  return { name: WAY_BACK, command, args, env: variables };
}

function refused(error: unknown): ExternalEnd {
  const { message } = toError(error);
  const data = error instanceof Error && "data" in error ? error.data : undefined;
  const details = data === undefined ? "" : `: ${JSON.stringify(data)}`;
  const isAuth = error instanceof Error && "code" in error && error.code === -32_000; // By the protocol.
  return {
    type: "error",
    message: `${message}${details}`.slice(0, ERROR_CHARS),
    ...(isAuth ? { cause: "auth_required" } : {}),
  };
}
