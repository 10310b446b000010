// A command that is killed while its programs work: no call of theirs reaches the model after the guard's
// looks, without any resume.

import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { ExternalProject } from "../testing/external-project.ts";
import type { HoldfastProcess } from "../testing/holdfast-process.ts";
import { ModelProject, repliesOf } from "../testing/model-project.ts";

const MCP_PROGRAM = fileURLToPath(
  new URL("../../../mcp/src/testing/mcp-server-program.mjs", import.meta.url),
);
const WAIT = { timeout: 120_000, interval: 20 };
/** Longer than the guard waits between SIGTERM and SIGKILL, and much longer than between two calls. */
const QUIET_MS = 1_500;

let model: Server;
let calls: string[];

beforeEach(async () => {
  calls = [];
  model = createServer((request, response) => {
    calls.push(request.url ?? "");
    response.end();
  });
  await new Promise<void>((resolve) => model.listen(0, "127.0.0.1", resolve));
});

afterEach(() => void model.close());

/** A program that asks the model all the time, and that only SIGKILL ends. */
function worker(name: string): string {
  const url = `http://127.0.0.1:${(model.address() as AddressInfo).port}/${name}`;
  return `for (const s of ["SIGTERM", "SIGHUP", "SIGINT", "SIGPIPE"]) process.on(s, () => {});
    process.stdout.on("error", () => {});
    setInterval(() => fetch(${JSON.stringify(url)}).catch(() => {}), 30);`;
}

/** Waits until each of them has asked the model. */
async function work(run: HoldfastProcess, ...names: string[]): Promise<void> {
  const isAtWork = vi.waitUntil(() => names.every((name) => calls.includes(`/${name}`)), WAIT);
  const early = await Promise.race([isAtWork.then(() => undefined), run.finished]);
  expect(early, "the command ended").toBeUndefined();
}

async function expectQuiet(): Promise<void> {
  const start = calls.length;
  await vi.waitUntil(async () => {
    const before = calls.length;
    await delay(QUIET_MS / 3);
    return calls.length === before;
  }, WAIT);
  // At most ten seconds of calls: without a guard they never end, and the wait above fails.
  expect(calls.length - start).toBeLessThan(1_000);
  calls.length = 0;
  await delay(QUIET_MS);
  expect(calls).toEqual([]);
}

test("a coding agent that keeps working ends after a kill of the command", ofCampaign, async () => {
  const project = new ExternalProject();
  try {
    writeFileSync(project.path("worker.mjs"), worker("claude"));
    const claude = readFileSync(project.path("bin/claude"), "utf8").split("\n")[1]!;
    writeFileSync(
      project.path("bin/claude"),
      `#!/bin/sh\ncase "$1" in --version|--help) ${claude};; esac\n"${process.execPath}" worker.mjs\n`,
    );
    chmodSync(project.path("bin/claude"), 0o755);
    const run = project.startHere(["run", "claude-code", "go", "--session", "s"]);
    await work(run, "claude");
    run.kill("SIGKILL");
    await expectQuiet();
  } finally {
    await project.dispose();
  }
});

const MODES = [
  ["a kill of the command", "kill"],
  ["a hard cancel from another process", "cancel"],
] as const;

test.each(MODES)(
  "a shell command, what left it, and an MCP server end after %s",
  ofCampaign,
  async (_what, mode) => {
    const project = await ModelProject.open();
    try {
      project.write("worker.mjs", worker("shell"));
      project.write("daemon.mjs", worker("daemon"));
      project.write("server.mjs", `${worker("server")}\nawait import(${JSON.stringify(MCP_PROGRAM)});`);
      const server = { command: process.execPath, args: [project.path("server.mjs")] };
      project.write(".mcp.json", JSON.stringify({ mcpServers: { test: server } }));
      project.write(
        ".holdfast/agents/helper.md",
        "---\nname: helper\ndescription: Helps.\ntools: mcp__test__*, Bash\nmcpServers: [test]\n" +
          "holdfast: { approvals: { allow: [mcp__test__*, Bash] } }\n---\nYou help.\n",
      );
      const command = `setsid "${process.execPath}" daemon.mjs > /dev/null 2>&1 < /dev/null & "${process.execPath}" worker.mjs`;
      project.script = (conversation) =>
        repliesOf(conversation) === 0
          ? { toolCalls: [{ name: "mcp__test__greet", input: { text: "you" } }] }
          : { toolCalls: [{ name: "shell", input: { command } }] };
      expect(await project.run("agents", "trust")).toMatchObject({ code: 0 });
      const run = project.start(["run", "helper", "go", "--session", "s"], { stdin: "" });
      await work(run, "shell", "daemon", "server");
      if (mode === "kill") run.kill("SIGKILL");
      else await project.run("cancel", "s", "--hard");
      await expectQuiet();
      if (mode === "cancel") await run.finished;
    } finally {
      await project.dispose();
    }
  },
);
