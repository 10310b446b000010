// `run --detach`, `resume --detach` and `attach`: sessions in processes of their own, by the real command.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Project } from "../testing/holdfast-process.ts";

const AGENT = `import { appendFileSync } from "node:fs";
import { defineAgent } from "holdfast";
export default defineAgent({ name: "ship", run: async (ctx, input: { file: string }) => {
  await ctx.run("build", () => appendFileSync(input.file, "built\\n"));
  return { answer: await ctx.requestInput({ prompt: "Ship it?" }) };
} });
`;

const HANGS = `import { defineAgent } from "holdfast";
export default defineAgent({ name: "hang", run: (ctx) => ctx.run("wait", () => new Promise((over) => setTimeout(over, 600_000))) });
`;

const LONG = `import { defineAgent } from "holdfast";
export default defineAgent({ name: "long", run: async (ctx) => {
  for (let n = 1; n <= 30; n++) await ctx.run("step-" + n, () => n);
  await ctx.requestInput({ prompt: "Enough?" });
  return "done";
} });
`;

let project: Project;
/** The processes in the background that a test has started. */
let pids: number[];
beforeEach(() => {
  project = new Project();
  pids = [];
  writeFileSync(project.path("ship.ts"), AGENT);
});
afterEach(async () => {
  for (const pid of pids) end(pid);
  await project.dispose();
});

function end(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended before.
  }
}

interface Started {
  readonly sessionId: string;
  readonly pid: number;
  readonly log: string;
}

async function detached(...args: string[]): Promise<Started> {
  const { code, stdout, stderr } = await project.start([...args, "--detach", "--json"], { stdin: "" })
    .finished;
  expect(code, stderr).toBe(0);
  const started = JSON.parse(stdout) as Started;
  pids.push(started.pid);
  return started;
}

const input = (): string => JSON.stringify({ file: project.path("log.txt") });

test("a session in the background is followed, answered, killed and resumed there", async () => {
  const { pid } = await detached("run", "ship.ts", "--input", input(), "--session", "s");
  const attached = project.start(["attach", "s"], { stdin: "" });
  await attached.says("Ship it?");
  end(pid);
  await attached.says("holdfast resume s");
  expect((await attached.finished).stderr).not.toContain("resumes"); // It goes on where it runs.
  const refused = await project.run("attach", "s");
  expect(refused.code).not.toBe(0);
  expect(refused.stderr).toContain("no process runs session s");
  const { log } = await detached("resume", "s");
  const again = project.start(["attach", "s"], { stdin: "" });
  await again.says("build"); // The work of before stands above.
  await again.says("Ship it?");
  expect((await project.run("approve", "s")).code).toBe(0);
  const { code, stdout } = await again.finished;
  expect(existsSync(log)).toBe(true);
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toEqual({ answer: { approved: true } });
  expect(readFileSync(project.path("log.txt"), "utf8")).toBe("built\n");
  expect((await project.run("delete", "s")).code).toBe(0);
  expect(existsSync(log)).toBe(false);
});

test("attach shows the last lines of a long past and how to see all of it, and says that a session has ended", async () => {
  writeFileSync(project.path("long.ts"), LONG);
  await detached("run", "long.ts", "--session", "s");
  const status = async () => (await project.json<{ status: string }>("show", "s")).status;
  await expect.poll(status, { timeout: 20_000 }).toBe("input_required");
  const attached = project.start(["attach", "s"], { stdin: "" });
  await attached.says("waits for");
  expect(attached.stderr).toContain("step-30");
  expect(attached.stderr).toContain("the last 20 lines of what it did");
  expect(attached.stderr).not.toContain("step-10 ");
  const [, rest = ""] = /all of it: holdfast (.*)/.exec(attached.stderr) ?? [];
  expect((await project.run(...rest.split(" "))).stdout).toContain("step-1 ");
  expect((await project.run("approve", "s")).code).toBe(0);
  expect((await attached.finished).stdout).toBe("done\n");
  expect(attached.stderr.match(/step-30 #29 {2}/g)).toHaveLength(1);
  const after = await project.run("attach", "s");
  expect([after.code, after.stdout]).toEqual([0, "done\n"]);
  expect(after.stderr).toContain("session s has already ended");
});

test("the text of a session in the background is no argument of its process", async () => {
  writeFileSync(project.path("hang.ts"), HANGS);
  const { pid } = await detached("run", "hang.ts", "the name of the customer", "--session", "s");
  const words = readFileSync(`/proc/${pid}/cmdline`, "utf8");
  expect(words).toContain("hang.ts");
  expect(words).not.toContain("customer");
  expect((await project.json<{ input: unknown }>("show", "s")).input).toBe("the name of the customer");
});

test("a session whose process was killed while it worked is listed as interrupted", async () => {
  writeFileSync(project.path("hang.ts"), HANGS);
  const { pid } = await detached("run", "hang.ts", "--session", "hangs");
  await detached("run", "ship.ts", "--input", input(), "--session", "asks");
  const listed = async () => (await project.run("list", "--status", "interrupted")).stdout;
  expect(await listed()).toBe("");
  end(pid);
  await expect.poll(listed).toMatch(/hangs +interrupted/);
  expect(await listed()).not.toContain("asks");
  expect((await project.run("list", "--status", "stopped")).stderr).toContain("interrupted");
});

test("a session is not interrupted because its process is too busy to answer", async () => {
  writeFileSync(project.path("hang.ts"), HANGS);
  const { pid } = await detached("run", "hang.ts", "--session", "hangs");
  const status = async () => (await project.json<{ status: string }>("show", "hangs")).status;
  await expect.poll(status, { timeout: 20_000 }).toBe("working");
  process.kill(pid, "SIGSTOP");
  expect((await project.run("list")).stdout).toMatch(/hangs +working/);
  const top = await project.run("top");
  expect(top.stdout).toMatch(/working +hang +hangs/);
  expect(top.stdout).not.toContain("no process runs it");
  expect((await project.run("show", "hangs")).stdout).toContain(`process ${pid} has the database open`);
});

test("a note on a terminal of 80 columns has ids as a person types them, and no line folds", async () => {
  const started = project.shellOnTerminal(
    `stty cols 80 rows 24; holdfast run ship.ts --input '${input()}' --detach --title "Ship the shop"`,
  );
  const { stdout } = await started.finished;
  const [whole = ""] = /ses_[0-9a-f-]{36}/.exec(stdout) ?? [];
  const short = whole.slice(-12).slice(0, 8);
  expect(stdout.split("\r\n").slice(0, 6)).toEqual([
    "runs in the background",
    `  follow it:    holdfast attach ${short}`,
    `  stop it:      holdfast cancel ${short}`,
    "  see them all: holdfast top",
    "  answer them:  holdfast inbox",
    whole,
  ]);
  expect((await project.run("top")).stdout).toContain("Ship the shop");
  await expect
    .poll(async () => (await project.run("inbox")).stdout, { timeout: 20_000 })
    .toContain("Ship it?");
  expect((await project.run("cancel", short, "--hard")).code).toBe(0);
});

test("an error before the session runs is the command's own", async () => {
  const missing = await project.start(["run", "nosuch.ts", "-d"], { stdin: "" }).finished;
  const plain = await project.run("run", "nosuch.ts");
  expect(missing.code).toBe(plain.code);
  expect(missing.stderr).toBe(plain.stderr);
  expect(missing.stdout).toBe("");
});
