// MCP servers through the real command: trust, the question about a call, and refusals before a session
// starts.

import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { startScriptedModelServer, type ScriptedModelServer } from "@holdfast/testkit";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { Project } from "../testing/holdfast-process.ts";

const PROGRAM = fileURLToPath(new URL("../../../mcp/src/testing/mcp-server-program.mjs", import.meta.url));
/** The calls of tools that the model asks for, one in each reply. */
let calls: readonly string[] = ["greet"];
let project: Project;
let home: string;
let server: ScriptedModelServer;

beforeEach(async () => {
  calls = ["greet"];
  project = new Project({ eachAsProcess: true });
  home = mkdtempSync(join(tmpdir(), "holdfast-home-"));
  server = await startScriptedModelServer({
    script: ({ messages }) => {
      const name = calls[messages.filter(({ role }) => role === "assistant").length];
      return name === undefined
        ? { text: "Done." }
        : { toolCalls: [{ name: `mcp__test__${name}`, input: { text: "you" } }] };
    },
  });
  const settings = {
    command: process.execPath,
    args: [PROGRAM, "good", project.path("log")],
    env: { TEST_TOKEN: "${TEST_TOKEN}" },
  };
  project.write(".mcp.json", JSON.stringify({ mcpServers: { test: settings } }));
  project.write(
    ".holdfast/agents/helper.md",
    "---\nname: helper\ndescription: Helps.\ntools: mcp__test__*\nholdfast: { approvals: { allow: [mcp__test__*] } }\nmcpServers: [test]\n---\nYou help.\n",
  );
});

afterEach(async () => {
  await project.dispose();
  await server.close();
  rmSync(home, { recursive: true, force: true });
});

const logged = (): readonly string[] =>
  existsSync(project.path("log")) ? readFileSync(project.path("log"), "utf8").trim().split("\n") : [];

