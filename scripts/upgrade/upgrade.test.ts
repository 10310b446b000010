// An upgrade with sessions in flight: the packed version is killed at work, and a planted next one takes its
// database over. Its tables and behaviours differ. Nothing is lost or done twice, and the packed version refuses
// the database afterwards without a change.

import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { StackState } from "@holdfast/place/local-stack";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { Project } from "../../packages/holdfast/src/testing/holdfast-process.ts";
import { becomeNext, NEXT_NUMBER, nextVersion, presentVersion } from "./next-version.ts";

const HEAD = `import { appendFileSync } from "node:fs";
import { defineAgent, defineTask, local } from "holdfast";
const done = (ctx, what) =>
  ctx.run(what, () => appendFileSync("effects.txt", ctx.sessionId + " " + what + "\\n"), { effect: "once" });
`;

/** The wait of a session whose process is killed, the command that ends the wait, and the output. */
const CASES: Readonly<
  Record<string, { readonly body: string; readonly unblock?: readonly string[]; readonly output: string }>
> = {
  question: {
    body: `const said = await ctx.requestInput("Which?", { answer: "any" }); await done(ctx, "after"); return said;`,
    unblock: ["answer", "question", '"left"'],
    output: "left",
  },
  approval: {
    body: `const { approved } = await ctx.requestInput("Deploy?", { answer: "approval" }); await done(ctx, "after"); return approved;`,
    unblock: ["approve", "approval"],
    output: "true",
  },
  signal: {
    body: `const got = await ctx.waitForSignal("go"); await done(ctx, "after"); return got;`,
    unblock: ["signal", "signal", "go", "7"],
    output: "7",
  },
  timer: {
    body: `await ctx.sleep(4_000); await done(ctx, "after"); return "woken";`,
    output: "woken",
  },
  step: {
    body: `await ctx.run("slow", () => new Promise((resolve) => setTimeout(resolve, 3_000)), { effect: "read" });
    await done(ctx, "after"); return "slept";`,
    output: "slept",
  },
  retry: {
    body: `await ctx.run("shaky", (task) => { if (task.attempt === 1) throw new Error("once more"); },
      { effect: "keyed", retry: { maxAttempts: 3, initialDelayMs: 3_000 } }).catch(() => {});
    await done(ctx, "after"); return "tried";`,
    output: "tried",
  },
  child: {
    body: `const child = ctx.spawnAgent(local(waits), null);
    const got = await ctx.waitForChild(child); await done(ctx, "after"); return got;`,
    unblock: ["signal", "child-1", "go", "8"],
    output: "8",
  },
};

const CHILD = `const waits = defineAgent({ name: "waits", run: async (ctx) => {
  await done(ctx, "child before"); return ctx.waitForSignal("go"); } });
`;

interface Row {
  readonly status: string;
}

const WAITS = { timeout: 90_000, interval: 500 };

