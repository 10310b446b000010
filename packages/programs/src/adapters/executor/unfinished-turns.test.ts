// The reports of turns that do not complete: each report that was acknowledged is an entry of its session
// (report-routes-1). Real programs, processes and gateways over a runtime in memory.

import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { openWorld, type World } from "../../testing/executor-world.ts";

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(() => world.close());

const WAIT = { timeout: 30_000, interval: 20 };

/** Reports its number until it is killed, and notes each number that was acknowledged. */
const COUNT_ON = `
  import { appendFileSync } from "node:fs";
  process.on("SIGTERM", () => { appendFileSync("acknowledged", "cancelled\\n"); });
  for (let n = 1; ; n++) {
    const { status } = await event("message", { role: "assistant", content: String(n) }).catch(() => ({}));
    if (status === 201) appendFileSync("acknowledged", n + "\\n");
    await new Promise((resolve) => setTimeout(resolve, 10));
  }`;

test.each(["one_shot", "persistent"] as const)(
  "a %s executor that reports after a graceful cancel until it is killed loses no acknowledged report",
  async (lifecycle) => {
    const { runtime, agent } = world.open(await world.node(COUNT_ON, { lifecycle }));
    const handle = await runtime.start(agent, "work");
    const lines = (): string[] =>
      existsSync(join(world.folder, "acknowledged"))
        ? readFileSync(join(world.folder, "acknowledged"), "utf8").trim().split("\n")
        : [];
    await vi.waitUntil(() => lines().length > 3, WAIT);
    await handle.cancel();
    expect((await handle.settled()).status).toBe("cancelled");
    const cancelledAt = lines().indexOf("cancelled");
    expect(cancelledAt).toBeGreaterThan(0);
    expect(lines().length).toBeGreaterThan(cancelledAt + 1); // It reported after the cancel.
    const kept = await textsOf(handle.sessionId);
    expect(lines().filter((line) => line !== "cancelled" && !kept.includes(line))).toEqual([]);
  },
);

test("a session that names no folder works in that of the machine which continues it", async () => {
  const profile = await world.node('await event("result", { result_text: process.cwd() });', {
    conversationTtlMs: 60_000,
  });
  const folders = ["one", "two"].map((name) => join(world.folder, name));
  for (const folder of folders) mkdirSync(folder);
  const answers = async (folder: string): Promise<void> =>
    vi.waitUntil(async () => {
      const session = await world.storage.reader.session("moving");
      return session?.progress?.includes(JSON.stringify(folder)) === true;
    }, WAIT) as Promise<never>;
  const first = world.open(profile, { projectDir: folders[0]! });
  await first.runtime.start(first.agent, "work", { sessionId: "moving" });
  await answers(folders[0]!);
  await first.runtime.close();
  rmSync(folders[0]!, { recursive: true });
  const second = world.open(profile, { projectDir: folders[1]! });
  await second.runtime.recover();
  await second.runtime.signal("moving", "next_input", "more");
  await answers(folders[1]!);
});

test("a turn that fails after its result has the result as an entry", async () => {
  const { runtime, agent } = world.open(
    await world.node(`
      await event("result", { result_text: "the work is done" });
      console.error("out of luck");
      process.exit(1);`),
  );
  const handle = await runtime.start(agent, "work");
  await expect(handle.result()).rejects.toThrow(
    "out of luck (Process exited with code 1). It had reported a result, which its conversation has",
  );
  expect(await textsOf(handle.sessionId)).toEqual(["work", "the work is done"]);
});

test("the last of several results counts, and each one that it replaces is an entry", async () => {
  const { runtime, agent } = world.open(
    await world.node(`
      for (const result_text of ["first", "first", "second"]) await event("result", { result_text });
      await event("result", { result_data: { n: 3 } });`),
  );
  const handle = await runtime.start(agent, "work");
  expect(await handle.result()).toMatchObject({ result_data: { n: 3 } });
  expect((await textsOf(handle.sessionId)).slice(0, 3)).toEqual(["work", "first", "second"]);
});

test("a turn that fails has its reports as entries", async () => {
  const { runtime, agent } = world.open(
    await world.node(`
      await Promise.all(Array.from({ length: 20 }, (_, n) => event("message", { role: "assistant", content: String(n) })));
      console.error("out of luck");
      process.exit(3);`),
  );
  const handle = await runtime.start(agent, "work");
  await expect(handle.result()).rejects.toThrow(
    "tried reports an error: out of luck (Process exited with code 3)",
  );
  expect(await textsOf(handle.sessionId)).toHaveLength(21);
});

test.each(["", "after a graceful cancel"])(
  "a hard cancel %s ends its program, which ignores signals",
  ofCampaign,
  async (graceful) => {
    const script = `[ "$1" = --schema ] && exit 1\ntrap '' TERM INT HUP; touch begun; while :; do sleep 0.1; done`;
    const { runtime, agent } = world.open(await world.shell(script), { stopStepMs: 600_000 }); // Not waited for.
    const handle = await runtime.start(agent, "work");
    await vi.waitUntil(() => existsSync(join(world.folder, "begun")), WAIT);
    if (graceful !== "") await handle.cancel({ graceMs: 600_000 });
    await handle.cancel({ hard: true });
    expect((await handle.settled()).status).toBe("cancelled");
    await vi.waitUntil(() => world.processes().length === 0, WAIT);
  },
);

/** The texts of the session's entries. */
async function textsOf(sessionId: string): Promise<readonly unknown[]> {
  const entries = await world.storage.reader.entries(sessionId, 0, 1_000);
  return entries.map(({ content }) => {
    const value = JSON.parse(content) as { readonly text?: string } | string;
    return typeof value === "string" ? value : value.text;
  });
}
