// A session of an external agent that is cancelled while its program works: the steps that end the program,
// and what is recorded of them.

import { existsSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";

import { ExternalSession } from "../../testing/external-session.ts";

let session: ExternalSession;
afterEach(() => session.dispose());

async function works(request: string): Promise<void> {
  session = new ExternalSession("claude-code");
  await session.begin(request);
  while (session.lines("pids").length < 2) await delay(20);
}

const running = (): readonly string[] =>
  session
    .lines("pids")
    .filter((pid) => existsSync(`/proc/${pid}/cmdline`) && readFileSync(`/proc/${pid}/cmdline`).length > 0);

test("a hard cancel that follows a graceful one shortens the steps, and nothing of the program is left", async () => {
  await works("stubborn");
  await session.handle.cancel();
  await delay(100);
  expect(running()).toHaveLength(2);
  const hardAt = performance.now();
  await session.handle.cancel({ hard: true });
  while (running().length > 0) await delay(20);
  // The steps of a graceful cancel take eight seconds.
  expect(performance.now() - hardAt).toBeLessThan(4_000);
});

test("a cancelled session names the step that ended its program, and all of its calls have a result", async () => {
  await works("write:a.txt hang");
  await session.handle.cancel();
  expect((await session.rest()).status).toBe("cancelled");
  expect(running()).toEqual([]);
  const entries = await session.entries();
  expect(entries.at(-1)?.content).toBe(
    "(The session was cancelled. claude-code was stopped by a request: exit code 0.)",
  );
  expect(entries.filter(({ role }) => role === "tool")).toHaveLength(2);
});

test(
  "a program that takes no request and ignores SIGTERM is stopped by SIGKILL within the grace of a cancel",
  ofCampaign,
  async () => {
    await works("stubborn");
    await session.handle.cancel();
    expect((await session.rest()).status).toBe("cancelled");
    expect(running()).toEqual([]);
    expect((await session.entries()).at(-1)?.content).toBe(
      "(The session was cancelled. claude-code was stopped by SIGKILL: ended by SIGKILL.)",
    );
  },
);
