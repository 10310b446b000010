// X5: the files that Holdfast writes, as the system sees them. The calls of all its processes are traced.

import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Project } from "../testing/holdfast-process.ts";

const CALLS =
  "open,openat,creat,mkdir,mkdirat,rename,renameat,renameat2,unlink,unlinkat,link,linkat,symlink,symlinkat,truncate";
const AGENTS = `
import { defineAgent } from "holdfast";
import { writeFileSync } from "node:fs";
export default defineAgent({ name: "greet", run: (ctx, name) => ctx.run("greet", () => (writeFileSync(name, ""), name)) });
`;

let project: Project;
beforeEach(() => void (project = new Project()));
afterEach(() => project.dispose());

test("X5: the local stack and a run write only below their own folders of the home and of the project", async (t) => {
  if (!canTrace()) t.skip("strace is missing, or this system does not let it trace");
  mkdirSync(project.path("home"));
  mkdirSync(project.path("work"));
  writeFileSync(project.path("work/agents.ts"), AGENTS);
  const commands = [
    "cd work",
    "holdfast local start --agents agents.ts --port 0",
    `holdfast run --agent greet --input '"${project.path("work/in-the-stack")}"'`,
    `holdfast run agents.ts --local --input '"${project.path("outside")}"'`,
    "holdfast local stop",
  ];
  writeFileSync(project.path("commands.sh"), commands.join("\n"));
  const line = `strace -f --seccomp-bpf -qq -y -e trace=${CALLS} -o trace.txt sh -e commands.sh`;
  const { code, stderr } = await project.shell(line, { env: { HOME: project.path("home") } });
  expect([code, stderr]).toEqual([0, expect.stringContaining("the local stack has stopped")]);
  const written = writtenPaths(readFileSync(project.path("trace.txt"), "utf8"));
  const allowed = [
    /^\/dev\/null$/,
    // The encrypted note by which a process hands its keys to its successor, which removes the note.
    /^\/dev\/shm\/holdfast-\w+(\/note)?$/,
    /^\/proc\/(self|\d+)\/coredump_filter$/,
    ...["home/.cache", "home/.local", "work/.holdfast"].map(
      (own) => new RegExp(`^${project.path(own)}(/|$)`),
    ),
    new RegExp(`^${process.env["NODE_COMPILE_CACHE"] ?? "/dev/null"}(/|$)`),
  ];
  // The trace shows the files that the agents wrote, so it would show any other.
  expect(new Set(written.filter((path) => !allowed.some((own) => own.test(path))))).toEqual(
    new Set([project.path("work/in-the-stack"), project.path("outside")]),
  );
  expect(written).toContain(project.path("work/.holdfast"));
}, 120_000);

function canTrace(): boolean {
  return spawnSync("strace", ["-f", "--seccomp-bpf", "true"], { stdio: "ignore" }).status === 0;
}

/** The paths that the calls of a trace changed, or opened to write. Calls that failed changed nothing. */
function writtenPaths(trace: string): string[] {
  return joined(trace).flatMap((call) => {
    const [, name, rest] = /^\d+ +(\w+)\((.*)$/.exec(call) ?? [];
    if (name === undefined || rest === undefined || / = -1 /.test(call)) return [];
    if (name.startsWith("open") && !/O_(WRONLY|RDWR|CREAT|TRUNC)/.test(rest)) return [];
    const folder = /<([^>]*)>/.exec(rest)?.[1] ?? "";
    return [...rest.matchAll(/"([^"]*)"/g)].map(([, path]) =>
      path!.startsWith("/") ? path! : `${folder}/${path!}`,
    );
  });
}

/** The lines of a trace, with the two halves of a call that another thread interrupted put together. */
function joined(trace: string): string[] {
  const begun = new Map<string, string>();
  return trace.split("\n").flatMap((line) => {
    const thread = line.slice(0, line.indexOf(" "));
    if (line.endsWith("<unfinished ...>")) {
      begun.set(thread, line.slice(0, -"<unfinished ...>".length));
      return [];
    }
    const end = /resumed>(.*)$/.exec(line)?.[1];
    return [end === undefined ? line : (begun.get(thread) ?? "") + end];
  });
}
