// Cures of the errors of the command: each is met, its advice is followed, and the same command succeeds.
// `scripts/cures.test.ts` finds the rows by their first argument. Errors of REST have theirs in
// `coordinator/src/behaviour/cures.test.ts`.

import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startCoordinator } from "../testing/coordinator-process.ts";
import { Project, type Finished } from "../testing/holdfast-process.ts";

const AGENTS = {
  echo: "run: async (_ctx, input) => input",
  ask: 'run: async (ctx) => { await ctx.run("step", () => 1); return (await ctx.requestInput({ prompt: "Go on?" })).approved; }',
  fails:
    'run: async (ctx) => ctx.run("step", () => { throw new Error("boom"); }, { retry: { maxAttempts: 1 } })',
  shop: 'secrets: ["SHOP_KEY"], run: async (ctx) => ctx.run("key", (task) => task.secret("SHOP_KEY").length)',
  stray:
    'run: async (ctx) => { setTimeout(() => { throw new Error("stray"); }); return ctx.waitForSignal("go"); }',
  wait: 'run: async (ctx) => ctx.waitForSignal("go")',
  sums: "input: z.object({ a: z.number() }), run: async (_ctx, { a }) => a + 1",
  parent: 'run: async (ctx) => ctx.waitForChild(ctx.spawnAgent(local("echo"), 1)), agents: [echo]',
};

let home: string;
let project: Project;
beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), "holdfast-cures-"));
  project = new Project({ env: { HOME: home, XDG_DATA_HOME: undefined } });
  const write = (name: keyof typeof AGENTS): void =>
    project.write(
      `${name}.ts`,
      `import { defineAgent, local } from "holdfast"; import { z } from ${JSON.stringify(import.meta.resolve("zod"))};\n` +
        (name === "parent" ? 'import echo from "./echo.ts";\n' : "") +
        `export default defineAgent({ name: "${name}", ${AGENTS[name]} });`,
    );
  for (const name of Object.keys(AGENTS)) write(name as keyof typeof AGENTS);
});
afterAll(async () => {
  await project.dispose();
  rmSync(home, { recursive: true, force: true });
});

const cure = (code: string, how: string, heal: (code: string) => Promise<void>): void =>
  test(`${code}: ${how}`, { timeout: 60_000 }, () => heal(code));

/** The error of a command, with its advice. */
async function refused(code: string, advice: string | RegExp, ...args: string[]): Promise<string> {
  const { stderr } = await project.run(...args);
  expect(stderr).toContain(`error[E_${code.toUpperCase()}]`);
  expect(stderr).toMatch(advice);
  return stderr;
}

async function works(...args: string[]): Promise<Finished> {
  const finished = await project.run(...args);
  expect(finished.code, finished.stderr).toBe(0);
  return finished;
}

