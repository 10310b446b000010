// Programs that are kept between two turns of a conversation: what they have in the next turn, and what ends
// them.

import { setTimeout as delay } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";

import { ExternalSession } from "../../testing/external-session.ts";
import type { IncludedName } from "../../included-programs.ts";
import { KeptPrograms } from "./kept-programs.ts";

describe("the program of a conversation", () => {
  let session: ExternalSession;
  afterEach(() => session.dispose());

  async function converse(
    name: IncludedName,
    text: string,
    input: Readonly<Record<string, unknown>> = {},
  ): Promise<void> {
    session = new ExternalSession(name);
    session.keepsPrograms = true;
    expect((await session.converse(text, input)).status).toBe("waiting");
  }

  const isIn = async (text: string): Promise<boolean> =>
    JSON.stringify(await session.entries()).includes(text);
  /** How often Claude Code was started. */
  const starts = (): number => session.lines("claude.log").length;

  test.each([
    ["claude-code", "claude.log"],
    ["codex", "codex.log"],
    ["pi", "pi.log"],
    ["opencode", "acp.log"],
  ] as const)(
    "%s carries out the next request in the same process, with the tools of its session",
    async (name, log) => {
      await converse(name, "write:a.txt");
      const used = (await session.usage()).length;
      expect((await session.say("session:report_progress:half write:b.txt")).status).toBe("waiting");
      expect(session.lines(log)).toHaveLength(1);
      expect(await isIn("Reported.")).toBe(true);
      expect(await isIn("Done: session:report_progress:half write:b.txt")).toBe(true);
      expect(session.lines("project/b.txt")).toEqual(["x"]);
      if (name === "claude-code") expect((await session.usage()).length).toBe(2 * used);
    },
  );

  test("a question of the next turn is answered in its process", async () => {
    await converse("claude-code", "write:a.txt");
    expect((await session.say("ask:b.txt")).status).toBe("input_required");
    await session.answer({ approved: true });
    expect(session.lines("project/b.txt")).toEqual(["x"]);
    expect(starts()).toBe(1);
  });

  test("without a request in time it ends, and the next request resumes its session", async () => {
    await converse("claude-code", "write:a.txt", { keepAliveMs: 200 });
    await session.processesEnded();
    await session.say("write:b.txt");
    expect(await isIn("Done: write:b.txt")).toBe(true);
    expect(session.lines("claude.log").map((line) => line.includes("--resume"))).toEqual([false, true]);
  });

  test("after its death the next request resumes its session", async () => {
    await converse("claude-code", "die write:a.txt"); // Once, in its first turn.
    const { pid } = JSON.parse(session.lines("claude.log").at(-1)!) as { readonly pid: number };
    process.kill(pid, "SIGKILL");
    await session.processesEnded();
    await session.say("write:b.txt");
    expect(session.lines("project/b.txt")).toEqual(["x"]);
    expect(starts()).toBe(3);
  });

  test("it ends with its session", async () => {
    await converse("claude-code", "write:a.txt");
    await session.handle.cancel();
    await session.processesEnded();
    expect((await session.rest()).status).toBe("cancelled");
  });

  test("a session that ends with its answer keeps none", async () => {
    session = new ExternalSession("claude-code");
    session.keepsPrograms = true;
    expect((await session.converse("write:a.txt", { conversation: false })).status).toBe("completed");
    await session.processesEnded();
  });

  test("a program that works without a request is ended, and its work is no part of the session", async () => {
    await converse("claude-code", "restless");
    await session.processesEnded();
    await session.say("write:b.txt");
    expect(await isIn("Nobody asked.")).toBe(false);
    expect(session.lines("project/b.txt")).toEqual(["x"]);
  });

  test("each turn of a session with a limit of costs starts a program with what is left of it", async () => {
    session = new ExternalSession("claude-code");
    session.keepsPrograms = true;
    const input = { model: "claude-sonnet-4-5" };
    await session.converse("write:a.txt", input, { budget: { maxCostMicroUsd: 5_000_000 } });
    await session.say("write:b.txt");
    const limits = session.lines("claude.log").map((line) => {
      const { args } = JSON.parse(line) as { readonly args: readonly string[] };
      return Number(args[args.indexOf("--max-budget-usd") + 1]);
    });
    expect(limits).toHaveLength(2);
    expect(limits[1]).toBeLessThan(limits[0]!);
  });
});

describe("KeptPrograms", () => {
  function programOf(ended: Promise<unknown> = new Promise(() => {})) {
    const reasons: string[] = [];
    const stop = (reason: string): Promise<unknown> => Promise.resolve(reasons.push(reason));
    return { ended, stop, reasons };
  }

  test("a program is taken once, and one that has ended is not taken", async () => {
    const kept = new KeptPrograms();
    const program = programOf();
    kept.keep("a", program, 60_000);
    expect([kept.take("a"), kept.take("a")]).toEqual([program, undefined]);
    kept.keep("b", programOf(Promise.resolve()), 60_000);
    await delay(0);
    expect(kept.has("b")).toBe(false);
  });

  test("the one that waits longest is ended where too many wait", () => {
    const kept = new KeptPrograms(2);
    const programs = ["a", "b", "c"].map((tag) => ({ tag, program: programOf() }));
    for (const { tag, program } of programs) kept.keep(tag, program, 60_000);
    expect(programs.map(({ program }) => program.reasons)).toEqual([["too many wait"], [], []]);
    expect(kept.has("a")).toBe(false);
  });
});
