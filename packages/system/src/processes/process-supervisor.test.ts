// Real processes, each test over both ways to hold a tree together. A machine without PID namespaces skips
// the first way by name.

import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";

import { findNamespaceSupport } from "./pid-namespace.ts";
import { describeProcessEnd, type ProcessEnd } from "./process-end.ts";
import { endExecution, endTagged, ProcessSupervisor } from "./process-supervisor.ts";
import type { ProcessReport, StartOptions } from "./supervised-process.ts";

const support = await findNamespaceSupport();
const HAS_NAMESPACES = !("unavailable" in support);
const HAS_PROC = process.platform === "linux";
const PATH = process.env["PATH"] ?? "";
const DEADLY =
  "SIGHUP SIGINT SIGQUIT SIGILL SIGTRAP SIGABRT SIGBUS SIGFPE SIGKILL SIGUSR1 SIGSEGV SIGUSR2 SIGPIPE SIGALRM SIGTERM SIGXCPU SIGSYS";

let folder: string;
const supervisors: ProcessSupervisor[] = [];

beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "supervised-")));
});

afterEach(() => rm(folder, { recursive: true, force: true }));
afterAll(() => Promise.all(supervisors.map((each) => each.close("the test is over"))));

const WAYS = [
  { way: "in a PID namespace", namespaces: "if_available", isPossible: HAS_NAMESPACES },
  { way: "in a process group", namespaces: "never", isPossible: true },
] as const;

