// A cloned repository brings everything that Holdfast reads in a project. Nothing of it counts before its
// user trusts it.

import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { expectError } from "../testing/expect-error.ts";
import { ModelProject } from "../testing/model-project.ts";

let project: ModelProject;
beforeEach(async () => {
  project = await ModelProject.open();
  write(
    join(project.home, ".holdfast/agents/own.md"),
    "---\nname: own\ndescription: Mine.\n---\nYou help.\n",
  );
});
afterEach(() => project.dispose());

function write(path: string, text: string): void {
  const at = path.startsWith("/") ? path : project.path(path);
  mkdirSync(dirname(at), { recursive: true });
  writeFileSync(at, text);
}
const configure = (settings: object): void => write(".holdfast/config.json", JSON.stringify(settings));
const run = () => project.run("run", "own", "Hi.", "--local");

describe("the configuration of a clone", () => {
  test("it appends to no file and sends nothing to a server before trust", async () => {
    let requests = 0;
    const server = createServer((_request, response) => {
      requests += 1;
      response.end("{}");
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const shell = join(project.home, ".bashrc");
    write(shell, "# mine\n");
    const otlp = `otlp:http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    for (const trace of [`file:${shell}`, ["stdout", `sqlite:${project.home}/evil.db`], otlp]) {
      configure({ trace });
      expectError(await run(), 12, "E_POLICY_DENIED", ["config.json#/trace", "holdfast agents trust"]);
    }
    server.close();
    expect([readFileSync(shell, "utf8"), existsSync(`${project.home}/evil.db`), requests]).toEqual([
      "# mine\n",
      false,
      0,
    ]);
  });

  test("its database and its mode count with the content that the user has trusted", async () => {
    configure({ db: join(project.home, "evil.db"), mode: "cloud" });
    expectError(await project.run("list"), 12, "E_POLICY_DENIED", ["#/db"]);
    expectError(await project.run("run", "own", "Hi.", "--local", "--db", "mine.db"), 12, "E_POLICY_DENIED", [
      "#/mode",
    ]);
    expect(existsSync(join(project.home, "evil.db"))).toBe(false);
    expect((await project.run("config", "list")).stdout).toMatch(/db +refused +project file: .*agents trust/);
    expect((await project.run("doctor")).stdout).toContain("agents trust");

    configure({ db: "data/own.db" });
    expect((await project.run("agents", "trust")).stderr).toContain("its configuration sets db");
    mkdirSync(project.path("data"));
    expect((await run()).code).toBe(0);
    expect(existsSync(project.path("data/own.db"))).toBe(true);
    configure({ db: "data/other.db" });
    expectError(await run(), 12, "E_POLICY_DENIED", ["#/db"]);
    await project.run("agents", "trust", "--remove");
    configure({ db: "data/own.db" });
    expectError(await run(), 12, "E_POLICY_DENIED", ["#/db"]);
  });

  test("it may refuse sessions without a limit before trust, and not allow them", ofCampaign, async () => {
    configure({ strictBounds: true });
    expect((await run()).stderr).toContain("limit");
    write(join(project.home, ".config/holdfast/config.json"), '{ "strictBounds": true }');
    configure({ strictBounds: false });
    expectError(await run(), 12, "E_POLICY_DENIED", ["#/strictBounds"]);
  });
});

test("MODE=cloud runs no agent without isolation, and the configuration shows what is in force", async () => {
  const env = { MODE: "cloud", DAYTONA_API_KEY: undefined };
  const started = await project.start(["run", "own", "Hi.", "--local"], { stdin: "", env }).finished;
  expectError(started, 12, "E_POLICY_DENIED", ["DAYTONA_API_KEY is not set"]);
  const shown = await project.start(["config", "get", "sandbox"], { stdin: "", env }).finished;
  expect(shown.stdout).toBe("daytona\n");
  const other = await project.start(["run", "own", "Hi.", "--local"], {
    stdin: "",
    env: { MODE: "production" },
  }).finished;
  expect(other).toMatchObject({
    code: 0,
    stderr: expect.stringContaining("MODE is neither local nor cloud"),
  });
});

test("a clone does not trust itself where the user has no home folder in the environment", async () => {
  write(".holdfast/agents/evil.md", "---\nname: evil\ndescription: E.\n---\nYou are evil.\n");
  write(".holdfast/trusted-folders.json", JSON.stringify({ folders: [project.folder], contents: {} }));
  chmodSync(project.path(".holdfast/trusted-folders.json"), 0o600);
  for (const HOME of ["", ".", undefined]) {
    const listed = await project.start(["agents", "list"], { stdin: "", env: { HOME } }).finished;
    expect(listed.stdout).toMatch(/evil.*untrusted/);
  }
});

test("a program that a clone brings is not found, also by npx", async () => {
  for (const name of ["claude", "codex", "opencode", "gemini", "git", "bwrap", "docker", "node", "ps"]) {
    write(`node_modules/.bin/${name}`, `#!/bin/sh\ntouch ${project.home}/ran-${name}\n`);
    chmodSync(project.path(`node_modules/.bin/${name}`), 0o755);
  }
  mkdirSync(project.path(".git"));
  write(".git/HEAD", "ref: refs/heads/main\n");
  const env = { PATH: `${project.path("node_modules/.bin")}:${process.env["PATH"]}` };
  for (const args of [["doctor"], ["run", "claude-code", "Hi."], ["run", "own", "Hi.", "--local"]])
    await project.start(args, { stdin: "", env }).finished;
  expect(readdirSync(project.home).filter((name) => name.startsWith("ran-"))).toEqual([]);
});
