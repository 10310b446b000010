// A process that runs a session over PostgreSQL and hangs in its last step: for tests of what becomes of it
// when this process ends.
//
// Arguments: URL, schema, and "start", "recover" or "resume". Each line on standard output says what has just
// happened. SIGUSR2 lets the last step end. With a number of seconds as fourth argument the last step blocks
// the event loop for so long, beside a watchdog.

import { execSync } from "node:child_process";
import { writeSync } from "node:fs";
import type { HoldfastError } from "@holdfast/core";
import { createRuntime, Watchdog } from "@holdfast/runtime";
import { openPostgresStorage } from "@holdfast/storage/postgres";
import { SESSION_ID, stepping } from "./stepping-agent.ts";

const [url = "", schema = "", how, blocksFor] = process.argv.slice(2);
const say = (line: string): void => void writeSync(1, `${line}\n`);

const agent = stepping({
  onStep: (n) => say(`step ${n}`),
  last: async () => (blocksFor === undefined ? hang() : block(blocksFor)),
});

function block(seconds: string): void {
  say("blocking");
  execSync(`sleep ${seconds}`);
}

function hang(): Promise<void> {
  say("hanging");
  return new Promise((resolve) => void process.once("SIGUSR2", () => resolve()));
}

// A parent that died has nobody left to end us.
process.stdin.resume().once("end", () => process.exit());
const storage = await openPostgresStorage({ url, schema });
const watchdog = blocksFor === undefined ? {} : { watchdog: new Watchdog() };
const runtime = createRuntime({ storage, agents: [agent], ...watchdog });
if (how === "start") await runtime.start(agent, undefined, { sessionId: SESSION_ID });
else if (how === "resume") await runtime.resume(SESSION_ID);
else say(`recovered ${(await runtime.recover()).join()}`);
await runtime
  .handle(SESSION_ID)
  .result()
  .then(
    (output) => say(`result ${output as string}`),
    (error: unknown) => say(`failed ${(error as HoldfastError).code}`),
  );
