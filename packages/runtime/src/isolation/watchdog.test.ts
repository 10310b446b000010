// Watchdog, in processes of their own: the cases in which it does nothing, and the other processes that it
// ends. Tests of the command cover busy processes: `advice.test.ts` (slices) and `fleet/wedged.test.ts`
// (leases).

import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { afterAll, describe, expect, test, vi } from "vitest";
import { killStartedBy } from "@holdfast/system/processes";

/** Elsewhere nothing is found that a process has started. */
const HAS_PROC = existsSync("/proc/self/environ");
const started: { kill(signal: NodeJS.Signals): boolean }[] = [];
afterAll(() => {
  for (const each of started.splice(0)) each.kill("SIGKILL");
});

/** A process with a watchdog `w` and `delay(ms)`. */
function run(code: string, options: object = {}) {
  // An import in the text itself, as the flag for module input would be passed on to threads.
  const source = `void (async () => {
    const { setTimeout: delay } = await import("node:timers/promises");
    const { Watchdog } = await import(${JSON.stringify(new URL("watchdog.ts", import.meta.url).href)});
    const w = new Watchdog(${JSON.stringify({ sliceMs: 400, ...options })});
    ${code}
    console.log("went on");
    await w.close();
  })()`;
  const child = spawn(process.execPath, ["-e", source]);
  started.push(child);
  let said = "";
  child.stdout.on("data", (text: Buffer) => (said += text.toString()));
  child.stderr.on("data", (text: Buffer) => (said += text.toString()));
  const ended = new Promise<{ signal: string | null; said: string }>((resolve) =>
    child.on("close", (_, signal) => resolve({ signal, said })),
  );
  const says = (text: string) =>
    vi.waitFor(() => expect(said).toContain(text), { timeout: 20_000, interval: 10 });
  return { child, ended, says };
}

describe.concurrent("a process that lives", () => {
  test("watchdog-4: a process is not ended when it has let go of its leases, renews them, or holds none", async () => {
    const { ended } = run(`
      w.expectAbandon(300);
      await delay(200);
      for (let i = 0; i < 15; i++) { w.expectAbandon(300); await delay(100); }
      w.expectAbandon(undefined);
      await delay(1_200);
    `);
    expect(await ended).toEqual({ signal: null, said: "went on\n" });
  });

  test("watchdog-6: a process is not ended after it was suspended in the middle of a slice", async () => {
    const { child, ended, says } = run(`
      await delay(1_500); // Its thread has begun.
      w.opened([{ sessionId: "ses-1" }]);
      await delay(100); // It is seen to be open.
      console.log("open");
      process.kill(process.pid, "SIGSTOP");
      await delay(100);
      w.closed();
      await delay(1_500); // Before it ends a process, the thread asks for its line.
    `);
    await says("open");
    // Repeated: on a busy machine the process may stop itself after the first one.
    const going = setInterval(() => child.kill("SIGCONT"), 700);
    expect(await ended.finally(() => clearInterval(going))).toEqual({
      signal: null,
      said: "open\nwent on\n",
    });
  });
});

