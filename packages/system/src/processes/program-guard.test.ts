// Processes whose owner is killed with everything that it had no time to do.

import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { spawn, type ChildProcess } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { endTagged } from "./process-supervisor.ts";

const HAS_PROC = process.platform === "linux";
const WAIT = { timeout: 20_000, interval: 20 };
const LOOP = "while :; do sleep 0.1; done";

let folder: string;
let owner: ChildProcess | undefined;

beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "guarded-")));
});

afterEach(async () => {
  owner?.kill("SIGKILL");
  await rm(folder, { recursive: true, force: true });
});

// Only /proc shows what has left its group.
describe.runIf(HAS_PROC)("after SIGKILL of a process nothing of it works on", () => {
  test.each([
    ["a program that ignores every signal", `trap '' TERM HUP INT; echo > begun; ${LOOP}`],
    ["a program that cleared its environment", `echo > begun; exec env -i /bin/sh -c '${LOOP}'`],
    ["a daemon that left its group", `setsid sh -c 'echo > begun; ${LOOP}' >&- 2>&- <&- & ${LOOP}`],
    ["a program that starts others all the time", `echo > begun; while :; do sleep 5 & sleep 0.01; done`],
  ])("%s", async (_what, script) => {
    await killedOwner(script);
    await vi.waitUntil(() => processesIn(folder).length === 0, WAIT);
  });

  test("a resume by tag waits for the guard, and then nothing is left", async () => {
    // A program without the tag, which only the guard can find.
    await killedOwner(`echo > begun; exec env -i /bin/sh -c 'trap "" TERM; ${LOOP}'`);
    await vi.waitUntil(() => guards("holdfast-ending") > 0, WAIT);
    expect(await endTagged("no-such-tag")).toBe(true);
    expect(processesIn(folder)).toEqual([]);
  });

  test("a guard that was ended is started again with the next program, and knows the earlier ones", async () => {
    await killedOwner(
      `exec env -i /bin/sh -c 'echo > begun; ${LOOP}'`,
      `const children = readFileSync("/proc/self/task/" + process.pid + "/children", "utf8");
       process.kill(Number.parseInt(children), "SIGKILL");
       await delay(100);
       await supervisor.start({ argv: ["/bin/true"], cwd: "/", env: {} });`,
    );
    await vi.waitUntil(() => processesIn(folder).length === 0, WAIT);
  });
});

/** Starts a process that runs the script in the folder, and kills it once the script has begun. */
async function killedOwner(script: string, then = ""): Promise<void> {
  const source = new URL("./process-supervisor.ts", import.meta.url).href;
  await writeFile(
    join(folder, "owner.mjs"),
    `import { existsSync, readFileSync } from "node:fs";
     import { setTimeout as delay } from "node:timers/promises";
     import { ProcessSupervisor } from ${JSON.stringify(source)};
     const cwd = ${JSON.stringify(folder)};
     const supervisor = new ProcessSupervisor({ environment: process.env, namespaces: "never" });
     await supervisor.start({ argv: ["/bin/sh", "-c", ${JSON.stringify(script)}], cwd, env: { PATH: process.env.PATH } });
     while (!existsSync(cwd + "/begun")) await delay(10);
     ${then}
     console.log("ready");
     await delay(600_000);`,
  );
  owner = spawn(process.execPath, [join(folder, "owner.mjs")], {
    cwd: "/",
    stdio: ["ignore", "pipe", "inherit"],
  });
  await new Promise((resolve) => owner!.stdout!.once("data", resolve));
  expect(processesIn(folder).length).toBeGreaterThan(0);
  owner.kill("SIGKILL");
}

function guards(name: string): number {
  return pids().filter((pid) => text(`/proc/${pid}/cmdline`).includes(`\0${name}\0`)).length;
}

/** Running processes that work in this folder. */
function processesIn(path: string): readonly string[] {
  return pids().filter((pid) => {
    try {
      return readlinkSync(`/proc/${pid}/cwd`) === path && !/\) [ZX] /.test(text(`/proc/${pid}/stat`));
    } catch {
      return false; // It has ended meanwhile.
    }
  });
}

function pids(): readonly string[] {
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name));
}

function text(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}