/** Processes of servers of a session. Other systems than Linux show no environment. */
function taggedProcesses(tag: string): readonly string[] {
  if (process.platform !== "linux") return [];
  return readdirSync("/proc").filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/environ`, "utf8").includes(`HOLDFAST_TAG=${tag}`);
    } catch {
      return false; // It is no process, or one of another user, or has just ended.
    }
  });
}

const run = (args: readonly string[], env: Record<string, string> = {}) =>
  project.finish([...args], {
    stdin: "",
    env: { HOME: home, XDG_DATA_HOME: undefined, HOLDFAST_SCRIPTED_MODEL_URL: server.url, ...env },
  });

test(
  "a server of a trusted project answers in a run, and its secret is recorded nowhere",
  ofCampaign,
  async () => {
    const untrusted = await run(["run", ".holdfast/agents/helper.md", "Greet.", "--session", "s0"]);
    expect(untrusted.code).not.toBe(0);
    expect(untrusted.stderr).toContain('asks for the MCP server "test", which is not there');
    expect(untrusted.stderr).toContain("holdfast agents trust");
    await run(["agents", "trust"]);
    const missing = await run(["run", "helper", "Greet.", "--session", "s1"]);
    expect(missing.stderr).toContain("${TEST_TOKEN} has no value");
    expect((await run(["show", "s1"])).code).not.toBe(0);
    const done = await run(["run", "helper", "Greet.", "--session", "s2"], { TEST_TOKEN: "canary-7731" });
    expect(done.code, done.stderr).toBe(0);
    const logs = (await run(["logs", "s2"])).stdout;
    expect(logs).toContain("Hello you, ");
    expect(logs).not.toContain("canary-7731");
  },
);

test(
  "an image of a server reaches a model that takes images, and the journal has it as a blob",
  ofCampaign,
  async () => {
    calls = ["picture"];
    await run(["agents", "trust"]);
    const env = { TEST_TOKEN: "canary-7731" };
    const done = await run(["run", "helper", "Look.", "--session", "i1"], env);
    expect(done.code, done.stderr).toBe(0);
    const shown = server.requests.at(-1)?.conversation?.messages.at(-1)?.toolResults?.[0]?.text ?? "";
    expect(shown.split("\n")).toEqual([
      "A picture and more.",
      "[image: image/png, 90000 bytes]",
      "[audio/wav, 300 bytes: the record of this call keeps it, and you cannot read it]",
      "The text of a resource.",
      "[file:///a.zip, application/zip, 3 bytes: the record of this call keeps it, and you cannot read it]",
      "[link to file:///b.txt: b.txt]",
      "[image/png, 4718592 bytes: left out, because it is too large or no base64]",
      "[image]", // The part itself, as the scripted server shows it.
    ]);
    const image = Buffer.alloc(90_000, 7).toString("base64");
    expect(JSON.stringify(server.requests.at(-1)?.body)).toContain(image);
    const database = new DatabaseSync(project.path(".holdfast/holdfast.db"), { readOnly: true });
    const holding = ["journal", "entry", "state", "session", "signal", "blob"].filter((table) =>
      database
        .prepare(`SELECT * FROM "${table}"`)
        .all()
        .some((row) => JSON.stringify(row).includes(image.slice(0, 1_000))),
    );
    database.close();
    expect(holding).toEqual(["blob"]);

    const elsewhere = await run(["run", "helper", "Look.", "--session", "i2"], {
      ...env,
      HOLDFAST_SCRIPTED_MODEL_URL: "",
      OPENAI_BASE_URL: server.openaiBaseUrl,
      HOLDFAST_MODEL: "some",
    });
    expect(elsewhere.code, elsewhere.stderr).toBe(0);
    const sentence = server.requests.at(-1)?.conversation?.messages.at(-1)?.toolResults?.[0]?.text ?? "";
    expect(sentence).toContain("this model's server takes no images in results");
    expect(sentence).not.toContain(image.slice(0, 100));
  },
);

test(
  "an environment, --env and a secret give a server its value, also in a session that is resumed",
  ofCampaign,
  async () => {
    project.write(
      ".holdfast/agents/asker.md",
      "---\nname: asker\ndescription: Asks.\ntools: mcp__test__*\nmcpServers: [test]\n---\nYou help.\n",
    );
    await run(["agents", "trust"]);
    const greeted = async (session: string, ...options: string[]): Promise<string> => {
      const done = await run(["run", "helper", "Greet.", "--session", session, ...options]);
      expect(done.code, done.stderr).toBe(0);
      return (await run(["logs", session])).stdout;
    };
    expect(await greeted("e1", "--env", "TEST_TOKEN=of-the-call")).toContain("Hello you, of-the-call.");
    await run(["env", "set", "base", "TEST_TOKEN=of-the-base"]);
    expect(await greeted("e2")).toContain("Hello you, of-the-base.");
    await run(["env", "set", "staging", "TEST_TOKEN", "--secret"]);
    const refused = await run(["run", "helper", "Greet.", "--session", "e3", "--env-ref", "staging"]);
    expect(refused.stderr).toContain("TEST_TOKEN");
    expect((await run(["show", "e3"])).code).not.toBe(0);
    const env = { TEST_TOKEN: "canary-7731-secret" };
    await run(["run", "asker", "Greet.", "--session", "e4", "--env-ref", "staging", "--park"], env);
    await run(["approve", "e4"]);
    const resumed = await run(["resume", "e4"], env);
    expect(resumed.code, resumed.stderr).toBe(0);
    const journal = (await run(["logs", "e4", "--json"])).stdout;
    expect(journal).toContain("[secret]");
    expect(journal).not.toContain("canary-7731-secret");
  },
);

test(
  "a run that is killed in the middle of a call leaves no server, and repeats nothing",
  ofCampaign,
  async () => {
    calls = ["count", "wait", "count"];
    await run(["agents", "trust"]);
    const env = {
      HOME: home,
      XDG_DATA_HOME: undefined,
      HOLDFAST_SCRIPTED_MODEL_URL: server.url,
      TEST_TOKEN: "t",
    };
    const killed = project.start(["run", "helper", "Greet.", "--session", "s3"], { stdin: "", env });
    await expect.poll(logged, { timeout: 50_000 }).toContain("call wait");
    killed.kill("SIGKILL");
    await killed.finished;
    const resumed = await run(["resume", "s3"], { TEST_TOKEN: "t" });
    expect(resumed.code, resumed.stderr).toBe(0);
    expect(logged().filter((line) => line.startsWith("call"))).toEqual([
      "call count",
      "call wait",
      "call count",
    ]);
    expect((await run(["logs", "s3"])).stdout).toContain("nobody knows whether it took effect");
    expect(taggedProcesses("mcp/s3/")).toEqual([]);
  },
);
