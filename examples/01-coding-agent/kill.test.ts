// Real kills of the real command while the coding agent works.
//
// HOLDFAST_KILLS sets how many: 500 in the kills campaign, 3 without it. Sessions run one after the other
// until the kills are used up; each must end as an undisturbed one does. A commit that a kill cuts off is not
// repeated: the model looks first.

import { existsSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { decodeJson, isEvent } from "@holdfast/core";
import { openSqliteReader, type SqliteFileReader } from "@holdfast/storage/sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { Project } from "../../packages/holdfast/src/testing/holdfast-process.ts";
import { copyFixture, git } from "./fixture.ts";

const KILLS = Number(process.env["HOLDFAST_KILLS"] ?? 3);
const AGENT = fileURLToPath(new URL("./agent.ts", import.meta.url));
/** The result of a command that a kill cut off. The model then looks, and the conversation is another one from there. */
const UNCERTAIN = "nobody knows whether it took effect";
const LOOKS = "The commit was cut off. I look whether it is there.";

describe("KILL", () => {
  let project: Project;
  beforeEach(() => void (project = new Project({ fromSources: true })));
  afterEach(() => project.dispose());

  test(
    `${KILLS} kills of the coding agent: one commit, no finished task again, the same conversation up to a cut-off command`,
    { ...ofCampaign, timeout: KILLS * 15_000 + 120_000 },
    async () => {
      const undisturbed = await work("undisturbed", 0);
      let kills = 0;
      for (let n = 1; kills < KILLS; n++) {
        const { conversation, endings, killed } = await work(`killed-${n}`, KILLS - kills);
        kills += killed;
        const cutOff = conversation.findIndex((entry) => entry.includes(UNCERTAIN));
        const end = cutOff < 0 ? undefined : cutOff;
        expect(conversation.slice(0, end)).toEqual(undisturbed.conversation.slice(0, end));
        expect(endings.filter((count) => count !== 1)).toEqual([]);
      }
    },
  );

  test.each([
    ["before the commit is made", "pre-commit", LOOKS, "It is not committed yet."],
    ["after the commit was made", "post-commit", LOOKS],
  ])(
    "a kill %s: the command is not repeated, the model looks, and there is one commit",
    ofCampaign,
    async (_when, hook, ...says) => {
      const repo = project.path("repo");
      const begun = project.path("begun");
      await copyFixture(repo);
      await git(repo, "config", "core.hooksPath", ".git/hooks");
      const program = join(repo, ".git/hooks", hook);
      await mkdir(dirname(program), { recursive: true });
      await writeFile(program, `#!/bin/sh\ntouch '${begun}'\nsleep 300\n`, { mode: 0o755 });
      const input = JSON.stringify({ repo, text: "Mend it." });
      const running = project.start(["run", AGENT, "--session", hook, "--input", input]);
      await running.says(`approve ${hook}`);
      await project.run("approve", hook);
      await expect.poll(() => existsSync(begun), { timeout: 60_000 }).toBe(true);
      running.kill("SIGKILL");
      await running.finished;
      await rm(program);
      const resumed = await project.start(["resume", hook]).finished;
      expect(resumed.code, resumed.stderr).toBe(0);
      for (const words of [UNCERTAIN, ...says]) expect(resumed.stderr).toContain(words);
      await expectFixed(hook, repo);
    },
  );

  /** A session from its start to its end, killed at random moments up to `killsMax` times. */
  async function work(id: string, killsMax: number) {
    const repo = project.path(`repo-${id}`);
    await copyFixture(repo);
    const start = ["run", AGENT, "--session", id, "--input", JSON.stringify({ repo, text: "Mend it." })];
    let killed = 0;
    for (;;) {
      const session = await read((reader) => reader.session(id));
      if (session?.endedAt !== undefined) break;
      if (session?.status === "input_required") await project.run("approve", id);
      const running = project.start(session === undefined ? start : ["resume", id]);
      const mayLive = killed >= killsMax;
      const timer = mayLive
        ? undefined
        : setTimeout(() => running.kill("SIGKILL"), 250 + Math.random() * 1_500);
      // The run cannot end while it waits for its approval.
      const asking = mayLive
        ? running.says(`approve ${id}`).then(() => project.run("approve", id))
        : undefined;
      const { signal, code, stderr } = await running.finished;
      clearTimeout(timer);
      await asking?.catch(() => {}); // An earlier process may have received the answer.
      if (signal === "SIGKILL") killed += 1;
      // A slow machine can be killed five times in a row before its first commit. Then a person resumes the
      // session.
      else if (stderr.includes("died 5 times in a row")) expect(stderr).toContain(`holdfast resume ${id}`);
      // A program that cannot start would be started without end.
      else expect(code, stderr).toBe(0);
    }

    await expectFixed(id, repo);
    const entries = (await read((reader) => reader.entries(id, 0, 1_000))) ?? [];
    const conversation = entries.map(({ role, content }) => `${role}: ${comparable(content, repo)}`);
    return { conversation, endings: await countEndings(id), killed };
  }

  async function expectFixed(id: string, repo: string): Promise<void> {
    expect(await git(repo, "rev-list", "--count", "HEAD"), "exactly one commit was added").toBe("2");
    expect(await git(repo, "status", "--porcelain")).toBe("");
    const ended = await read((reader) => reader.session(id));
    expect(decodeJson(ended?.output)).toMatchObject({
      status: "completed",
      commit: await git(repo, "rev-parse", "HEAD"),
    });
  }

  /** Reads beside the owner of the database; `undefined` before there is one. */
  async function read<T>(ask: (reader: SqliteFileReader) => Promise<T>): Promise<T | undefined> {
    const path = project.path(".holdfast/holdfast.db");
    if (!existsSync(path)) return undefined;
    const reader = openSqliteReader({ path });
    try {
      return await ask(reader);
    } finally {
      reader.close();
    }
  }

  /** How often each task ended, by the journal. */
  async function countEndings(id: string): Promise<readonly number[]> {
    const counts = new Map<number, number>();
    await read(async (reader) => {
      for (let from = 0; ;) {
        const page = await reader.journal(id, from, 1_000);
        if (page.length === 0) return;
        from += page.length;
        for (const record of page) {
          if (!isEvent(record) || (record.type !== "task_completed" && record.type !== "task_failed"))
            continue;
          counts.set(record.task, (counts.get(record.task) ?? 0) + 1);
        }
      }
    });
    return [...counts.values()];
  }
});

/**
 * Without what differs from run to run: times, the folder, ids of commits, and ids of calls, which are hashes
 * of what was said before.
 */
function comparable(content: string, repo: string): string {
  return content
    .replaceAll(repo, "REPO")
    .replaceAll(/\d+\.\d+ms/g, "0ms")
    .replaceAll(/duration_ms:? \d+(\.\d+)?/g, "duration_ms 0")
    .replaceAll(/(?<![0-9a-f])[0-9a-f]{40}(?![0-9a-f])/g, "COMMIT")
    .replaceAll(/toolu_[0-9a-f]+_/g, "call_");
}
