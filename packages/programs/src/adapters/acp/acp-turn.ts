// One turn of a program that speaks the Agent Client Protocol (`AcpTurn`): the talk with it, and its end. The
// rules are in `acp-agent.ts`.

import { randomUUID } from "node:crypto";
import { toError } from "@holdfast/core";
import type { ClientConnection } from "@agentclientprotocol/sdk";
import type { ProcessReport, SupervisedProcess } from "@holdfast/system";

import {
  AGENT_PROCESS,
  EventQueue,
  type StopLimits,
  TOO_MANY_EVENTS,
  whyDied,
  withProcess,
} from "../../session/program/agent-process.ts";
import type {
  Delivery,
  ExternalAgent,
  ExternalEnd,
  ExternalEvent,
  PermissionAnswer,
  Queueing,
} from "../../session/external-agent-protocol.ts";
import { countOf, fieldsOf, isFields, textOr, type Fields } from "../../session/fields.ts";
import type { WayBack } from "../../session/way-back/way-back.ts";
import { currentModel, optionRequest, type AcpChoice } from "./acp-options.ts";
import type { AcpAgentFacts } from "./acp-quirks.ts";
import { serverOf } from "./acp-server.ts";
import { AcpUpdates } from "./acp-updates.ts";
import { isClosed, type AcpWire } from "./acp-wire.ts";

/** From the end of the turn to SIGTERM: some programs do not end with their input. */
const EXIT_MS = 2_000;

interface Asked {
  /** Loaded by the first turn: it takes longer than starting Node. */
  readonly sdk: typeof import("@agentclientprotocol/sdk");
  readonly facts: AcpAgentFacts;
  readonly folder: string;
  readonly choices: readonly AcpChoice[];
  readonly prompt: string;
  readonly resumedId: string | null;
  readonly wayBack: WayBack | undefined;
  readonly limits: StopLimits;
}

interface OpenedSession extends Fields {
  readonly sessionId: string;
}

export class AcpTurn implements ExternalAgent {
  readonly ended: Promise<ExternalEnd>;
  readonly #process: SupervisedProcess;
  readonly #wire: AcpWire;
  readonly #asked: Asked;
  readonly #connection: ClientConnection;
  readonly #updates: AcpUpdates;
  readonly #requests = new Map<string, (answer: PermissionAnswer | undefined) => void>();
  #sessionId: string | undefined;
  /** The updates that a loaded session repeats are none of this turn. */
  #isPrompted = false;
  #takesMessages = false;
  /** Whose updates have come since the prompt: once those of its own session have, those of others are of its sub-agents. */
  #updated: "own" | "other" | undefined;
  readonly #followUps: string[] = [];
  #isAborted = false;
  #end: ExternalEnd | undefined;
  readonly #events = new EventQueue();