for (const { way, namespaces, isPossible } of WAYS) {
  // A machine that allows no PID namespace has only the other way.
  describe.runIf(isPossible)(way, () => {
    const supervisor = new ProcessSupervisor({ environment: {}, namespaces });
    supervisors.push(supervisor);

    async function run(script: string, options: Partial<StartOptions> = {}): Promise<ProcessReport> {
      return (await start(script, options)).ended;
    }

    function start(script: string, options: Partial<StartOptions> = {}) {
      return supervisor.start({ argv: ["/bin/sh", "-c", script], cwd: folder, env: { PATH }, ...options });
    }

    test("the supervisor says how it holds a tree together", async () => {
      const text = await supervisor.describe();
      expect(text).toMatch(namespaces === "never" ? /^process group and marker/ : /PID namespace/);
    });

    test.each([0, 1, 3, 126, 127, 143, 255])("exit code %d is reported as it is", async (exitCode) => {
      const { end, isTreeGone } = await run(`exit ${exitCode}`);
      expect({ end, isTreeGone }).toEqual({ end: { type: "exit", exitCode }, isTreeGone: true });
    });

    test.each(DEADLY.split(" "))("death by %s is reported as it is", async (signal) => {
      expect((await run(`kill -${signal.slice(3)} $$; sleep 1000`)).end).toEqual({ type: "signal", signal });
    });

    test.each([
      ["a program that is not there", { argv: ["no-such-program"] }, "ENOENT", "no-such-program"],
      ["a directory that is not there", { cwd: "/no/such/folder" }, "ENOENT", "/no/such/folder"],
      ["a program that may not be executed", { argv: ["/etc/passwd"] }, "EACCES", "/etc/passwd"],
      ["arguments that are too long", { argv: ["/bin/true", "x".repeat(3_000_000)] }, "E2BIG", "too long"],
    ] as const)("%s is reported as not started", async (_what, options, code, text) => {
      const { end, isTreeGone } = await run("", options);
      expect({ ...end, isTreeGone }).toMatchObject({ type: "not_started", code, isTreeGone: true });
      expect(describeProcessEnd(end)).toContain(text);
    });

    test("a process whose time is over is ended, and its output until then is kept", ofCampaign, async () => {
      const { end, stdout } = await run("echo begun; sleep 1000", { timeoutMs: 1_500 });
      expect({ end, stdout }).toEqual({ end: { type: "timeout", timeoutMs: 1_500 }, stdout: "begun\n" });
    });

    test(
      "a process that closes its output and continues is ended, where its output is needed",
      ofCampaign,
      async () => {
        const script = "exec >&-; exec sleep 1000";
        expect((await run(script, { needsOutput: true })).end).toEqual({ type: "output_closed" });
        const { end } = await run(script.replace("1000", "0.1"));
        expect(end).toEqual({ type: "exit", exitCode: 0 });
      },
    );

    const EXITED = { type: "exit", exitCode: 0 } as const;
    test.each([
      ["request", "read line; exit 0"],
      ["SIGTERM", "trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done"],
      ["SIGKILL", "trap '' TERM; echo ready; while :; do sleep 0.05; done"],
    ] as const)("a stop tells that it needed %s, and how the program ended", async (means, script) => {
      const ready = Promise.withResolvers<void>();
      const started = await start(means === "request" ? `echo ready; ${script}` : script, {
        input: "",
        keepsInputOpen: true,
        killGraceMs: means === "SIGKILL" ? 200 : 60_000,
        onOutput: () => ready.resolve(),
      });
      await ready.promise;
      const askMs = means === "request" ? 60_000 : 0;
      const { end, isTreeGone } = await started.stop("no longer wanted", {
        ask: () => void started.write("shutdown\n"),
        askMs,
      });
      const exit = means === "SIGKILL" ? ({ type: "signal", signal: "SIGKILL" } as const) : EXITED;
      const expected: ProcessEnd = { type: "stopped", reason: "no longer wanted", means, exit };
      expect({ end, isTreeGone }).toEqual({ end: expected, isTreeGone: true });
    });

    test("an abort stops the process", async () => {
      const controller = new AbortController();
      const { end } = await run("echo begun; exec sleep 1000", {
        signal: controller.signal,
        onOutput: () => controller.abort(),
      });
      expect(end).toMatchObject({ type: "stopped", reason: "aborted" });
    });

    test("a conversation passes through the pipes until the process no longer reads", async () => {
      const answers: string[] = [];
      const started = await start('while read line; do echo "got $line"; done', {
        keepsInputOpen: true,
        onOutput: (_stream, text) => answers.push(text),
      });
      expect(await started.write("one\n")).toBe(true);
      await vi.waitUntil(() => answers.join("") === "got one\n", 20_000);
      started.closeInput();
      expect((await started.ended).end).toEqual({ type: "exit", exitCode: 0 });
      expect(await started.write("two\n")).toBe(false);
    });

    test("a process that ends without reading its input does not disturb us", async () => {
      expect((await run("exit 0", { input: "x".repeat(1_000_000) })).end.type).toBe("exit");
    });

    test("a secret that is handed over stands in no argument and no environment", async () => {
      const secret = "s3cret-canary";
      const script = "cat <&3; tr '\\0' ' ' < /proc/self/environ; tr '\\0' ' ' < /proc/$$/cmdline";
      const { stdout } = await run(HAS_PROC ? script : "cat <&3", { handover: secret });
      expect(stdout.split(secret)).toHaveLength(2);
      expect(stdout.startsWith(secret)).toBe(true);
      expect((await run("cat <&3")).end).not.toEqual({ type: "exit", exitCode: 0 });
    });

    test("the environment is what was given and the marker", async () => {
      const { stdout } = await run("env", { env: { PATH, OWN: "1" }, tag: "tag-1" });
      const names = stdout.split("\n").flatMap((line) => /^([A-Za-z_]+)=/.exec(line)?.[1] ?? []);
      const known = ["PATH", "OWN", "HOLDFAST_EXECUTION", "HOLDFAST_TAG", "PWD", "SHLVL", "_", "OLDPWD"];
      expect(names.filter((name) => !known.includes(name))).toEqual([]);
      expect(names).toEqual(expect.arrayContaining(["OWN", "HOLDFAST_EXECUTION", "HOLDFAST_TAG"]));
    });

    test("output is drained on both pipes, and cut with a mark", ofCampaign, async () => {
      const { stdout, stderr, isCut, end } = await run(
        "head -c 3000000 /dev/zero | tr '\\0' e >&2; head -c 50000000 /dev/zero | tr '\\0' o",
        { outputBytes: 2_000 },
      );
      expect({ end, isCut }).toEqual({ end: { type: "exit", exitCode: 0 }, isCut: true });
      expect([stdout, stderr].map((text) => text.length < 1_200)).toEqual([true, true]);
      expect(stdout).toMatch(/\[\.\.\. 499\d+ bytes of output left out \.\.\.\]/);
    });

    // Only /proc shows what has left the group.
    test.runIf(HAS_PROC)("nothing is left after the end, also of what left the group", async () => {
      const script = `
        (trap '' TERM; while :; do sleep 1; done) &
        setsid sh -c 'echo > begun; while :; do sleep 1; done' > /dev/null 2>&1 < /dev/null &
        while ! test -e begun; do sleep 0.01; done`;
      const { end, isTreeGone } = await run(script);
      expect({ end, isTreeGone }).toEqual({ end: { type: "exit", exitCode: 0 }, isTreeGone: true });
      expect(processesIn(folder)).toEqual([]);
    });

    // Only /proc shows the environment of other processes.
    test.runIf(HAS_PROC)(
      "processes that a killed owner left are ended, by their tag or with it",
      async () => {
        await writeFile(join(folder, "owner.ts"), ownerScript(folder, namespaces));
        const owner = await new ProcessSupervisor({ environment: {}, namespaces: "never" }).start({
          argv: [process.execPath, join(folder, "owner.ts")],
          cwd: tmpdir(),
          env: { PATH },
        });
        await vi.waitUntil(() => existsSync(join(folder, "begun")), { timeout: 30_000, interval: 20 });
        process.kill(owner.pid!, "SIGKILL");
        if (namespaces === "never") {
          expect(processesIn(folder).length).toBeGreaterThan(0);
          expect(await endTagged("owner-test")).toBe(true);
        }
        await vi.waitUntil(() => processesIn(folder).length === 0, { timeout: 20_000, interval: 20 });
        expect((await owner.ended).end).toEqual({ type: "signal", signal: "SIGKILL" });
      },
    );
  });
}

