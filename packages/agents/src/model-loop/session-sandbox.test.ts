// The sandbox of a session is removed when the session has ended, and not while it waits.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRuntime, MemoryStorage } from "@holdfast/runtime";
import { openWorkspace, Sandboxes, ownSandboxes, type SandboxBackend } from "@holdfast/workspace";
import { expect, onTestFinished, test } from "vitest";

import { RECORD } from "../testing/agent-record.ts";
import { fakeModel } from "../testing/fake-model.ts";
import { ModelLoop } from "./model-loop.ts";

test("the sandbox of a session is removed once the session ends, and that of a session that waits is kept", async () => {
  const root = mkdtempSync(join(tmpdir(), "session-sandbox-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const destroyed: string[] = [];
  const [{ capabilities }] = ownSandboxes() as [SandboxBackend];
  const rented: SandboxBackend = {
    name: "rented",
    capabilities,
    check: async () => ({ status: "ready", found: "rented" }),
    open: (place) => openWorkspace({ root: place.root }),
    destroy: async ({ session }) => void destroyed.push(session),
  };
  const sandboxes = new Sandboxes([rented]);
  const loop = new ModelLoop({
    model: fakeModel((_request, number) =>
      number > 0 ? { text: "done" } : { calls: [["list_files", { path: "." }]] },
    ),
    workspace: sandboxes.open,
    sessionEnded: (sessionId) => sandboxes.destroyOf(sessionId),
    root,
    place: async (_record, task) => ({
      address: sandboxes.addressOf("rented", { session: task.sessionId, root }),
    }),
  });
  const storage = new MemoryStorage();
  const runtime = createRuntime({ storage, warmMs: 0 });
  const answering = loop.agent({ ...RECORD, name: "answers" });
  await (await runtime.start(answering, "Work.", { sessionId: "ends" })).result();
  await runtime.start(answering, { prompt: "Work.", conversation: true }, { sessionId: "waits" });
  await expect.poll(async () => (await storage.reader.session("waits"))?.status).toBe("waiting");
  await expect.poll(() => destroyed).toEqual(["ends"]);
  await runtime.cancel("waits", { hard: true });
  await runtime.close();
}, 20_000);
