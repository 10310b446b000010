// Records the golden histories that do not exist yet: `node histories/record.ts`
//
// A history that exists is never written again: it stands for what sessions out there were recorded with.

import { existsSync, writeFileSync } from "node:fs";
import { encodeRecords, JOURNAL_FORMAT } from "@holdfast/core";
import { createRuntime, MemoryStorage } from "@holdfast/runtime";
import { vanishRuntime } from "@holdfast/runtime/internal";
import { agentOf, HISTORY_SCENARIOS, type HistoryScenario } from "../packages/testkit/src/history-scenarios.ts";
import { journalOf, mortal, TestClock, until } from "../packages/testkit/src/test-runtime.ts";

const SEED = 20_260_101;

for (const scenario of HISTORY_SCENARIOS) {
  const path = new URL(`./${scenario.name}.jsonl`, import.meta.url);
  if (existsSync(path)) continue;
  writeFileSync(path, await record(scenario));
  process.stdout.write(`recorded ${scenario.name}\n`);
}

async function record(scenario: HistoryScenario): Promise<string> {
  const { name, shows, input, course, diesAfter } = scenario;
  const storage = new MemoryStorage();
  const clock = new TestClock();
  const agent = agentOf(scenario);
  const life = mortal(storage);
  let drawn = 0;
  const options = { clock, agents: [agent], owner: "recorder", development: false, random: { u32: () => (drawn++ === 0 ? SEED : drawn) } };
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
  const { status, output, error } = (await storage.reader.session(handle.sessionId))!;
  const header = { holdfast: "history", format: JOURNAL_FORMAT, name, shows, sessionId: handle.sessionId, seed: SEED, input, end: { status, output, error } };
  const journal = await journalOf(storage, handle.sessionId);
  return `${JSON.stringify(header)}\n${encodeRecords(journal, { put: () => { throw new Error("histories hold no blobs"); } })}\n`;
}
