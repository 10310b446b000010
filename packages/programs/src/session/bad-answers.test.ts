// Answers that a session of an external agent cannot use, because they come twice, late or for another
// session. Folders that are deleted.

import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";

import { ExternalSession } from "../testing/external-session.ts";

let session: ExternalSession;
beforeEach(() => void (session = new ExternalSession("claude-code")));
afterEach(() => session.dispose());

describe("an answer to a request for a permission", () => {
  test("an answer counts once: a second one changes nothing", ofCampaign, async () => {
    expect((await session.converse("ask:a.txt")).status).toBe("input_required");
    const { waits } = await session.handle.session();
    const question = waits.find(({ type }) => type === "input")!.id;
    await session.answer({ approved: false, reason: "not now" });
    await session.handle.answer({ approved: true }, { question }).catch(() => {});
    expect((await session.say("hello")).status).toBe("waiting");
    expect(existsSync(join(session.folder, "a.txt"))).toBe(false);
    expect(session.lines("answers")).toHaveLength(1);
  });

  test(
    "an answer that comes after the process was ended reaches the next process once",
    ofCampaign,
    async () => {
      await session.converse("ask:a.txt", { keepAliveMs: 2_000 });
      await session.processesEnded();
      expect((await session.answer({ approved: true })).status).toBe("waiting");
      expect(session.lines("answers")).toHaveLength(1);
      expect(session.lines("claude.log")).toHaveLength(2);
    },
  );

  test("an answer to another session is refused, and the question stays open", ofCampaign, async () => {
    await session.converse("ask:a.txt");
    const other = new ExternalSession("claude-code");
    try {
      await other.converse("hello");
      expect(await other.handle.answer({ approved: true })).toMatchObject({ status: "refused" });
      expect((await session.handle.session()).status).toBe("input_required");
      expect(session.lines("answers")).toEqual([]);
    } finally {
      await other.dispose();
    }
  });
});

test(
  "a folder that is deleted between two turns is a question, and `continue` without it fails with the folder's name",
  ofCampaign,
  async () => {
    await session.converse("write:a.txt");
    rmSync(session.folder, { recursive: true });
    expect((await session.say("write:b.txt")).status).toBe("input_required");
    expect(await session.question()).toContain("the folder of the session is gone");
    const { status, error } = await session.answer("continue");
    expect(status).toBe("failed");
    expect(error?.message).toContain(session.folder);
  },
);

test(
  "a folder that is deleted while the program works fails no step of Holdfast's own",
  ofCampaign,
  async () => {
    await session.converse("rm-folder hello");
    expect((await session.handle.session()).status).toBe("waiting");
    expect((await session.say("hello")).status).toBe("input_required");
  },
);

describe("an answer with another input", () => {
  test("Claude Code carries out the call with the input that the person gave", ofCampaign, async () => {
    await session.converse("ask:a.txt");
    await session.answer({ approved: true, input: { file_path: "b.txt", content: "x" } });
    expect(existsSync(join(session.folder, "b.txt"))).toBe(true);
    expect(existsSync(join(session.folder, "a.txt"))).toBe(false);
  });

  test(
    "a program that takes no other input gets a refusal, and the call is not carried out",
    ofCampaign,
    async () => {
      const codex = new ExternalSession("codex");
      try {
        await codex.converse("ask:a.txt");
        await codex.answer({ approved: true, input: { path: "b.txt" } });
        expect(existsSync(join(codex.folder, "a.txt"))).toBe(false);
        expect(codex.lines("answers").join("")).toContain("decline");
      } finally {
        await codex.dispose();
      }
    },
  );

  test("an answer of another form is refused, and the question stays open", async () => {
    await session.converse("ask:a.txt");
    for (const answer of [
      { approved: false, input: {} },
      { approved: true, input: "b.txt" },
      { approved: true, input: {}, remember: { scope: "session" } },
    ])
      await expect(session.handle.answer(answer)).rejects.toThrow("asks for yes or no");
    expect((await session.handle.session()).status).toBe("input_required");
  });
});
