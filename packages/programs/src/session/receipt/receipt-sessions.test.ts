// Sessions of external agents and their restore receipts: a loss is a question, and a session file that is
// missing is put back.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterEach, describe, expect, test } from "vitest";
import { ofCampaign, sampled } from "@holdfast/testkit/campaign";

import type { IncludedName } from "../../included-programs.ts";
import { ExternalSession } from "../../testing/external-session.ts";

let session: ExternalSession;
afterEach(() => session.dispose());

test.each<IncludedName>(sampled(["claude-code", "codex", "pi"]))(
  "a session file of %s that is missing is put back, and the session continues",
  async (name) => {
    session = new ExternalSession(name);
    await session.converse("write:a.txt");
    const [file, ...others] = session.files();
    expect(others).toEqual([]);
    const before = readFileSync(file!, "utf8");
    rmSync(file!);
    expect((await session.say("write:b.txt")).status).toBe("waiting");
    expect(session.files()).toEqual([file]);
    expect(readFileSync(file!, "utf8").startsWith(before)).toBe(true);
  },
);

test(
  "a change by a person is told to the agent, and the session continues without a question",
  ofCampaign,
  async () => {
    session = new ExternalSession("claude-code");
    execFileSync("git", ["init", "--quiet"], { cwd: session.folder });
    await session.converse("write:a.txt");
    writeFileSync(join(session.folder, "a.txt"), "by a person");
    expect((await session.say("hello")).status).toBe("waiting");
    expect(session.prompts()).toMatch(/Since your last turn this has changed[^"]*files were changed: a\.txt/);
  },
);

describe("a loss", () => {
  /** A session whose file was cut, and whose uncommitted work is gone. */
  async function lossy(): Promise<void> {
    session = new ExternalSession("claude-code");
    execFileSync("git", ["init", "--quiet"], { cwd: session.folder });
    await session.converse("write:a.txt");
    truncateSync(session.files()[0]!, 3);
    rmSync(join(session.folder, "a.txt"));
    expect((await session.say("write:b.txt")).status).toBe("input_required");
    expect(session.lines("claude.log")).toHaveLength(1); // No process was started.
  }

  test("a loss is a question with the list, another answer is asked again, and `continue` tells the agent", async () => {
    await lossy();
    expect(await session.question()).toMatch(
      /restore_incomplete[^]*3 of its \d+ bytes[^]*gone: a\.txt[^]*"continue", "afresh", "stop"/,
    );
    expect((await session.answer("perhaps")).status).toBe("input_required");
    expect(await session.question()).toContain("none of the answers");
    expect((await session.answer("continue")).status).toBe("waiting");
    expect(session.lines("claude.log").at(-1)).toContain("--resume");
    expect(session.prompts()).toMatch(/This is gone since your last turn[^]*a\.txt/);
  });

  test(
    "`afresh` opens a new session, which is told what was recorded and what is gone",
    ofCampaign,
    async () => {
      await lossy();
      const before = session.files();
      expect((await session.answer("afresh")).status).toBe("waiting");
      const [made, ...others] = session.files().filter((path) => !before.includes(path));
      expect(others).toEqual([]);
      expect(readFileSync(made!, "utf8")).toMatch(
        /session that is lost[^]*a\.txt[^]*wrote a\.txt[^]*write:b\.txt/,
      );
    },
  );

  test("`restore` puts the copy over the damaged file, keeps that beside it, and asks about the rest", async () => {
    await lossy();
    const file = session.files()[0]!;
    expect(await session.question()).toContain('"restore"');
    expect((await session.answer("restore")).status).toBe("input_required");
    expect(await session.question()).not.toMatch(/bytes|"restore"/);
    expect(readFileSync(file, "utf8")).toContain("write:a.txt");
    expect(readdirSync(dirname(file)).filter((name) => name.includes(".damaged-"))).toHaveLength(1);
    expect((await session.answer("continue")).status).toBe("waiting");
    expect(session.lines("claude.log").at(-1)).toContain("--resume");
    expect(session.prompts()).toMatch(/put back as it was[^]*/);
  });

  test("`stop` ends the session with restore_incomplete", ofCampaign, async () => {
    await lossy();
    const { status, error } = await session.answer("stop");
    expect(status).toBe("failed");
    expect(error).toMatchObject({ code: "restore_incomplete" });
    expect(error?.message).toContain("claude-code");
  });
});

test("an MCP file of OpenCode that is gone is a loss", ofCampaign, async () => {
  session = new ExternalSession("opencode");
  const file = join(session.folder, "opencode.json");
  writeFileSync(file, "{}");
  await session.converse("hello");
  rmSync(file);
  expect((await session.say("hello")).status).toBe("input_required");
  expect(await session.question()).toContain(`the file with MCP servers ${file} is gone`);
});

test("copies and raw lines are files of the machine, and the record has their hashes alone", async () => {
  session = new ExternalSession("claude-code");
  await session.converse("write:a.txt");
  const journal = await session.journal();
  const [file] = session.files().filter((path) => path.includes(".claude"));
  const content = readFileSync(file!, "utf8");
  const hash = createHash("sha256").update(content).digest("hex");
  expect(journal).toContain(hash);
  const kept = readdirSync(join(session.home, "mirrors"), { recursive: true, encoding: "utf8" });
  const raw = kept.find((name) => /^raw\/[^/]+\/[\da-f]{64}$/.test(name))!;
  expect(journal).toContain(raw.slice("raw/".length));
  const lines = gunzipSync(readFileSync(join(session.home, "mirrors", raw))).toString();
  expect(lines).toContain("claude_code_version");
  expect(journal).not.toContain("claude_code_version");
  expect(journal).not.toContain(content.trimEnd());
  // The copy of the session file is whole.
  const copies = kept
    .filter((name) => !name.startsWith("raw/"))
    .map((name) => join(session.home, "mirrors", name));
  expect(
    copies.filter((path) => statSync(path).isFile()).map((path) => readFileSync(path, "utf8")),
  ).toContain(content);
});
