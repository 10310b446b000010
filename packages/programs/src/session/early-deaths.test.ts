// Programs that end before their session has begun, or before they have stored its prompt.

import { chmodSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";

import { ExternalSession } from "../testing/external-session.ts";

let session: ExternalSession;
afterEach(() => session.dispose());

test("a program that is killed before its session has begun is started again", async () => {
  session = new ExternalSession("codex");
  writeFileSync(join(session.home, "die-at"), "1");
  await session.begin("write:a.txt");
  while ((await session.entries()).length < 2) await delay(20);
  rmSync(join(session.home, "die-at"));
  expect((await session.rest()).status).toBe("waiting");
  expect(JSON.stringify(await session.entries())).toContain("Done: write:a.txt");
});

test("a program that exits before its session has begun fails the session at once", async () => {
  session = new ExternalSession("codex");
  const path = join(session.home, "bin", "codex");
  writeFileSync(
    path,
    '#!/bin/sh\n[ "$1" = --version ] && echo "codex-cli 0.171.0" && exit\necho start >> "$HOME/starts"\nexit 3\n',
  );
  chmodSync(path, 0o755);
  const { status, error } = await session.converse("hello");
  expect([status, error?.message]).toEqual([
    "failed",
    expect.stringContaining("ended before its session began: exit code 3"),
  ]);
  expect(session.lines("starts")).toHaveLength(1);
});

// The second prompt names the call that was cut off, and its program dies before it has stored that prompt.
test("a call that was cut off is named until the program has ended another one", async () => {
  session = new ExternalSession("codex");
  await session.begin("hang write:a.txt");
  while (session.lines("pids").length === 0) await delay(20);
  while (!JSON.stringify(await session.entries()).includes("sleep 1000")) await delay(20);
  writeFileSync(join(session.home, "die-at"), "1");
  process.kill(Number(session.lines("pids")[0]), "SIGKILL");
  const prompts = async (): Promise<readonly string[]> =>
    (await session.entries()).flatMap(({ role, content }) => (role === "user" ? [String(content)] : []));
  while ((await prompts()).length < 3) await delay(20);
  rmSync(join(session.home, "die-at"));
  expect((await session.rest()).status).toBe("waiting");
  for (const prompt of (await prompts()).slice(1))
    expect(prompt.match(/shell {"command":"sleep 1000"}/g), prompt).toHaveLength(1);
});
