// `holdfast doctor` on installations that are new, wrong, silent or running.

import { createServer, type RequestListener, type Server } from "node:http";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign, sampled } from "@holdfast/testkit/campaign";
import { VERSION } from "@holdfast/core";
import { Project, type Finished } from "../testing/holdfast-process.ts";
import { LocalStack } from "../testing/local-stack.ts";

const CANARY = "sk-canary-5d0e7c1b9a3f";

let project: Project;
let servers: Server[];
beforeEach(() => {
  project = new Project();
  servers = [];
});
afterEach(async () => {
  for (const server of servers) server.close().closeAllConnections();
  await project.dispose();
});

type Found = Readonly<
  Record<string, { readonly status: string; readonly found: string; readonly fix?: string }>
>;

async function doctor(
  env: Readonly<Record<string, string | undefined>> = {},
  ...args: string[]
): Promise<Finished & { readonly checks: Found }> {
  const finished = await project.finish(["doctor", "--json", ...args], { stdin: "", env });
  const { checks } = JSON.parse(finished.stdout) as { checks: readonly { readonly subject: string }[] };
  const bySubject = checks.map((check) => [check.subject, check] as const);
  return { ...finished, checks: Object.fromEntries(bySubject) as unknown as Found };
}

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  servers.push(server);
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as { port: number }).port}`;
}

describe("an installation without anything", () => {
  test("every subject has a line, nothing is a problem, and nothing is made", ofCampaign, async () => {
    const { code, stdout } = await project.run("doctor");
    expect(code).toBe(0);
    for (const text of [
      `holdfast     ${VERSION}, on Node`,
      "no file, so defaults; mode local",
      "GiB free",
      "no secret is stored",
      "calls defineAgent",
      "not running",
      "HOLDFAST_URL names one",
      "the installation has no problem",
    ])
      expect(stdout).toContain(text);
    expect(stdout).toMatch(/port 8765 +\S/);
    expect(readdirSync(project.folder)).toEqual([]);
  });

  test("files that define agents are found without running them", ofCampaign, async () => {
    mkdirSync(project.path("src/node_modules"), { recursive: true });
    const code = 'import { defineAgent } from "holdfast";\nprocess.exit(1);\ndefineAgent({});\n';
    for (const name of ["src/one.ts", "two.mjs", "src/node_modules/three.js"])
      writeFileSync(project.path(name), code);
    writeFileSync(project.path("four.ts"), "export const four = 4;\n");
    const { agents } = (await doctor()).checks;
    expect(agents).toMatchObject({ status: "ok", found: expect.stringContaining("2 files") });
    expect(agents!.found).toContain("src/one.ts, two.mjs");
  });
});

describe("an installation that is wrong", () => {
  test.each<
    [string, Record<string, string>, Record<string, string | undefined>, string, string, number, string]
  >(
    sampled([
      [
        "settings that are not JSON",
        { ".holdfast/config.json": "{" },
        {},
        "settings",
        "problem",
        3,
        "config.json",
      ],
      [
        "a setting that is not known",
        { ".holdfast/config.json": '{"dbx":1}' },
        {},
        "settings",
        "problem",
        3,
        "dbx",
      ],
      [
        "a policy that is wrong",
        { ".config/holdfast/runner-policy.json": '{"concurrency":"many"}' },
        {},
        "settings",
        "problem",
        3,
        "runner-policy.json",
      ],
      ["a mode that does not exist", {}, { HOLDFAST_MODE: "clowd" }, "settings", "problem", 2, "clowd"],
      ["a home that is a file", { home: "" }, { HOME: "home" }, "data", "warning", 0, "ENOTDIR"],
      ["a home that cannot be made", {}, { HOME: "/proc/none" }, "data", "warning", 0, "/proc/none"],
      ["no home", {}, { HOME: undefined }, "data", "ok", 0, join(userInfo().homedir, ".local")],
      [
        "a file of secrets that is damaged",
        { ".local/share/holdfast/secrets.json": "{" },
        {},
        "secrets",
        "problem",
        3,
        "secrets.json",
      ],
      [
        "an address of a coordinator that is none",
        {},
        { HOLDFAST_URL: "ftp://x" },
        "coordinator",
        "problem",
        2,
        "HOLDFAST_URL",
      ],
      ["an executor that is broken", { "profiles/odd.json": "[" }, {}, "agents", "warning", 0, "odd"],
      [
        "an address of models that is none",
        {},
        { OPENAI_BASE_URL: "nowhere" },
        "models",
        "warning",
        0,
        "OPENAI_BASE_URL",
      ],
    ]),
  )("%s has its line, and the other checks are made", async (_, files, env, subject, status, exit, text) => {
    for (const [name, content] of Object.entries(files)) {
      mkdirSync(project.path(`${name}/..`), { recursive: true, mode: 0o700 });
      writeFileSync(project.path(name), content, { mode: 0o600 });
    }
    const home = env["HOME"] === "home" ? { HOME: project.path("home") } : {};
    const { code, checks } = await doctor({ ...env, ...home });
    expect({ code, check: checks[subject] }).toMatchObject({ code: exit, check: { status } });
    expect(checks[subject]!.found).toContain(text);
    if (status !== "ok") expect(checks[subject]!.fix).not.toBe("");
    expect(Object.keys(checks).length).toBeGreaterThanOrEqual(12);
    expect(checks["holdfast"]).toMatchObject({ status: "ok" });
  });
});

describe("models", () => {
  test("a key is named by its variable, and shown and sent nowhere", ofCampaign, async () => {
    const env = { ANTHROPIC_API_KEY: CANARY, ANTHROPIC_BASE_URL: "http://192.0.2.1" };
    const { checks, stdout, stderr } = await doctor(env);
    expect(checks["models"]!.found).toContain(
      "key from environment, at 192.0.2.1): not asked without --online",
    );
    expect(stdout + stderr).not.toContain(CANARY);
  });

  test.each(
    sampled([
      [200, "ok", "answers"],
      [401, "warning", "refuses the key"],
    ]),
  )(
    "a provider on this machine that answers %i is asked with the key in a header",
    async (status, state, text) => {
      const keys: unknown[] = [];
      const url = await serve((request, response) => {
        keys.push([request.url, request.headers["x-api-key"]]);
        response.writeHead(status).end("{}");
      });
      const env = { ANTHROPIC_API_KEY: CANARY, ANTHROPIC_BASE_URL: url };
      const { checks, stdout, stderr } = await doctor(env);
      expect(checks["models"]).toMatchObject({ status: state, found: expect.stringContaining(text) });
      expect(keys).toEqual([["/v1/models", CANARY]]);
      expect(stdout + stderr).not.toContain(CANARY);
    },
  );

  test(
    "an Ollama that answers is shown with its models, and one that never answers does not hold the command",
    ofCampaign,
    async () => {
      const ollama = await serve((_, response) => response.end('{"models":[{"name":"qwen3:8b"}]}'));
      const found = (await doctor({ OLLAMA_HOST: ollama.replace("http://", "") })).checks["models"];
      expect(found).toMatchObject({ status: "ok", found: expect.stringContaining("1 model: qwen3:8b") });
      const silent = await serve(() => {});
      const none = (await doctor({ OLLAMA_HOST: silent })).checks["models"];
      expect(none).toMatchObject({ status: "warning", found: expect.stringContaining("no answer in 1 s") });
    },
  );
});

describe("a coordinator that is named", () => {
  const named = (url: string) => ({ HOLDFAST_URL: url, HOLDFAST_TOKEN: "hf_usr_x" });

  test(
    "a coordinator of another version and time is a warning, and so is an older runner",
    ofCampaign,
    async () => {
      const url = await serve((request, response) =>
        response.end(
          JSON.stringify(
            request.url === "/v1/version"
              ? { version: "9.8.7", now: Date.now() + 3_600_000 }
              : { runners: [{ name: "box-1", status: "silent" }] },
          ),
        ),
      );
      const { code, checks } = await doctor(named(url));
      expect(code).toBe(0);
      const { coordinator, clock } = checks;
      expect(coordinator).toMatchObject({ status: "warning", fix: expect.stringContaining("update") });
      for (const text of ["9.8.7", "1 runner, 1 silent", "box-1 has version unknown"])
        expect(coordinator!.found).toContain(text);
      expect(clock).toMatchObject({
        status: "warning",
        found: expect.stringMatching(/(60 min|1 h) .*behind/),
      });
    },
  );

  test.each<[string, RequestListener, number, string]>(
    sampled([
      ["never answers", () => {}, 7, "no answer in 3 s"],
      ["refuses the token", (_, response) => response.writeHead(401).end(), 5, "refuses the token"],
      ["fails", (_, response) => response.writeHead(503).end(), 7, "HTTP 503"],
      ["does not know the call", (_, response) => response.writeHead(404).end(), 0, "older"],
    ]),
  )("a coordinator that %s has its line and exit code", async (_, listener, exit, text) => {
    const { code, checks } = await doctor(named(await serve(listener)));
    expect({ code, found: checks["coordinator"]!.found }).toEqual({
      code: exit,
      found: expect.stringContaining(text),
    });
  });
});

describe("the local stack", () => {
  test(
    "a stack that runs is shown with its agents, versions and clock, and a dead supervisor with the way out",
    ofCampaign,
    async () => {
      const stack = new LocalStack(project);
      try {
        await stack.start();
        const { url } = await stack.ready();
        const running = await doctor();
        expect(running.code).toBe(0);
        expect(running.checks["stack"]).toMatchObject({
          status: "ok",
          found: `running on ${url}, with agents greet, steps`,
        });
        expect(running.checks["coordinator"]).toEqual({
          subject: "coordinator",
          status: "ok",
          found: `${url} has version ${VERSION}; 1 runner`,
        });
        expect(running.checks["clock"]).toMatchObject({
          status: "ok",
          found: expect.stringContaining("agrees"),
        });
        await stack.kill("supervisor");
        const dead = await doctor();
        expect(dead.checks["stack"]).toMatchObject({
          status: "warning",
          found: expect.stringContaining("has died"),
          fix: expect.stringContaining("local start"),
        });
      } finally {
        await stack.dispose();
      }
      expect(existsSync(project.folder)).toBe(false);
    },
  );
});

test("a report for an issue names no secret, no place and no host, and says what is wrong", async () => {
  writeFileSync(project.path("broken.md"), "---\nname: broken\n---\n");
  const env = {
    ANTHROPIC_API_KEY: CANARY,
    FLEET_PASSWORD: "plain words of ours",
    HOLDFAST_URL: "http://plain words of ours@fleet.invalid:8443",
  };
  const { stdout, stderr, code } = await project.finish(["doctor", "--report"], { stdin: "", env });
  expect(stdout).toMatch(/^```text\nholdfast \d[^\n]* Node \d[^]*\n```\n$/);
  expect(stdout).toMatch(/^problem coordinator: /m);
  expect(code).not.toBe(0);
  for (const text of [CANARY, "plain words", "fleet.invalid", project.folder])
    expect(stdout + stderr).not.toContain(text);
  const { report } = JSON.parse(
    (await project.finish(["doctor", "--report", "--json"], { stdin: "", env })).stdout,
  ) as { readonly report: string };
  expect(`${report}\n`.split("\n")[1]).toBe(stdout.split("\n")[1]);
});
