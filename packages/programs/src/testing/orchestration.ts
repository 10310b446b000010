// An executor that starts children, and what tests ask about its session.

import { CHILD_ENDED } from "@holdfast/core";
import { defineAgent, type Agent } from "@holdfast/runtime";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { vi } from "vitest";

import type { Opened, World } from "./executor-world.ts";

const WAIT = { timeout: 30_000, interval: 20 };

/** Ends as its input says. */
export const worker = defineAgent({
  name: "worker",
  run: async (ctx, input: { readonly prompt?: string } | string) => {
    const prompt = typeof input === "string" ? input : (input.prompt ?? "");
    if (prompt.startsWith("fail ")) throw new Error(prompt.slice(5));
    if (prompt === "wait") return ctx.waitForSignal("go");
    return prompt;
  },
}) as Agent;

/** Sends the requests in its prompt, and ends its turn. A resumed turn has its prompt as its result. */
export const PARENT = `
  if (inv.mode === "start") {
    const answers = [];
    for (const body of JSON.parse(inv.prompt)) answers.push(await call("POST", "/runs", body));
    writeFileSync("answers", JSON.stringify(answers));
    for (; existsSync("busy"); ) await new Promise((resolve) => setTimeout(resolve, 20));
    await event("result", { result_data: answers });
  } else {
    writeFileSync("prompt", inv.prompt);
    for (; existsSync("busy"); ) await new Promise((resolve) => setTimeout(resolve, 20));
    await event("result", { result_text: inv.prompt });
  }`;

/** A child that calls back. */
export const WORK = { agent_name: "worker", callback: true };

export interface Answered {
  readonly status: number;
  readonly body: Readonly<Record<string, string>>;
}

let sessions = 0;

/** A world with a session of that executor. */
export class Orchestration {
  readonly world: World;
  /** The session of the executor. An executor ends the processes of sessions with its id, also those of other tests. */
  readonly id = `desk-${process.pid}-${++sessions}`;

  constructor(world: World) {
    this.world = world;
  }

  /** The executor, over the storage of the world. */
  async open(changes: Parameters<World["node"]>[1] = {}): Promise<Opened> {
    return this.world.open(await this.world.node(PARENT, changes), {}, [worker]);
  }

  /** Makes the executor wait before it ends a turn. */
  keepBusy(): void {
    writeFileSync(join(this.world.folder, "busy"), "");
  }

  endWork(): void {
    rmSync(join(this.world.folder, "busy"));
  }

  read(name: string): string {
    return readFileSync(join(this.world.folder, name), "utf8");
  }

  /** Waits for a file of the program. */
  async written(name: string): Promise<string> {
    await vi.waitUntil(() => existsSync(join(this.world.folder, name)) && this.read(name) !== "", WAIT);
    return this.read(name);
  }

  /** The answers to the executor's requests. */
  async answers(): Promise<readonly Answered[]> {
    return JSON.parse(await this.written("answers")) as Answered[];
  }

  /** The children that the executor has started. */
  async childIds(): Promise<readonly string[]> {
    return (await this.answers()).map(({ body }) => body["session_id"]!);
  }

  async becomes(sessionId: string, status: string): Promise<void> {
    const { reader } = this.world.storage;
    await vi.waitUntil(async () => (await reader.session(sessionId))?.status === status, WAIT);
  }

  /** The prompts that started turns of the executor. */
  async prompts(): Promise<readonly string[]> {
    const entries = await this.world.storage.reader.entries(this.id, 0, 1_000);
    return entries.flatMap(({ role, content }) => (role === "user" ? [JSON.parse(content) as string] : []));
  }

  async hasPrompts(count: number): Promise<void> {
    await vi.waitUntil(async () => (await this.prompts()).length === count, WAIT);
  }

  /** How many callbacks the session has taken. */
  async taken(): Promise<number> {
    const records = await this.world.storage.reader.journal(this.id, 0, 10_000);
    return records.filter((record) => record.type === "take_signals" && record.pattern === CHILD_ENDED)
      .length;
  }
}