// A process that cleared its environment and left its group is found only by its namespace.
test.runIf(HAS_NAMESPACES)("a daemon without any mark ends with its namespace", async () => {
  const supervisor = new ProcessSupervisor({ environment: {}, namespaces: "if_available" });
  const script = `setsid env -i /bin/sh -c 'echo > begun; while :; do sleep 1; done' > /dev/null 2>&1 < /dev/null &
    while ! test -e begun; do sleep 0.01; done`;
  const started = await supervisor.start({ argv: ["/bin/sh", "-c", script], cwd: folder, env: { PATH } });
  expect(await started.ended).toMatchObject({ end: { type: "exit", exitCode: 0 }, isTreeGone: true });
  expect(processesIn(folder)).toEqual([]);
});

test("a supervisor that carries a marker extends it, and the marker above finds the whole tree", async () => {
  const above = `above-${process.pid}`;
  const supervisor = new ProcessSupervisor({
    environment: { HOLDFAST_EXECUTION: above },
    namespaces: "never",
  });
  const begun = Promise.withResolvers<string>();
  const started = await supervisor.start({
    argv: ["/bin/sh", "-c", "echo $HOLDFAST_EXECUTION; sleep 1000; true"],
    cwd: folder,
    env: { PATH },
    onOutput: (_stream, text) => begun.resolve(text.trim()),
  });
  expect(await begun.promise).toMatch(new RegExp(`^${above}/[0-9a-f-]{36}/[0-9a-f-]{36}$`));
  if (HAS_PROC) expect(await endExecution(above)).toBe(true);
  else await started.stop("the test is over");
  expect((await started.ended).end.type).toBe(HAS_PROC ? "signal" : "stopped");
});

/** The program runs in the folder, below an owner that is killed. */
function ownerScript(cwd: string, namespaces: string): string {
  const source = new URL("./process-supervisor.ts", import.meta.url).href;
  return `
    const { ProcessSupervisor } = await import(${JSON.stringify(source)});
    const supervisor = new ProcessSupervisor({ environment: {}, namespaces: ${JSON.stringify(namespaces)} });
    const started = await supervisor.start({
      argv: ["/bin/sh", "-c", "trap '' TERM HUP; sleep 1000 & echo > begun; while :; do sleep 1; done"],
      cwd: ${JSON.stringify(cwd)}, env: { PATH: process.env.PATH }, tag: "owner-test",
    });
    await started.ended;`;
}

/** Running processes that work in this folder. */
function processesIn(path: string): readonly string[] {
  return readdirSync("/proc").filter((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      if (readlinkSync(`/proc/${name}/cwd`) !== path) return false;
      return !/\) [ZX] /.test(readFileSync(`/proc/${name}/stat`, "latin1"));
    } catch {
      return false; // It has ended meanwhile.
    }
  });
}
