// agent-start: from the start of `holdfast run FILE.md` to its first model request, with the bundled command
// as users have it.
//
// The floor is a Node process that sends one request of the same kind to the same server. The server refuses
// both, so that they end and Node keeps their compiled code, as it does for a user.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { installCommand } from "../../scripts/installed-command.ts";
import { inTurns, median, nowMs, percentile, runningCpuMs } from "../measure.ts";
import { withFolder } from "../storages.ts";
import type { Workload } from "../workload.ts";

const GOAL_MS = 400;
const AGENT = `---
name: reviewer
description: Reviews changes.
model: anthropic/claude-sonnet-4-5
tools: Read, Grep
---
You review the changes of a branch.
`;
const FLOOR = `await fetch(process.env.ANTHROPIC_BASE_URL + "/v1/messages", { method: "POST", body: "{}" });
`;

export const agentStart: Workload = {
  id: "agent-start",
  title: "holdfast run FILE.md, from the start of its process to the first model request",
  refuses: (storage) => (storage === "sqlite" ? undefined : "a run has its own database"),
  run: async function* ({ folder, repeats, isQuick }) {
    yield withFolder(folder, async (place) => {
      const [file, floor] = [join(place, "reviewer.md"), join(place, "floor.mjs")];
      writeFileSync(file, AGENT);
      writeFileSync(floor, FLOOR);
      const command = join(await installCommand(), "holdfast");
      const model = await Model.listen();
      try {
        const { ours, floors } = await inTurns(
          isQuick ? 1 : 2 * repeats,
          () => model.requestOf([command, "run", file, "look at this branch"], place),
          () => model.requestOf([floor], place),
        );
        const of = (side: readonly Start[], what: keyof Start): number[] => side.map((start) => start[what]);
        const value = median(of(ours, "ms"));
        return {
          variant: "to the first model request",
          unit: "ms",
          value,
          floor: median(of(floors, "ms")),
          p50Ms: value,
          p99Ms: percentile(of(ours, "ms"), 0.99),
          goal: `<= ${GOAL_MS} ms`,
          isGoalMet: value <= GOAL_MS,
          more: {
            cpuMs: median(of(ours, "cpuMs")),
            cpuFloorMs: median(of(floors, "cpuMs")),
          },
        };
      } finally {
        await model.close();
      }
    });
  },
};

/** From the start of a process until its request arrived. The CPU is that of all its threads. */
interface Start {
  readonly ms: number;
  readonly cpuMs: number;
}

/** Stands for the server of a model: it tells when a request has arrived, and refuses it. */
class Model {
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async listen(): Promise<Model> {
    const server = createServer((_, response) => {
      response.writeHead(400, { "content-type": "application/json" });
      response.end('{"type":"error","error":{"type":"invalid_request_error","message":"refused"}}');
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new Model(server);
  }

  /** Starts Node with these arguments, in a new project. */
  async requestOf(args: readonly string[], place: string): Promise<Start> {
    const folder = mkdtempSync(join(place, "project-")); // Its first session.
    const { PATH, NODE_COMPILE_CACHE } = process.env;
    const { port } = this.#server.address() as AddressInfo;
    const model = { ANTHROPIC_BASE_URL: `http://127.0.0.1:${port}`, ANTHROPIC_API_KEY: "unused" };
    const env = { PATH, NODE_COMPILE_CACHE, HOME: folder, LANG: "C.UTF-8", ...model };
    const startedAt = nowMs();
    const child = spawn(process.execPath, args, { cwd: folder, env, stdio: "ignore" });
    const ended = once(child, "exit");
    const isAsked = once(this.#server, "request").then(() => ({
      ms: nowMs() - startedAt,
      cpuMs: runningCpuMs(child.pid!),
    }));
    const start = await Promise.race([isAsked, ended.then(() => undefined)]);
    await ended;
    if (start === undefined) throw new Error(`${args.join(" ")} ended before it asked its model`);
    return start;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }
}
