// Sessions of external agents in the sandbox `bubblewrap`, over the fake programs.

import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";

import { ExternalSession, type FakeName } from "../../testing/external-session.ts";

let session: ExternalSession;
afterEach(() => session.dispose());
const SANDBOX = { sandbox: "bubblewrap" };

/** Puts the fake beside the program, because the folder of this test is not seen in a sandbox. */
function open(name: FakeName, program: string, source: string): void {
  session = new ExternalSession(name);
  const bin = join(session.home, "bin");
  for (const file of [source, "fake-acts.mjs", "fake-session-tools.mjs"])
    copyFileSync(fileURLToPath(new URL(`../../testing/${file}`, import.meta.url)), join(bin, file));
  writeFileSync(join(bin, program), `#!/bin/sh\nexec "${process.execPath}" "${bin}/${source}" "$@"\n`);
}

// Without bubblewrap there is no sandbox.
describe.skipIf(!existsSync("/usr/bin/bwrap"))("a program in the sandbox", () => {
  test(
    "it changes its folder and keeps its sessions, and what it does elsewhere does not reach this machine",
    ofCampaign,
    async () => {
      open("claude-code", "claude", "fake-claude.mjs");
      writeFileSync(join(session.home, "secret"), "");
      await session.converse("write:a.txt write:../outside.txt env", SANDBOX);
      expect(readFileSync(join(session.folder, "a.txt"), "utf8")).toBe("x\n");
      expect(existsSync(join(session.home, "outside.txt"))).toBe(false);
      expect(session.files()).toHaveLength(1);
      expect((await session.say("write:b.txt session:report_progress:half")).status).toBe("waiting");
      expect(existsSync(join(session.folder, "b.txt"))).toBe(true);
      expect(JSON.stringify(await session.entries())).toContain("Done: write:b.txt");
    },
  );

  test("it is stopped with all that it started, and goes on after that", ofCampaign, async () => {
    open("claude-code", "claude", "fake-claude.mjs");
    await session.begin("write:a.txt stubborn", SANDBOX);
    while (!JSON.stringify(await session.entries().catch(() => [])).includes("sleep 1000")) await delay(20);
    await delay(300);
    await session.handle.signal("interrupt");
    await session.rest();
    await session.processesEnded();
    expect(JSON.stringify(await session.entries())).toContain("The user interrupted the turn.");
  });

  test.each<[FakeName, string, string]>([
    ["codex", "codex", "fake-codex.mjs"],
    ["pi", "pi", "fake-pi.mjs"],
  ])("%s keeps its session, and resumes it", ofCampaign, async (name, program, source) => {
    open(name, program, source);
    await session.converse("write:a.txt", SANDBOX);
    expect(session.files()).toHaveLength(1);
    expect((await session.say("write:b.txt")).status).toBe("waiting");
    expect(session.files()).toHaveLength(1);
    expect(existsSync(join(session.folder, "b.txt"))).toBe(true);
  });
});

test("an agent whose folders are not known, and another sandbox, are refused before a program starts", async () => {
  session = new ExternalSession("opencode");
  mkdirSync(join(session.folder, "x"));
  expect((await session.converse("hello", SANDBOX)).error?.message).toContain(
    "its own folders are not known",
  );
  await session.dispose();
  session = new ExternalSession("claude-code");
  const { error } = await session.converse("hello", { sandbox: "docker" });
  expect(error?.message).toContain('cannot run in the sandbox "docker"');
  expect(session.lines("claude.log")).toEqual([]);
});