  constructor(process: SupervisedProcess, wire: AcpWire, asked: Asked) {
    this.#process = process;
    this.#wire = wire;
    this.#asked = asked;
    this.#updates = new AcpUpdates((event) => this.#give(event), asked.facts.titlesAreCommands);
    wire.onBroken = () => void process.stop("it broke the protocol", { graceMs: 0 });
    const { client, methods } = asked.sdk;
    this.#connection = client({ name: "holdfast" })
      .onNotification("*", ({ params }) => this.#update(params))
      .onRequest(methods.client.session.requestPermission as string, fieldsOf, ({ params }) =>
        this.#permission(params),
      )
      .connect({
        readable: wire.messages,
        writable: new WritableStream({
          write: async (message) => void (await process.write(`${JSON.stringify(message)}\n`)),
        }),
      });
    const talked = this.#talk().then(
      (end) => (this.#end = end),
      (error: unknown) => (this.#end ??= this.#refused(error)),
    );
    void talked.then(() => {
      process.closeInput(); // An abort that is under way waits for this.
      return process.stop("its turn is over", {
        ask: () => {},
        askMs: EXIT_MS,
        graceMs: asked.limits.graceMs,
      });
    });
    this.ended = process.ended.then((report) => withProcess(this.#endOf(report), report));
  }

  subscribe(subscriber: (event: ExternalEvent) => void): void {
    this.#events.subscribe(subscriber);
  }

  /** acp-agent-6. */
  async steer(text: string): Promise<Delivery> {
    const sessionId = this.#sessionId;
    if (!this.#takesMessages || sessionId === undefined || this.#end !== undefined) return "rejected";
    const prompt = [{ type: "text", text }];
    const given = this.#request("_session/steering", { sessionId, prompt }).catch((): Fields => ({}));
    const { outcome } = await Promise.race([given, this.ended.then((): Fields => ({}))]);
    return outcome === "injected" ? "injected" : "rejected";
  }

  followUp(text: string): Promise<Queueing> {
    if (this.#end !== undefined || this.#isAborted) return Promise.resolve("rejected");
    this.#followUps.push(text);
    return Promise.resolve("queued");
  }

  answerPermission(requestId: string, answer: PermissionAnswer): Promise<boolean> {
    const resolve = this.#end === undefined ? this.#requests.get(requestId) : undefined;
    this.#requests.delete(requestId);
    resolve?.(answer);
    return Promise.resolve(resolve !== undefined);
  }

  suspend(): Promise<ExternalEnd> {
    return this.ended; // The process ends with its turn.
  }

  abort(isUrgent = false): Promise<ExternalEnd> {
    this.#isAborted = true;
    const ask = (): void => {
      const sessionId = this.#sessionId;
      if (sessionId === undefined) return this.#process.closeInput();
      this.#connection.agent
        .notify(this.#asked.sdk.methods.agent.session.cancel, { sessionId })
        .catch(() => {});
      this.#cancelRequests();
    };
    void this.#process.stop("its turn was aborted", { ask, ...this.#asked.limits, isUrgent });
    return this.ended;
  }

  /** The whole conversation with the program: its abilities, a session, the prompt. */
  async #talk(): Promise<ExternalEnd> {
    const started = await this.#request("initialize", {
      protocolVersion: this.#asked.sdk.PROTOCOL_VERSION,
      clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
    });
    this.#takesMessages = fieldsOf(fieldsOf(started["_meta"])["steering"])["supported"] === true;
    const opened = await this.#open(fieldsOf(started["agentCapabilities"]));
    if (opened === undefined) return { type: "unknown_session" };
    const { sessionId } = opened;
    this.#sessionId = sessionId;
    const model = currentModel(await this.#choose(opened)) ?? "unknown";
    this.#isPrompted = true;
    this.#give({ type: "session_started", model, boundId: sessionId });
    for (let { prompt: text } = this.#asked; ;) {
      const prompt = [{ type: "text", text }];
      const response = await this.#request("session/prompt", { sessionId, prompt });
      await new Promise((resolve) => setImmediate(resolve)); // Updates that came before the response are handled.
      this.#updates.flush();
      // acp-agent-7.
      if (this.#asked.resumedId !== null && this.#updated === "other") return { type: "unknown_session" };
      this.#use(fieldsOf(response["usage"]));
      const end = this.#judge(response["stopReason"]);
      const next = end.type === "answered" && !this.#isAborted ? this.#followUps.shift() : undefined;
      if (next === undefined) return (this.#end = end); // A later message is rejected.
      this.#give({ type: "follow_up", text: (text = next) });
    }
  }

  /** acp-agent-5. @returns the choices that the session has then. */
  async #choose({ sessionId, ...opened }: OpenedSession): Promise<Fields> {
    let offered: Fields = opened;
    for (const choice of this.#asked.choices) {
      const request = optionRequest(offered, choice, this.#asked.facts.name);
      if (request === undefined) continue;
      offered = { ...offered, ...(await this.#request(request.method, { sessionId, ...request.params })) };
    }
    return offered;
  }

  /** @returns the session with the choices that it offers, `undefined` when the program does not know it. */
  async #open(abilities: Fields): Promise<OpenedSession | undefined> {
    const { folder, resumedId, wayBack } = this.#asked;
    const place = { cwd: folder, mcpServers: wayBack === undefined ? [] : [serverOf(wayBack)] };
    if (resumedId === null) {
      const opened = await this.#request("session/new", place);
      return { ...opened, sessionId: textOr(opened["sessionId"], "") };
    }
    // acp-agent-2.
    const canResume = isFields(fieldsOf(abilities["sessionCapabilities"])["resume"]);
    if (!canResume && abilities["loadSession"] !== true) return undefined;
    try {
      const method = canResume ? "session/resume" : "session/load";
      return { ...(await this.#request(method, { ...place, sessionId: resumedId })), sessionId: resumedId };
    } catch (error) {
      if (this.#process.pid === undefined || isClosed(error)) throw error;
      return undefined;
    }
  }

  async #request(method: string, params: Fields): Promise<Fields> {
    return fieldsOf(await this.#connection.agent.request(method, params));
  }

  #update(params: unknown): void {
    const { update, sessionId } = fieldsOf(params);
    if (!this.#isPrompted || !isFields(update)) return;
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
    const answered = new Promise<PermissionAnswer | undefined>((resolve) =>
      this.#requests.set(requestId, resolve),
    );
    if (this.#isAborted) this.#cancelRequests();
    else this.#give({ type: "permission_request", request: { requestId, toolCallId, tool, input } });
    const answer = await answered;
    const kind = answer?.allowed === true ? "allow_once" : "reject_once";
    const option =
      answer === undefined || !Array.isArray(options)
        ? undefined
        : options.map(fieldsOf).find((one) => one["kind"] === kind);
    return {
      outcome:
        option === undefined
          ? { outcome: "cancelled" }
          : { outcome: "selected", optionId: option["optionId"] },
    };
  }

  /** acp-agent-3. */
  #cancelRequests(): void {
    for (const resolve of this.#requests.values()) resolve(undefined);
    this.#requests.clear();
  }

  #use(usage: Fields): void {
    if (!this.#asked.facts.reportsUsage) return;
    const output = countOf(usage["outputTokens"]);
    // The total has the tokens of a cache, which `inputTokens` of some programs has not.
    const input = Math.max(countOf(usage["inputTokens"]), countOf(usage["totalTokens"]) - output);
    if (input + output === 0) return;
    const model = `${this.#asked.facts.name}/unknown`;
    this.#give({ type: "usage", usage: { model, inputTokens: input, outputTokens: output } });
  }

  #judge(reason: unknown): ExternalEnd {
    if (reason === "cancelled") return { type: "aborted" };
    if (reason === "end_turn") return { type: "answered", text: this.#updates.lastText };
    return { type: "error", message: `the turn ended with ${textOr(reason, "no reason")}` };
  }

  #refused(error: unknown): ExternalEnd | undefined {
    if (isClosed(error)) return undefined; // The end of the process says why.
    const { message } = toError(error);
    const data = error instanceof Error && "data" in error ? error.data : undefined;
    const details = data === undefined ? "" : `: ${JSON.stringify(data)}`;
    const isAuth = error instanceof Error && "code" in error && error.code === -32_000; // By the protocol.
    return {
      type: "error",
      message: this.#wire.redactor.text(`${message}${details}`).slice(0, AGENT_PROCESS.errorChars),
      ...(isAuth ? { cause: "auth_required" } : {}),
    };
  }

  #give(event: ExternalEvent): void {
    this.#events.give(event);
    if (this.#events.isOverflowing) this.#wire.broken ??= TOO_MANY_EVENTS;
  }

  #endOf(report: ProcessReport): ExternalEnd {
    this.#connection.close();
    const { broken, redactor } = this.#wire;
    if (broken !== undefined) return { type: "broken", message: broken };
    this.#updates.flush();
    if (this.#end !== undefined) return this.#end;
    if (this.#isAborted) return { type: "aborted" };
    return { type: "died", message: whyDied(report, redactor), hasStarted: this.#isPrompted };
  }
}
