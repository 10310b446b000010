// `holdfast models`, and a run without a key beside a local Ollama.

import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { writeFileSync } from "node:fs";
import { startScriptedModelServer } from "@holdfast/testkit";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { Project } from "../testing/holdfast-process.ts";

let project: Project;
let ollama: Server;
let host: string;

beforeEach(async () => {
  project = new Project();
  const model = await startScriptedModelServer({
    script: ({ model: name }) => ({ text: `I am ${name}.` }),
    models: ["qwen3:8b"],
  });
  // Lists its models as Ollama does, and hands all else to the scripted model.
  ollama = createServer((request, response) => {
    if (request.url === "/api/tags") return response.end('{"models":[{"name":"qwen3:8b"},{"name":"other"}]}');
    const body: Buffer[] = [];
    request.on("data", (chunk: Buffer) => body.push(chunk));
    request.on("end", () => void handOn(`${model.url}${request.url}`, Buffer.concat(body), response));
    return response;
  });
  ollama.on("close", () => void model.close());
  await new Promise<void>((resolve) => ollama.listen(0, "127.0.0.1", resolve));
  host = `127.0.0.1:${(ollama.address() as AddressInfo).port}`;
});

afterEach(async () => {
  await project.dispose();
  ollama.closeAllConnections();
  await new Promise((resolve) => ollama.close(resolve));
});

async function handOn(url: string, body: Buffer, response: ServerResponse): Promise<void> {
  const answer = await fetch(url, { method: "POST", body });
  response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "" });
  response.end(Buffer.from(await answer.arrayBuffer()));
}

const run = (env: Record<string, string>, ...args: string[]) =>
  project.finish(args, { stdin: "", env: { HOME: project.path("."), XDG_DATA_HOME: undefined, ...env } });

test(
  "the aliases are listed with prices and context windows, and so are the providers",
  ofCampaign,
  async () => {
    const { code, stdout, stderr } = await run(
      { OLLAMA_HOST: host, OPENAI_API_KEY: "secret-canary" },
      "models",
    );
    expect(code, stderr).toBe(0);
    expect(stdout).toMatch(/sonnet +anthropic\/claude-sonnet-5 +\$2 +\$10 +1000000/);
    expect(stdout).toContain("OpenAI (key from environment): not asked without --online");
    expect(stdout).toContain(`Ollama (${host}): answers, with 2 models: qwen3:8b, other`);
    expect(stdout).not.toContain("secret-canary");
    const json = JSON.parse((await run({ OLLAMA_HOST: host }, "models", "--json")).stdout) as object;
    expect(json).toMatchObject({
      models: expect.arrayContaining([
        expect.objectContaining({ alias: "sonnet", inputUsd: 2, outputUsd: 10, contextWindow: 1_000_000 }),
      ]),
      providers: [expect.objectContaining({ isUsable: true })],
    });
  },
);

test("without a key an Ollama of this machine is used, and the run says so", ofCampaign, async () => {
  writeFileSync(project.path("helper.md"), "---\nname: helper\ndescription: Helps.\n---\nYou help.\n");
  const { code, stdout, stderr } = await run({ OLLAMA_HOST: host }, "run", "helper.md", "Who are you?");
  expect(code, stderr).toBe(0);
  expect(stdout).toBe("I am qwen3:8b.\n");
  expect(stderr).toContain(`no provider has a key here: the model is qwen3:8b of the Ollama at ${host}`);
});

test(
  "a server without the name of its model pauses a session, and the advice continues it",
  ofCampaign,
  async () => {
    writeFileSync(project.path("helper.md"), "---\nname: helper\ndescription: Helps.\n---\nYou help.\n");
    const env = { OPENAI_BASE_URL: `http://${host}/v1` };
    const paused = await run(env, "run", "helper.md", "Who are you?", "--session", "s");
    expect([paused.code, paused.stderr]).toEqual([3, expect.stringContaining("fix: set HOLDFAST_MODEL")]);
    const resumed = await run({ ...env, HOLDFAST_MODEL: "qwen3:8b" }, "resume", "s");
    expect([resumed.code, resumed.stdout], resumed.stderr).toEqual([0, "I am qwen3:8b.\n"]);
  },
);

test("an Ollama takes the place of no model that the agent file names", async () => {
  writeFileSync(
    project.path("named.md"),
    "---\nname: named\ndescription: Helps.\nmodel: sonnet\n---\nYou help.\n",
  );
  const { code, stderr } = await run({ OLLAMA_HOST: host }, "run", "named.md", "Who are you?");
  expect(code).toBe(3);
  expect(stderr).toContain("is paused (auth_required)");
  expect(stderr).toContain("ANTHROPIC_API_KEY is not set");
});
