// Starts the watch with a budget, puts its schedule, and leaves: `holdfast schedule run` does the rest. Safe
// to repeat.

import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { connectSqliteStorage, createRuntime, openSqliteStorage } from "holdfast";
import watch from "./watch.ts";

const [file = "watched.log", cron = "*/5 * * * *", steps = "100"] = process.argv.slice(2);

mkdirSync(".holdfast", { recursive: true });
const path = ".holdfast/holdfast.db";
const storage = (await connectSqliteStorage({ path })) ?? (await openSqliteStorage({ path }));
const runtime = createRuntime({ storage, adopt: false });

await runtime.start(
  watch,
  { file: resolve(file), linesMax: 5, looksMax: 1_000 },
  {
    sessionId: "watch",
    file: fileURLToPath(new URL("watch.ts", import.meta.url)),
    // A limit for any code of the agent: no more steps than this, and no longer than a week.
    budget: { maxSteps: Number(steps), ttlMs: 7 * 86_400_000 },
  },
);
const { nextAt } = await runtime.schedule({
  id: "watch-tick",
  cron,
  timeZone: "Europe/Berlin",
  signal: { sessionId: "watch", name: "tick" },
});
console.log(`first tick at ${new Date(nextAt).toISOString()}`);

await runtime.close();
await storage.close();
