// The local stack as tests use it: started by its command in a project of its own, and looked at from
// outside.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { expect } from "vitest";
import { startSession } from "./coordinator-client.ts";
import type { StackState } from "@holdfast/place/local-stack";
import type { Finished, Project } from "./holdfast-process.ts";

/** Agents for the stack: each step of `steps` is a line of the project's file `ledger`, with the step and the process. */
export const AGENTS = `
import { appendFileSync } from "node:fs";
import { defineAgent } from "holdfast";
import { setTimeout as delay } from "node:timers/promises";

export const greet = defineAgent({ name: "greet", run: async (ctx, name) => "hello " + name });

export const steps = defineAgent({
  name: "steps",
  run: async (ctx, { count, ms }) => {
    for (let n = 0; n < count; n++)
      await ctx.run("step", async () => {
        appendFileSync("ledger", ctx.sessionId + " " + n + " " + process.pid + "\\n");
        await delay(ms);
      });
    return count;
  },
});
`;

export class LocalStack {
  readonly #project: Project;

  constructor(project: Project) {
    this.#project = project;
    writeFileSync(project.path("agents.ts"), AGENTS);
  }

  /** Starts it on a port that is free. */
  start(...args: string[]): Promise<Finished> {
    const grace = args.includes("--grace") ? [] : ["--grace", "1s"]; // Steps of a test may run on at its end.
    return this.#project.run("local", "start", "--agents", "agents.ts", "--port", "0", ...grace, ...args);
  }

  async status(): Promise<StackState> {
    return this.#project.json<StackState & Record<string, unknown>>("local", "status");
  }

  /** Waits until the status is as a test wants it. */
  async until(what: string, isSo: (state: StackState) => boolean, ms = 30_000): Promise<StackState> {
    for (let look = 0; ; look++) {
      const state = this.#read();
      if (state !== undefined && isSo(state)) return state;
      if (look > ms / 20) throw new Error(`the stack does not become ${what}: ${JSON.stringify(state)}`);
      await delay(20);
    }
  }

  /** Waits until its processes work. An old runner may still drain: it stays for sessions that wait. */
  ready(): Promise<StackState> {
    return this.until("ready", ({ processes }) =>
      processes.every(({ status }) => status === "ready" || status === "draining"),
    );
  }

  /** The process of a component that does not drain. */
  async pidOf(component: "supervisor" | "coordinator" | "runner"): Promise<number> {
    const { supervisor, processes } = await this.ready();
    if (component === "supervisor") return supervisor.pid;
    return processes.find((one) => one.component === component)!.pid!;
  }

  async kill(component: "supervisor" | "coordinator" | "runner"): Promise<number> {
    const pid = await this.pidOf(component);
    process.kill(pid, "SIGKILL");
    return pid;
  }

  /** Starts a session. @returns its URL and the token to read it with. */
  async begin(agent: string, input: unknown): Promise<{ readonly at: string; readonly adminToken: string }> {
    const { url = "" } = await this.ready();
    const file = this.#project.path(".local/share/holdfast/admin-token");
    const adminToken = readFileSync(file, "utf8").trim();
    const sessionId = await startSession({ url, adminToken }, { agent, input });
    return { at: `${url}/v1/sessions/${sessionId}`, adminToken };
  }

  /** Starts a session, and waits for its end however often the coordinator goes away. @returns its output. */
  async run(agent: string, input: unknown): Promise<unknown> {
    const { at, adminToken } = await this.begin(agent, input);
    for (;;) {
      const headers = { authorization: `Bearer ${adminToken}` };
      const answer = await fetch(at, { headers }).catch(() => undefined);
      const session =
        answer?.ok === true ? ((await answer.json()) as { status: string; output: unknown }) : undefined;
      if (session?.status === "completed") return session.output;
      expect(["failed", "paused", "cancelled"]).not.toContain(session?.status);
      await delay(50);
    }
  }

  #read(): StackState | undefined {
    try {
      return JSON.parse(readFileSync(this.#project.path(".local/share/holdfast/local/stack.json"), "utf8"));
    } catch {
      return undefined;
    }
  }

  /** Processes of the stack and of its agents that are there, by the marker that all of them carry. */
  processes(): readonly number[] {
    return pidsWith((pid) => textOf(`/proc/${pid}/environ`).includes(`HOME=${this.#project.folder}\0`));
  }

  /** Stops it, and removes everything. */
  async dispose(): Promise<void> {
    await this.#project.run("local", "stop");
    for (const pid of this.processes()) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // It has just ended.
      }
    }
    await this.#project.dispose();
  }
}

/** Running processes, without zombies. */
function pidsWith(matches: (pid: number) => boolean): readonly number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && matches(Number(name)))
    .filter((name) => !/^\d+ \(.*\) [ZX]/s.test(textOf(`/proc/${name}/stat`)))
    .map(Number);
}

export function textOf(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}