describe("an upgrade", () => {
  let folder: string;
  let next: string;
  let project: Project;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "holdfast-next-"));
    next = nextVersion(folder);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  beforeEach(() => void (project = new Project({ eachAsProcess: true })));
  afterEach(() => project.dispose());

  const nextCall = (...args: readonly string[]) => project.finish(args, { launcher: next });
  const effects = (): string =>
    existsSync(project.path("effects.txt")) ? readFileSync(project.path("effects.txt"), "utf8") : "";

  test(
    "sessions that wait in every way go on with the next version, each effect once, and the earlier one refuses",
    { ...ofCampaign, timeout: 600_000 },
    async () => {
      const names = Object.keys(CASES);
      for (const name of names) {
        const { body } = CASES[name]!;
        project.write(
          `${name}.ts`,
          `${HEAD}${CHILD}export default defineAgent({ name: "${name}", agents: [waits],
  run: async (ctx) => { await done(ctx, "before"); ${body} } });\n`,
        );
        const running = project.start(["run", `${name}.ts`, "--session", name]);
        const last = name === "child" ? "child-1 child before" : `${name} before`;
        while (!effects().includes(`${last}\n`))
          await Promise.race([delay(20), running.finished.then(ended)]);
        await delay(500); // Its wait is stored.
        running.kill("SIGKILL");
        await running.finished;
      }
      const asked = await questions((...args) => project.run(...args));
      expect(asked).toHaveLength(2);

      expect((await nextCall("--version")).stdout).toContain(NEXT_NUMBER);
      const unread = hashOf(project);
      const checked = await nextCall("upgrade", "--check");
      expect([checked.code, checked.stdout]).toEqual([
        0,
        expect.stringContaining(`8 of 8 unfinished sessions would continue with Holdfast ${NEXT_NUMBER}`),
      ]);
      expect(hashOf(project)).toBe(unread);
      expect(await questions(nextCall)).toEqual(asked);
      for (const name of names) {
        const { unblock, output } = CASES[name]!;
        if (unblock !== undefined) {
          const went = await nextCall(...unblock);
          expect(went.code, went.stderr).toBe(0);
        }
        const { code, stdout, stderr } = await nextCall("resume", name);
        expect(code, stderr).toBe(0);
        expect({ name, output: stdout.trimEnd() }).toEqual({ name, output });
      }
      const lines = effects().trimEnd().split("\n");
      expect(new Set(lines).size, "an effect was done twice").toBe(lines.length);
      expect(lines.toSorted()).toEqual(
        [...names.flatMap((name) => [`${name} after`, `${name} before`]), "child-1 child before"].toSorted(),
      );
      const rows = JSON.parse((await nextCall("list", "--json")).stdout) as readonly Row[];
      expect(rows.map(({ status }) => status)).toEqual([...names, "child-1"].map(() => "completed"));

      const before = hashOf(project);
      for (const args of [
        ["list"],
        ["upgrade", "--check"],
        ["run", "signal.ts", "--session", "late"],
        ["resume", "signal"],
      ])
        expect(await project.run(...args)).toMatchObject({
          code: 11,
          stderr: expect.stringContaining("schema version 2"),
        });
      expect(hashOf(project)).toBe(before);
    },
  );

  test(
    "a version that is installed over the one of a running stack takes over when the runner ends",
    { ...ofCampaign, timeout: 600_000 },
    async () => {
      const installed = mkdtempSync(join(tmpdir(), "holdfast-installed-"));
      const launcher = presentVersion(installed);
      const call = (...args: readonly string[]) => project.finish(args, { launcher });
      const stack = async (): Promise<StackState> =>
        JSON.parse((await call("local", "status", "--json")).stdout) as StackState;
      try {
        const { body, output } = CASES["question"]!;
        project.write(
          "asks.ts",
          `${HEAD}export const asks = defineAgent({ name: "asks", run: async (ctx) => { await done(ctx, "before"); ${body} } });\n`,
        );
        const started = await call("local", "start", "--agents", "asks.ts", "--port", "0");
        expect(started.code, started.stderr).toBe(0);
        const begun = await call("run", "asks.ts", "--session", "s", "-d");
        expect(begun.code, begun.stderr).toBe(0);
        await vi.waitFor(async () => expect(await questions(call)).toHaveLength(1), WAITS);

        becomeNext(installed);
        const runner = (await stack()).processes.find(({ component }) => component === "runner");
        process.kill(runner!.pid!, "SIGKILL");
        await vi.waitFor(async () => {
          const { processes } = await stack();
          expect(processes.map(({ status }) => status)).toEqual(["ready", "ready"]);
          expect(processes.find(({ component }) => component === "runner")?.pid).not.toBe(runner!.pid);
        }, WAITS);
        const answered = await call("answer", "s", '"left"');
        expect(answered.code, answered.stderr).toBe(0);
        await vi.waitFor(async () => expect((await call("result", "s")).stdout).toBe(`${output}\n`), WAITS);
        expect(effects()).toBe("s before\ns after\n");
        expect((await call("local", "logs")).stdout).toContain(`the runner has Holdfast ${NEXT_NUMBER}`);
      } finally {
        await call("local", "stop");
        rmSync(installed, { recursive: true, force: true });
      }
    },
  );
});

async function questions(
  call: (...args: readonly string[]) => Promise<{ readonly stdout: string }>,
): Promise<readonly string[]> {
  const { stdout } = await call("inbox", "--json");
  const { items } = JSON.parse(stdout) as { readonly items: readonly { readonly id: string }[] };
  return items.map(({ id }) => id).toSorted();
}

function ended({ stderr }: { readonly stderr: string }): never {
  throw new Error(`it ended before it waited: ${stderr}`);
}

function hashOf(project: Project): string {
  return createHash("sha256")
    .update(readFileSync(project.path(".holdfast/holdfast.db")))
    .digest("hex");
}
