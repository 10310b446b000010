// A real program at work, for one behaviour (`RealSubject`): a home and a project of its own, and a scripted
// model.

import { randomUUID } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import {
  type ExternalAgent,
  type ExternalAgentProtocol,
  type ExternalEnd,
  type ExternalEvent,
  type ExternalIntent,
  knownAgent,
} from "@holdfast/programs";
import {
  startScriptedModelServer,
  type ConversationMessage,
  type ScriptedModelServer,
} from "@holdfast/testkit";
import { openWayBack, turnAlone, type OpenedWayBack } from "@holdfast/programs/testing";
import type { RealAgent } from "./real-agents.ts";
import { scriptedReply } from "./scripted-reply.ts";

const TURN_MS = 180_000;

export class RealSubject {
  readonly protocol: ExternalAgentProtocol;
  readonly server: ScriptedModelServer;
  readonly intent: ExternalIntent;
  readonly tag = `agents:${randomUUID()}`;
  boundId: string | null = null;
  /** The tools of its session that the program has called. */
  readonly calls: string[] = [];
  #wayBack: OpenedWayBack | undefined;
  /** The events of the present turn. */
  events: ExternalEvent[] = [];

  private constructor(protocol: ExternalAgentProtocol, server: ScriptedModelServer, intent: ExternalIntent) {
    this.protocol = protocol;
    this.server = server;
    this.intent = intent;
  }

  static async make(agent: RealAgent, bin: string, home: string): Promise<RealSubject> {
    const server = await startScriptedModelServer({ script: scriptedReply });
    const folder = mkdtempSync(join(home, "project-"));
    const path = [bin, dirname(process.execPath), process.env["PATH"]].join(delimiter);
    const environment = { PATH: path, HOME: home, ...agent.settings(home, server) };
    const protocol = agent.adapter?.(environment, folder) ?? knownAgent(agent.name, { environment, folder })!;
    const found = await protocol.find();
    const { model, permissionMode = "default" } = agent;
    const intent = { ...found, agentSessionId: randomUUID(), folder, model, permissionMode };
    return new RealSubject(protocol, server, intent);
  }

  get version(): string {
    return this.intent.version;
  }

  /** Begins a turn, whose questions are answered. */
  async begin(mode: "start" | "resume", prompt: string, isAllowed = true): Promise<ExternalAgent> {
    const { intent, boundId, tag } = this;
    this.#wayBack ??= await openWayBack(({ tool }) => {
      this.calls.push(tool);
      return Promise.resolve({ text: "canary-result", isError: false });
    });
    const turn = { ...turnAlone(intent.agentSessionId), intent, boundId, prompt, tag };
    const agent = await this.protocol[mode]({ ...turn, wayBack: this.#wayBack });
    this.events = [];
    agent.subscribe((event) => {
      this.events.push(event);
      if (event.type === "session_started") this.boundId = event.boundId;
      if (event.type === "permission_request")
        void agent.answerPermission(
          event.request.requestId,
          isAllowed ? { allowed: true } : { allowed: false, message: "canary-refused" },
        );
    });
    return agent;
  }

  async turn(mode: "start" | "resume", prompt: string, isAllowed = true): Promise<ExternalEnd> {
    return this.#ended(await this.begin(mode, prompt, isAllowed));
  }

  /** Begins a turn with a command that lasts, and waits until it runs. */
  async work(): Promise<ExternalAgent> {
    const agent = await this.begin("start", "command:[touch running; sleep 600; echo x]");
    const end = await this.untilRunning(agent);
    if (end !== undefined) throw new Error(`the turn ended before its command ran: ${JSON.stringify(end)}`);
    return agent;
  }

  /** Waits until the command of the turn runs. @returns the end of a turn that ended before. */
  async untilRunning(agent: ExternalAgent): Promise<ExternalEnd | undefined> {
    const timer = setTimeout(() => void agent.abort(), TURN_MS);
    const running = new AbortController();
    const isRunning = (async () => {
      while (!this.has("running") && !running.signal.aborted) await delay(50);
    })();
    const end = await Promise.race([agent.ended, isRunning.then(() => undefined)]);
    running.abort();
    clearTimeout(timer);
    return end;
  }

  async #ended(agent: ExternalAgent): Promise<ExternalEnd> {
    const timer = setTimeout(() => void agent.abort(), TURN_MS);
    const end = await agent.ended;
    clearTimeout(timer);
    return end;
  }

  has(file: string): boolean {
    return existsSync(join(this.intent.folder, file));
  }

  lines(file: string): number {
    return this.has(file)
      ? readFileSync(join(this.intent.folder, file), "utf8").trimEnd().split("\n").length
      : 0;
  }

  write(file: string, text: string): void {
    writeFileSync(join(this.intent.folder, file), text);
  }

  /** Whether the model was sent this text. */
  wasSent(text: string): boolean {
    return this.server.requests.some(({ body }) => JSON.stringify(body).includes(text));
  }

  /** The longest conversation with this text that the model was sent. Some programs ask it for a title, too. */
  asked(text: string): readonly ConversationMessage[] {
    return this.server.requests
      .map(({ conversation }) => conversation?.messages ?? [])
      .filter((messages) => messages.some((message) => message.text.includes(text)))
      .reduce((longest, one) => (one.length >= longest.length ? one : longest), []);
  }

  /** The names of the models that were asked. */
  askedModels(): readonly string[] {
    const models = this.server.requests.map(({ body }) => (body as { readonly model?: unknown }).model);
    return [...new Set(models.filter((model) => typeof model === "string"))];
  }

  /** The processes under the tag of the subject. */
  left(): readonly number[] {
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
      .filter((pid) => {
        try {
          return readFileSync(`/proc/${pid}/environ`, "latin1").includes(this.tag);
        } catch {
          return false;
        }
      });
  }

  async dispose(): Promise<void> {
    await this.protocol.endLost(this.tag);
    this.#wayBack?.close();
    await this.server.close();
  }
}