describe.concurrent("a step that blocks the event loop", () => {
  /** Its thread may be late, as on a busy machine. */
  const LATE = { sliceMs: 5_000 };
  /** Holds a claim, and blocks in a step that has begun. A storage that answers `isExtended` notes each renewal. */
  const blocking = (
    isExtended: boolean,
    blockMs: number,
    { timeoutMs = "undefined", abandonMs = 9_000 } = {},
  ) => `
    const { existsSync, mkdtempSync, readFileSync, writeFileSync } = await import("node:fs");
    const { tmpdir } = await import("node:os");
    const path = mkdtempSync(tmpdir() + "/renewals-") + "/renewals";
    writeFileSync(path + ".mjs", [
      'import { appendFileSync } from "node:fs"; appendFileSync(' + JSON.stringify(path + ".loaded") + ', "");',
      'export const renew = async (path, { signal, ...asked }) => {',
      '  appendFileSync(path, JSON.stringify(asked) + ";");',
      '  return ${isExtended};',
      '};',
    ].join(" "));
    const by = { module: "file://" + path + ".mjs", data: path };
    w.holds({ by, owner: "r1", leaseMs: 12_000, everyMs: 1_000, abandonMs: ${abandonMs}, sessionIds: ["ses-1"] });
    w.claims("ses-2");
    while (!existsSync(path + ".loaded")) await delay(20); // Its thread has begun.
    w.expectAbandon(${abandonMs});
    const step = w.began("ses-2", "build", ${timeoutMs});
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ${blockMs});
    w.returned();
    w.ended(step);
    w.expectAbandon(${abandonMs});
    const asked = JSON.parse(readFileSync(path, "utf8").split(";")[0]);
    console.log(JSON.stringify(asked), w.renewedAgoMs() < ${abandonMs});
  `;

  test("watchdog-7: its leases are renewed meanwhile, for all sessions that are held, and the process goes on", async () => {
    const { signal, said } = await run(blocking(true, 14_000), LATE).ended;
    const blockedBy = 'step "build" of session ses-2';
    const asked = { owner: "r1", leaseMs: 12_000, sessionIds: ["ses-1", "ses-2"], blockedBy };
    const text = JSON.stringify(asked);
    expect({ signal, said }).toEqual({ signal: null, said: `${text} true\nwent on\n` });
  });

  test("watchdog-7: the process ends when no claim is extended, and the error names the step", async () => {
    const { signal, said } = await run(blocking(false, 60_000), LATE).ended;
    expect(signal).toBe("SIGKILL");
    expect(said).toContain(
      'step "build" of session ses-2 kept the process busy until its claims were refused',
    );
  });

  test("watchdog-7: the process ends after the step's time-out, or the limit, while storage would renew", async () => {
    const ended = await Promise.all([
      run(blocking(true, 10_000, { abandonMs: 3_500, timeoutMs: "2_500" }), LATE).ended,
      run(blocking(true, 10_000, { abandonMs: 3_500 }), { ...LATE, stepBlocksMs: 2_600 }).ended,
    ]);
    expect(ended.map(({ signal }) => signal)).toEqual(["SIGKILL", "SIGKILL"]);
    expect(ended[0].said).toContain(
      'step "build" of session ses-2 kept the process busy for more than 2500 ms',
    );
    expect(ended[1].said).toContain("for more than 2600 ms");
  });
});

// Not without /proc: see started-processes.ts.
test.runIf(HAS_PROC)(
  "watchdog-5: all processes that a process has started are ended, daemons too, but not the process itself",
  async () => {
    // A shell that starts a process in the background, one in a session of its own, and an orphan.
    const script = `
    echo $$
    sleep 1000 & echo $!
    setsid sh -c 'echo $$; exec sleep 1000' &
    (setsid sh -c 'echo $$; exec sleep 1000' &)
    exec sleep 1000
  `;
    const above = spawn("sh", [
      "-c",
      `HOLDFAST_EXECUTION=${process.pid}-w5 sh -c '${script.replaceAll("'", `'"'"'`)}' & while :; do sleep 0.1; done`,
    ]);
    const beside = spawn("sleep", ["1000"], { detached: true });
    started.push(above, beside);
    let said = "";
    above.stdout.on("data", (text: Buffer) => (said += text.toString()));
    const pids = await vi.waitFor(() => {
      const lines = said.trim().split("\n");
      expect(lines).toHaveLength(4);
      return lines.map(Number);
    }, 20_000);
    expect(pids.map(runs)).toEqual([true, true, true, true]);
    // While a process executes a new program, its marker cannot be read.
    await vi.waitFor(() => expect(pids.map(isSleeping)).toEqual([true, true, true, true]), 20_000);
    killStartedBy(above.pid!);
    await vi.waitFor(() => expect(pids.map(runs)).toEqual([false, false, false, false]), 20_000);
    expect([above.pid!, beside.pid!].map(runs)).toEqual([true, true]);
  },
);

/** Whether it has become the program that it is to be, with all that this has to show. */
function isSleeping(pid: number): boolean {
  const [command, environment] = ["cmdline", "environ"].map((name) =>
    readFileSync(`/proc/${pid}/${name}`, "utf8"),
  );
  return command!.startsWith("sleep\0") && environment!.includes("HOLDFAST_EXECUTION=");
}

function runs(pid: number): boolean {
  if (!existsSync(`/proc/${pid}`)) return false;
  return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
}
