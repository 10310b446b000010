import { mkdirSync } from "node:fs";
import { serve } from "@hono/node-server";
import { createRuntime, openSqliteStorage } from "holdfast";
import { order } from "../agents/order.ts";
import { createApp } from "./app.ts";

// Before the first request: sessions that waited for a restart continue now.
mkdirSync(".holdfast", { recursive: true, mode: 0o700 });
const storage = await openSqliteStorage({ path: ".holdfast/holdfast.db" });
const runtime = createRuntime({ storage, agents: [order] });
await runtime.recover();

const server = serve(
  { fetch: createApp(runtime).fetch, hostname: "127.0.0.1", port: Number(process.env["PORT"] ?? 3000) },
  ({ port }) => console.log(`listening on http://127.0.0.1:${port}`),
);

for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => void leave());

async function leave(): Promise<void> {
  server.close();
  await runtime.close({ graceMs: 25_000 }); // Running steps may end. The next process continues the rest.
  await storage.close();
  process.exit();
}
