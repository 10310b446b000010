// A harness of the AI SDK as an external agent, beyond the clauses that `adapters.test.ts` plays for it.

import { randomUUID } from "node:crypto";
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";

import type { ExternalEnd, ExternalEvent, ExternalTurn } from "../../session/external-agent-protocol.ts";
import { turnAlone } from "../../session/program/turn-alone.ts";
import { harnessAgent } from "./harness-agent.ts";

const FAKE = fileURLToPath(new URL("../../testing/fake-harness.mjs", import.meta.url));

let home: string;
beforeEach(() => void (home = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-harness-")))));
afterEach(() => rmSync(home, { recursive: true, force: true }));

const agent = (module: string) =>
  harnessAgent({
    name: "harness",
    module,
    environment: { ...process.env, HOME: home },
    variables: ["NODE_COMPILE_CACHE"],
    folder: home,
  });

async function turnOf(module: string, prompt: string, agentSessionId: string): Promise<ExternalTurn> {
  const intent = { ...(await agent(module).find()), agentSessionId, folder: home, model: null };
  return {
    ...turnAlone(agentSessionId),
    intent: { ...intent, permissionMode: "default" },
    boundId: null,
    prompt,
    tag: `test:${agentSessionId}`,
  };
}

/** One turn to its end, or to the first event of this type, at which its process is killed. */
async function played(
  mode: "start" | "resume",
  turn: ExternalTurn,
  killAt?: ExternalEvent["type"],
): Promise<{ readonly end: ExternalEnd; readonly events: readonly ExternalEvent[] }> {
  const events: ExternalEvent[] = [];
  const protocol = agent(FAKE);
  const running = await protocol[mode](turn);
  running.subscribe((event) => {
    events.push(event);
    if (event.type === killAt && JSON.stringify(event).includes("sleep")) void protocol.endLost(turn.tag);
  });
  return { end: await running.ended, events };
}

test(
  "a harness is told which calls of a turn that was cut off it does not remember",
  ofCampaign,
  async () => {
    const id = randomUUID();
    const next = (prompt: string) => turnOf(FAKE, prompt, id);
    expect((await played("start", await next("hello"))).end.type).toBe("answered");
    const { end } = await played("resume", await next("write:a.txt hang"), "tool_call");
    expect(end).toMatchObject({ type: "died", hasStarted: true });

    const { events } = await played("resume", await next("again"));
    expect(events.find(({ type }) => type === "notice")).toMatchObject({
      text: expect.stringContaining("It may run calls of that turn again"),
    });
    const memory = readFileSync(join(home, ".harness", id), "utf8");
    expect(memory).not.toContain("write:a.txt hang"); // The fake has lost its turn, as a real one does.
    expect(memory).toContain('- write {\\"path\\":\\"a.txt\\"} (its result: wrote a.txt)');
    expect(memory).toContain('{\\"command\\":\\"sleep 1000\\"} (whether it took effect is unknown)');

    const { events: later } = await played("resume", await next("later"));
    expect(later.some(({ type }) => type === "notice")).toBe(false); // The turn before has ended in order.
  },
);

test.for([
  ["export default {};", 'expected a default export of the specification "harness-v1"'],
  [
    'export default { specificationVersion: "harness-v1", harnessId: "x", doStart() {}, getBootstrap() {} };',
    "installs a bridge in its sandbox",
  ],
])("a module without a harness that can be used is an error of the turn: %s", async ([code, message]) => {
  const module = join(home, "harness.mjs");
  writeFileSync(module, code!);
  const running = await agent(module).start(await turnOf(module, "hello", randomUUID()));
  expect(await running.ended).toMatchObject({ type: "error", message: expect.stringContaining(message!) });
});

test("a harness whose module is missing is not found", async () => {
  await expect(agent("missing.mjs").find()).rejects.toMatchObject({
    code: "program_missing",
    at: join(home, "missing.mjs"),
  });
});

test("rules of permissions are compared with the tools that every harness has", () => {
  const fake = harnessAgent({ name: "fake", module: "harness.mjs", folder: "/project" });
  expect(fake.ruledCall({ tool: "bash", input: { command: "git diff" } }, "/project")).toEqual({
    tool: "shell",
    subjectKind: "command",
    subject: "git diff",
  });
  const write = { tool: "write", input: { file_path: "/project/docs/a.md" } };
  expect(fake.ruledCall(write, "/project")).toMatchObject({ tool: "write_file", subjectKind: "path" });
  expect(fake.ruledCall({ tool: "grep", input: { pattern: "x" } }, "/project").subject).toBeNull();
});