/** The commands in backticks of a text, without `holdfast`. */
function advised(text: string): readonly (readonly string[])[] {
  return [...text.matchAll(/(?:`|run )holdfast ([^`]+?)(?:`| to see)/g)].map(([, words]) =>
    words!.split(" "),
  );
}

cure("usage", "take the option that was meant", async (code) => {
  await works("run", "echo.ts");
  const said = await refused(code, /did you mean (--\w+)\?/, "list", "--statu", "completed");
  await works("list", /did you mean (--\w+)\?/.exec(said)![1]!, "completed");
});

cure("not_json", "quote the value as JSON", async (code) => {
  await refused(code, /such as '\{"name": "value"\}'/, "run", "echo.ts", "--input", "{name}");
  await works("run", "echo.ts", "--input", '{"name": "value"}');
});

cure("invalid_input", "send what the schema describes", async (code) => {
  await refused(code, "/a: Invalid input: expected number", "run", "sums.ts", "--input", '{"a":"1"}');
  await works("run", "sums.ts", "--input", '{"a":1}');
});

cure("file_not_found", "correct the path", async (code) => {
  await refused(code, "check the path; it is taken from the current folder", "run", "agents/echo.ts");
  await works("run", "echo.ts");
});

cure("ambiguous", "give more of the id", async (code) => {
  await works("run", "echo.ts", "--session", "twin1");
  await works("run", "echo.ts", "--session", "twin2");
  await refused(code, "give more characters of the id", "show", "twin");
  await works("show", "twin1");
});

cure("agent_not_found", "run an agent of the list", async (code) => {
  project.write(".holdfast/agents/helper.md", "---\nname: helper\ndescription: Helps.\n---\nYou help.\n");
  const said = await refused(code, "agents list", "run", "helpr", "x");
  const { stdout } = await works(...advised(said)[0]!);
  expect(stdout).toContain("helper");
  await project.run("agents", "trust");
  expect((await project.run("run", "helper", "x")).stderr).not.toContain("E_AGENT_NOT_FOUND");
});

cure("agent_invalid", "correct the fields that agents check explains", async (code) => {
  const file = ".holdfast/agents/typing.md";
  project.write(file, "---\nname: typing\ndescripton: Types.\n---\nYou type.\n");
  const said = await refused(code, "correct these fields", "run", "typing", "x");
  const { stdout } = await project.run(...advised(said)[0]!);
  expect(stdout).toContain("did you mean description?");
  project.write(file, readFileSync(project.path(file), "utf8").replace("descripton", "description"));
  await works("agents", "check");
  await project.run("agents", "trust");
  expect((await project.run("run", "typing", "x")).stderr).not.toContain("E_AGENT_INVALID");
});

cure("config_invalid", "correct the setting in the file", async (code) => {
  const file = ".holdfast/config.json";
  project.write(file, '{"strictBound": true}');
  const said = await refused(code, "correct the file, or remove it", "list");
  const [, path, wrong = ""] = /at: (.*)#\/(\w+)/.exec(said)!;
  expect(path).toBe(project.path(file));
  const meant = /did you mean (\w+)\?/.exec(said)![1]!;
  project.write(file, readFileSync(project.path(file), "utf8").replace(wrong, meant));
  await works("list");
  rmSync(project.path(file));
});

cure("policy_denied", "read the settings and trust the project", async (code) => {
  await works("agents", "trust", "--remove");
  project.write(".holdfast/config.json", '{"db": ".holdfast/other.db"}');
  const said = await refused(code, "agents trust", "run", "echo.ts");
  await works(...advised(said)[0]!);
  await works("run", "echo.ts");
  rmSync(project.path(".holdfast/config.json"));
});

cure("secret_missing", "store the secret, or set its variable", async (code) => {
  const said = await refused(code, "set the environment variable SHOP_KEY", "run", "shop.ts");
  expect(said).toContain("pipe the value with --secret-stdin SHOP_KEY");
  const piped = await project.finish(["run", "shop.ts", "--secret-stdin", "SHOP_KEY"], { stdin: "12345" });
  expect([piped.code, piped.stdout]).toEqual([0, "5\n"]);
  const set = await project.finish(["run", "shop.ts"], { env: { SHOP_KEY: "1234" } });
  expect([set.code, set.stdout]).toEqual([0, "4\n"]);
});

cure("secret_arg", "pipe the value", async (code) => {
  await refused(code, "pipe it to standard input", "secret", "set", "SHOP_KEY", "12345", "--to", "file");
  const key = join(home, "key");
  writeFileSync(key, "a passphrase that is long enough", { mode: 0o600 });
  const env = { HOLDFAST_SECRET_KEY_FILE: key };
  const set = await project.finish(["secret", "set", "SHOP_KEY", "--to", "file"], { stdin: "12345", env });
  expect(set.code, set.stderr).toBe(0);
  expect((await project.finish(["run", "shop.ts"], { env })).stdout).toBe("5\n");
});

cure("secret_key", "name the file of the key", async (code) => {
  const key = join(home, "second-key");
  writeFileSync(key, "another passphrase, which is also long enough", { mode: 0o600 });
  const stored = { HOME: mkdtempSync(join(home, "second-")) };
  const set = ["secret", "set", "OTHER", "--to", "file"];
  const refusal = await project.finish(set, { stdin: "1", env: stored });
  expect(refusal.stderr).toContain(`error[E_${code.toUpperCase()}]`);
  expect(refusal.stderr).toContain("HOLDFAST_SECRET_KEY_FILE");
  const again = await project.finish(set, { stdin: "1", env: { ...stored, HOLDFAST_SECRET_KEY_FILE: key } });
  expect(again.code, again.stderr).toBe(0);
});

cure("secret_not_found", "take a name of the list", async (code) => {
  const said = await refused(code, "secret list", "secret", "delete", "SHOP_KEYS");
  expect((await works(...advised(said)[0]!)).stdout).toContain("SHOP_KEY");
});

cure("session_exists", "leave the input out, or start another session", async (code) => {
  await works("run", "echo.ts", "--session", "taken");
  await refused(code, "start another session", "run", "echo.ts", "--session", "taken", "--input", "1");
  await works("run", "echo.ts", "--session", "taken");
  await works("run", "echo.ts", "--session", "free", "--input", "1");
});

cure("session_not_found", "take an id of the list", async (code) => {
  await works("run", "echo.ts", "--session", "known");
  const said = await refused(code, "list", "show", "unknown");
  expect((await works(...advised(said)[0]!)).stdout).toContain("known");
  await works("show", "known");
});

cure("session_not_ended", "end it by the command", async (code) => {
  await works("run", "ask.ts", "--session", "open", "--park");
  const said = await refused(code, "cancel open --hard", "delete", "open");
  await works(...advised(said)[0]!);
  await works("delete", "open");
});

cure("session_cancelled", "fork it, and continue the fork", async (code) => {
  await works("run", "ask.ts", "--session", "ended", "--park");
  await works("cancel", "ended", "--hard");
  await refused(code, "was cancelled", "resume", "ended");
  const forked = (await works("fork", "ended")).stdout.trim();
  await works("resume", forked, "--park");
});

cure("session_failed", "look at what it did, and fork it to the corrected code", async (code) => {
  const said = await refused(code, "to see what it did", "run", "fails.ts", "--session", "failed");
  for (const words of advised(said)) expect((await works(...words)).stdout).toContain("boom");
  const text = readFileSync(project.path("fails.ts"), "utf8");
  project.write("fails.ts", text.replace('throw new Error("boom");', "return 1;"));
  const forked = (await works("fork", "failed")).stdout.trim();
  await works("resume", forked);
});

cure("session_has_children", "delete the tree", async (code) => {
  await works("run", "parent.ts", "--session", "family");
  const said = await refused(code, "--subtree", "delete", "family");
  await works(...advised(said).find((words) => words.includes("--subtree"))!);
});

cure("question_not_found", "look at the open questions", async (code) => {
  await works("run", "ask.ts", "--session", "asks", "--park");
  const said = await refused(code, "show", "approve", "asks", "9");
  expect((await works(...advised(said)[0]!)).stdout).toContain("Go on?");
  await works("approve", "asks", "1");
});

cure("task_not_found", "take one of the numbers", async (code) => {
  await works("run", "ask.ts", "--session", "tasks", "--park");
  const said = await refused(code, "expected: one of #", "show", "tasks", "--task", "7");
  await works("show", "tasks", "--task", /one of #(\d+)/.exec(said)![1]!);
});

cure("answered_otherwise", "cancel the session of the wrong answer", async (code) => {
  await works("run", "ask.ts", "--session", "wrong", "--park");
  await works("approve", "wrong");
  const said = await refused(
    code,
    "cancel the session if the first answer was wrong",
    "approve",
    "wrong",
    "--no",
  );
  expect(said).toMatch(/which is kept: .* \(answered by user:\w+\)/);
  await works("cancel", "wrong", "--hard");
  const forked = (await works("fork", "wrong")).stdout.trim();
  await project.run("resume", forked, "--park");
  await works("approve", forked, "--no");
});

cure("corrupt_record", "restore the database from a backup", async (code) => {
  const path = project.path("backed-up.db");
  await works("run", "echo.ts", "--session", "kept", "--db", path);
  const backup = project.path("backup.db");
  copyFileSync(path, backup);
  writeFileSync(path, readFileSync(path).fill(0x2a, 0, 4096));
  const { stderr } = await project.run("show", "kept", "--db", path);
  expect(stderr).toMatch(new RegExp(`error\\[E_${code.toUpperCase()}\\][^]*backup`));
  for (const end of ["-wal", "-shm"]) rmSync(`${path}${end}`, { force: true });
  copyFileSync(backup, path);
  await works("show", "kept", "--db", path);
});

cure("not_a_coordinator", "correct the port of the URL", async (code) => {
  const coordinator = await startCoordinator(project);
  const token = ["--token-file", coordinator.adminTokenFile];
  const web = createServer((_request, response) => response.end("hello")).listen(0, "127.0.0.1");
  await new Promise((resolve) => web.once("listening", resolve));
  const url = `http://127.0.0.1:${(web.address() as AddressInfo).port}`;
  await refused(code, "correct the URL: its port", "list", "--url", url, ...token);
  await works("list", "--url", coordinator.url, ...token);
  web.close();
});

cure("cannot_listen", "take any free port", async (code) => {
  const other = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => other.once("listening", resolve));
  const { port } = other.address() as AddressInfo;
  const storage = ["--storage", `sqlite:${project.path("listens.db")}`];
  const { stderr } = await project.start(["coordinator", "--port", String(port), ...storage]).finished;
  expect(stderr).toContain(`error[E_${code.toUpperCase()}]`);
  expect(stderr).toContain("choose another port with --port (0 takes any that is free)");
  const free = project.start(["coordinator", "--port", "0", ...storage]);
  await free.says("http://127.0.0.1:");
  free.kill("SIGTERM");
  expect(existsSync(project.path("listens.db"))).toBe(true);
  other.close();
});

