import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRuntime, MemoryStorage, type Runtime } from "@holdfast/runtime";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";

import { ModelLoop } from "../model-loop/model-loop.ts";
import type { ToolContent } from "../models/model-provider.ts";
import { workspacesByRoot } from "../tasks/workspace-source.ts";
import { RECORD } from "../testing/agent-record.ts";
import { fakeModel } from "../testing/fake-model.ts";
import { webCapability } from "./web-capability.ts";

let folder: string;
let server: Server;
let runtime: Runtime;
let port: number;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "web-"));
  runtime = createRuntime({ storage: new MemoryStorage() });
  server = createServer((_, response) =>
    response.writeHead(200, { "content-type": "text/html" }).end("<h1>Hi</h1>"),
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  ({ port } = server.address() as AddressInfo);
});

afterEach(async () => {
  await runtime.close();
  await new Promise((resolve) => server.close(resolve));
  await rm(folder, { recursive: true, force: true });
});

/** Runs an agent that reads a page and answers with what it got. */
async function read(url: string, pattern: string | null) {
  const model = fakeModel(({ messages }, number) =>
    number === 0
      ? { calls: [["web_fetch", { url }]] }
      : { text: (messages.at(-1)!.content as ToolContent).text },
  );
  const web = webCapability({
    lookup: async () => [{ address: "127.0.0.1", family: 4 }],
    isRefused: (address) => address !== "127.0.0.1",
  });
  const loop = new ModelLoop({ model, workspace: workspacesByRoot(), root: folder, capabilities: [web] });
  const permissions = pattern === null ? [] : [{ decision: "allow", tool: "web_fetch", pattern } as const];
  return runtime.start(loop.agent({ ...RECORD, permissions }), "go");
}

test("a page of a permitted host is read as Markdown", ofCampaign, async () => {
  const handle = await read(`http://docs.test:${port}/a`, "docs.test");
  expect(await handle.result()).toBe(`http://docs.test:${port}/a (200)\n\n# Hi`);
});

test("a page of another host is a question to a person", async () => {
  const handle = await read(`http://other.test:${port}/`, "docs.test");
  await expect.poll(async () => (await handle.session()).status, { timeout: 20_000 }).toBe("input_required");
  expect((await handle.session()).waits[0]).toMatchObject({ prompt: "Allow web_fetch: other.test?" });
  await handle.cancel();
});

test("X8: a private address is refused, and the model reads why", async () => {
  const handle = await read("http://169.254.169.254/", "*");
  expect(await handle.result()).toMatch(/169\.254\.169\.254 is no host of the public Internet/);
});
