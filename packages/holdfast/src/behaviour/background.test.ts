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

test("an error before the session runs is the command's own", async () => {
  const missing = await project.start(["run", "nosuch.ts", "-d"], { stdin: "" }).finished;
  const plain = await project.run("run", "nosuch.ts");
  expect(missing.code).toBe(plain.code);
  expect(missing.stderr).toBe(plain.stderr);
  expect(missing.stdout).toBe("");
});
