// A session of an external agent in this process, for tests: `ExternalSession`. The program is a fake that
// speaks the protocol of the real one.

import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { decodeJson, NEXT_INPUT, type Session, type TokenUsage } from "@holdfast/core";
import {
  createRuntime,
  MemoryStorage,
  type Runtime,
  type SessionHandle,
  type StartOptions,
} from "@holdfast/runtime";

import { includedFacts } from "../external.ts";
import type { IncludedName } from "../included-programs.ts";
import { externalAgent } from "../session/external-agent.ts";
import { LineAgent } from "../adapters/lines/line-agent.ts";
import { type AgentProfile, modelPrices } from "@holdfast/agents";
import { fakeOf, installFake } from "./fake-program.ts";

/** An entry of the conversation. */
interface Said {
  readonly role: string;
  readonly content: unknown;
}

export class ExternalSession {
  /** The home of the program. */
  readonly home = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-external-session-")));
  readonly folder = join(this.home, "project");
  readonly environment: Record<string, string>;
  readonly #storage = new MemoryStorage();
  readonly #runtime: Runtime;
  readonly protocol: LineAgent;
  /** Whether the program of a conversation is kept between two turns. */
  keepsPrograms = false;
  readonly #profile: AgentProfile | undefined;
  #handle: SessionHandle<string> | undefined;
  /** Whether the session has stopped to wait since the last request. */
  #isWaiting = false;

  constructor(name: IncludedName, profile?: Omit<AgentProfile, "name">) {
    this.#profile = profile && { ...profile, name: "p" };
    mkdirSync(this.folder);
    this.environment = installFake(this.home, fakeOf(name));
    const place = { environment: this.environment, folder: this.folder };
    this.protocol = new LineAgent({ facts: includedFacts(name), ...place });
    this.#runtime = createRuntime({
      storage: this.#storage,
      prices: modelPrices(),
      tracer: { trace: ({ type }) => void (this.#isWaiting ||= type === "waiting") },
    });
  }

  async dispose(): Promise<void> {
    await this.#runtime.close();
    await this.protocol.close();
    rmSync(this.home, { recursive: true, force: true });
  }

  /** Begins a conversation, and waits for the answer to its first request. */
  async converse(
    text: string,
    input: Readonly<Record<string, unknown>> = {},
    options: StartOptions = {},
  ): Promise<Session> {
    await this.begin(text, input, options);
    return this.rest();
  }

  /** Begins a conversation. */
  async begin(
    text: string,
    input: Readonly<Record<string, unknown>> = {},
    options: StartOptions = {},
  ): Promise<void> {
    const agent = externalAgent(this.protocol, {
      folder: this.folder,
      permissionModes: ["default", "acceptEdits", "plan"],
      profile: (name) => ({ rules: [], ...this.#profile, name }),
      mirrors: join(this.home, "mirrors"),
      keepsPrograms: this.keepsPrograms,
    });
    this.#handle = await this.#runtime.start(agent, { text, conversation: true, ...input }, options);
  }

  /** The next request of the conversation. */
  async say(text: string): Promise<Session> {
    this.#isWaiting = false;
    await this.handle.signal(NEXT_INPUT, text);
    return this.rest();
  }

  async answer(answer: unknown): Promise<Session> {
    this.#isWaiting = false;
    await this.handle.answer(answer);
    return this.rest();
  }

  /** Lets a paused session continue. */
  async unpause(): Promise<Session> {
    this.#isWaiting = false;
    await this.handle.unpause();
    return this.rest();
  }

  get handle(): SessionHandle<string> {
    if (this.#handle === undefined) throw new Error("the session has not begun");
    return this.#handle;
  }

  /** Waits until the session waits for a person again, is paused, or has ended. */
  async rest(): Promise<Session> {
    for (;;) {
      const session = await this.handle.session();
      const { status } = session;
      if (["completed", "failed", "cancelled", "paused"].includes(status)) return session;
      if (this.#isWaiting && ["waiting", "input_required"].includes(status)) return session;
      await delay(10);
    }
  }

  /** Waits until no process works in the folder. */
  async processesEnded(): Promise<void> {
    const isInFolder = (pid: string): boolean => {
      try {
        return readlinkSync(`/proc/${pid}/cwd`) === this.folder;
      } catch {
        return false; // It has ended, or belongs to another user.
      }
    };
    while (readdirSync("/proc").some(isInFolder)) await delay(20);
  }

  async entries(): Promise<readonly Said[]> {
    const read = await this.#storage.reader.entries(this.handle.sessionId, 0, 1_000);
    return read.map(({ role, content }) => ({ role, content: decodeJson(content) }));
  }

  /** The usage of all turns. */
  async usage(): Promise<readonly TokenUsage[]> {
    const records = await this.#storage.reader.journal(this.handle.sessionId, 0, 10_000);
    return records.flatMap((record) =>
      record.type === "task_completed" && record.usage !== undefined ? record.usage : [],
    );
  }

  /** The journal with the contents of its records, as one text. */
  async journal(): Promise<string> {
    const records = await this.#storage.reader.journal(this.handle.sessionId, 0, 10_000);
    return records.map((record) => JSON.stringify(record)).join("\n");
  }

  /** The receipts for messages to the program at work. */
  async receipts(): Promise<readonly unknown[]> {
    const records = await this.#storage.reader.journal(this.handle.sessionId, 0, 10_000);
    const steers = new Set(
      records.flatMap((record) =>
        record.type === "schedule_task" && ["steer", "follow_up"].includes(record.kind) ? record.id : [],
      ),
    );
    return records.flatMap((record) =>
      record.type === "task_completed" && steers.has(record.task) ? decodeJson(record.payload) : [],
    );
  }

  /** The open question. */
  async question(): Promise<string> {
    const { waits } = await this.handle.session();
    const wait = waits.find(({ type }) => type === "input");
    return wait?.type === "input" ? wait.prompt : "";
  }

  /** The session files of the program. */
  files(): readonly string[] {
    return readdirSync(this.home, { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".jsonl"))
      .map((name) => join(this.home, name));
  }

  /** The prompts that the program stored, with the rest of its sessions. */
  prompts(): string {
    return this.files()
      .map((path) => readFileSync(path, "utf8"))
      .join("\n");
  }

  lines(file: string): readonly string[] {
    const path = join(this.home, file);
    return existsSync(path) ? readFileSync(path, "utf8").trimEnd().split("\n") : [];
  }
}
