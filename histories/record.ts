// Records the golden histories that do not exist yet: `node histories/record.ts`
//
// A history that exists is never written again: it stands for what sessions out there were recorded with. `SHA256SUMS` says what each
// was when it was recorded, and is only ever added to.

import { createHash } from "node:crypto";
import { appendFileSync, existsSync, writeFileSync } from "node:fs";
import { encodeRecords, JOURNAL_FORMAT } from "@holdfast/core";
import { createRuntime, defineAgent, MemoryStorage } from "@holdfast/runtime";
import { vanishRuntime } from "@holdfast/runtime/internal";
import { HISTORY_SCENARIOS, type HistoryScenario } from "../packages/testkit/src/history-scenarios.ts";
import { journalOf, mortal, TestClock, until } from "../packages/testkit/src/test-runtime.ts";

const SEED = 20_260_101;

for (const scenario of HISTORY_SCENARIOS) {
  const file = `${scenario.name}.jsonl`;
  const path = new URL(`./${file}`, import.meta.url);
  if (existsSync(path)) continue;
  const text = await record(scenario);
  writeFileSync(path, text);
  const sum = createHash("sha256").update(text).digest("hex");
  appendFileSync(new URL("./SHA256SUMS", import.meta.url), `${sum}  ${file}\n`);
  process.stdout.write(`recorded ${scenario.name}\n`);
}

async function record(scenario: HistoryScenario): Promise<string> {
  const { name, shows, input, tasks = [], agents = [], run, course, diesAfter } = scenario;
  const storage = new MemoryStorage();
  const clock = new TestClock();
  const agent = defineAgent({ name, tasks, agents, run });
  const life = mortal(storage);
  let drawn = 0;
  const random = { u32: () => (drawn++ === 0 ? SEED : drawn) };
  const options = { clock, agents: [agent], owner: "recorder", development: false, random };
  let runtime = createRuntime({ ...options, storage: life.storage });
  if (diesAfter !== undefined) life.dieAfter(diesAfter);
  const sessionId = `history-${name}`;
  const started = runtime.start(agent, input, { sessionId });
  started.catch(() => {}); // Its answer may be lost with the process.
  if (diesAfter !== undefined) {
    await until(() => life.dead, "the end of the first process");
    vanishRuntime(runtime);
    runtime = createRuntime({ ...options, storage });
  }
  const handle = diesAfter === undefined ? await started : await runtime.resume(sessionId);
  const settled = handle.settled();
  await course?.(handle, clock);
  await clock.advance(0);
  await settled;
  await runtime.close();
  const { status, output, error, flags } = (await storage.reader.session(handle.sessionId))!;
  const end = { status, output, error };
  const header = { holdfast: "history", format: JOURNAL_FORMAT, flags, name, shows, sessionId, seed: SEED, input, end };
  const journal = await journalOf(storage, handle.sessionId);
  const put = (): never => {
    throw new Error("histories hold no blobs");
  };
  return `${JSON.stringify(header)}\n${encodeRecords(journal, { put })}\n`;
}
