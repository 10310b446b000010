import { mkdirSync } from "node:fs";
import { createRuntime, openSqliteStorage, type Runtime } from "holdfast";
import { order } from "../agents/order.ts";

// The development server loads this file again after an edit, and once for each route. The runtime stays.
const kept = globalThis as { holdfast?: Promise<Runtime> };

export const runtime = await (kept.holdfast ??= open());

async function open(): Promise<Runtime> {
  mkdirSync(".holdfast", { recursive: true, mode: 0o700 });
  const storage = await openSqliteStorage({ path: ".holdfast/holdfast.db" });
  // An edited agent takes the place of the former one with the next start of the agent.
  const replaceAgents = process.env["NODE_ENV"] !== "production";
  const made = createRuntime({ storage, agents: [order], replaceAgents });
  await made.recover(); // Sessions that waited for a restart continue now.
  return made;
}