cure("agent_error", "correct the code, and resume", async (code) => {
  const { stderr } = await project.start(["run", "stray.ts", "--session", "stray"]).finished;
  expect(stderr).toContain(`error[E_${code.toUpperCase()}]`);
  const text = readFileSync(project.path("stray.ts"), "utf8");
  project.write("stray.ts", text.replace('throw new Error("stray");', ""));
  await works("signal", "stray", "go", "1");
  const [, ...resume] = /holdfast (resume) (stray)/.exec(stderr)!;
  await works(...resume);
});

cure("session_claimed", "signal it from here", async (code) => {
  const first = project.start(["run", "wait.ts", "--session", "claimed"]);
  await first.says("waits for signal");
  await refused(code, "signal or cancel it from here", "resume", "claimed");
  await works("signal", "claimed", "go", "1");
  expect((await first.finished).code).toBe(0);
  await works("resume", "claimed");
});

cure("unavailable", "start the coordinator", async (code) => {
  const coordinator = await startCoordinator(project, "--storage", `sqlite:${project.path("away.db")}`);
  const { port } = new URL(coordinator.url);
  coordinator.process.kill("SIGTERM");
  await coordinator.process.finished;
  const list = ["list", "--url", coordinator.url, "--token-file", coordinator.adminTokenFile];
  await refused(code, port, ...list);
  await startCoordinator(project, "--storage", `sqlite:${project.path("away.db")}`, "--port", port);
  await works(...list);
});
