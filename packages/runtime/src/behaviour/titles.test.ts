// The title of a session, for a program.

import { afterEach, expect, test } from "vitest";
import { createRuntime, defineAgent, local, MemoryStorage, type Runtime } from "../index.ts";

const opened: Runtime[] = [];
afterEach(async () => {
  for (const runtime of opened.splice(0)) await runtime.close();
});

const reader = defineAgent<{ readonly task: string }, string, { readonly task: string }>({
  name: "reader",
  run: async (ctx) => ctx.input.task,
});
const lead = defineAgent<{ readonly prompt: string }, string, { readonly prompt: string }>({
  name: "lead",
  agents: [reader],
  async run(ctx) {
    ctx.spawnAgent(local(reader), { task: "read the log" }, { onParentEnd: "leave" });
    await ctx.waitForSignal("go");
    return ctx.input.prompt;
  },
});

function open() {
  const storage = new MemoryStorage();
  const runtime = createRuntime({ storage, agents: [lead, reader], development: false });
  opened.push(runtime);
  const titleOf = async (id: string) => (await storage.reader.session(id))?.title;
  return { runtime, storage, titleOf };
}

test("a session and its child are titled by their own inputs, and a start may name another title", async () => {
  const { runtime, storage, titleOf } = open();
  const started = await runtime.start(lead, { prompt: "Find the fault\nin the log" });
  expect(await titleOf(started.sessionId)).toBe("Find the fault");
  const named = await runtime.start(lead, { prompt: "Find the fault" }, { title: "Tuesday's fault" });
  expect(await titleOf(named.sessionId)).toBe("Tuesday's fault");
  await runtime.signal(started.sessionId, "go");
  await started.result();
  const children = await storage.reader.sessions({ limit: 10, parent: started.sessionId });
  expect(children.map(({ title }) => title)).toEqual(["read the log"]);
});

test("a title that is set while a session runs, waits or has ended stays, and a fork has it", async () => {
  const { runtime, titleOf } = open();
  const handle = await runtime.start(lead, { prompt: "Find the fault" });
  await handle.setTitle("Another\nname");
  expect(await titleOf(handle.sessionId)).toBe("Another");
  const fork = await runtime.fork(handle.sessionId, { run: false });
  expect(await titleOf(fork.sessionId)).toBe("Another");
  const other = await runtime.fork(handle.sessionId, { at: 0, input: { prompt: "Else" }, run: false });
  expect(await titleOf(other.sessionId)).toBe("Else");
  await handle.signal("go");
  await handle.result();
  expect(await titleOf(handle.sessionId)).toBe("Another");
  await handle.setTitle("");
  expect(await titleOf(handle.sessionId)).toBe("Find the fault");
});

test("a title that is no text, and the title of a session that is not there, are refused", async () => {
  const { runtime } = open();
  await expect(runtime.start(lead, { prompt: "x" }, { title: 7 as never })).rejects.toThrow(/title/);
  await expect(runtime.handle("ses-none").setTitle("x")).rejects.toMatchObject({ code: "session_not_found" });
  await expect(runtime.handle("ses-none").setTitle(7 as never)).rejects.toThrow(/title/);
});
