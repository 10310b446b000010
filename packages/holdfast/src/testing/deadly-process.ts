// A program without a coordinator whose sessions may end it: PATH, KIND of the deadly session, END of the
// program. A path `postgres://…#SCHEMA` is a schema of that database.
//
// It starts its sessions once, and runs all that are due. It prints their statuses when none is active.

import { openPostgresStorage } from "@holdfast/storage/postgres";
import { createRuntime, defineAgent, openSqliteStorage, type Runtime } from "holdfast";
import { setTimeout as sleep } from "node:timers/promises";

const DEATHS: { readonly [kind in string]?: () => void } = {
  kill: () => process.kill(process.pid, "SIGKILL"),
  exit: () => process.exit(1),
  throw: () =>
    void setTimeout(() => {
      throw new Error("a callback of the task threw");
    }),
};

const [path = "", kind = "", end] = process.argv.slice(2);
const [url = "", schema] = path.split("#");
const storage = await (schema === undefined
  ? openSqliteStorage({ path })
  : openPostgresStorage({ url, schema }));
const deadly = defineAgent({
  name: "deadly",
  run: (ctx) =>
    ctx.run("ends the process", async () => {
      DEATHS[kind]?.();
      await sleep(3_600_000);
    }),
});
const innocent = defineAgent({
  name: "innocent",
  run: async (ctx) => {
    for (let step = 0; step < 2; step++) await ctx.run("step", () => sleep(100));
  },
});
const runtime: Runtime = createRuntime({ storage, agents: [deadly, innocent] });
const ids = ["a-innocent", "deadly", "z-innocent"];
const isFirst = (await storage.reader.session("deadly")) === undefined;
if (isFirst && end === undefined) for (const id of ["a-innocent", "z-innocent"]) await begin(innocent, id);
if (isFirst) await begin(deadly, "deadly");
const recovering = runtime.recover();
if (end !== undefined) {
  await recovering;
  process.stdout.write("ready\n");
}
if (end === "main") throw new Error("the program failed for a reason of its own");
if (end === undefined) {
  await recovering;
  const settled = await Promise.all(ids.map((id) => runtime.handle(id).settled()));
  process.stdout.write(`${JSON.stringify(settled.map(({ status }) => status))}\n`);
  const row = await storage.reader.session("deadly");
  process.stdout.write(`${JSON.stringify([row?.pauseReason, row?.error?.message])}\n`);
  await runtime.close();
  await storage.close();
}

/** The session is stored before its agent runs. */
async function begin(agent: typeof innocent, sessionId: string): Promise<void> {
  await runtime.start(agent, undefined, { sessionId });
}
