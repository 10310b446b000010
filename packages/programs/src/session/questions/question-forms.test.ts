// Questions of external programs for more than yes or no: each is a durable question of the session, and its
// answer reaches the program once.

import { afterEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";

import { ExternalSession } from "../../testing/external-session.ts";

let session: ExternalSession;
afterEach(() => session.dispose());

const answers = (): readonly unknown[] => session.lines("answers").map((line) => JSON.parse(line) as unknown);
const CHOSEN = { Database: "Postgres", Checks: ["unit", "lint"] };

test("the choices of Claude Code are a question, a wrong answer is asked for again, and the right one reaches it once", async () => {
  session = new ExternalSession("claude-code");
  expect((await session.converse("choose")).status).toBe("input_required");
  expect(await session.question()).toContain(
    "claude-code asks: Which database? Which checks? Fields: Database (Postgres or SQLite or another text), " +
      "Checks (a list of unit or lint or another text).",
  );
  expect((await session.answer({ Database: "Postgres" })).status).toBe("input_required");
  expect(await session.question()).toContain("does not fit: the field Checks is missing");
  expect((await session.answer({ approved: true, input: CHOSEN })).status).toBe("waiting");
  expect(answers()).toMatchObject([
    {
      behavior: "allow",
      updatedInput: { answers: { "Which database?": "Postgres", "Which checks?": "unit, lint" } },
    },
  ]);
});

test("a person who does not choose refuses with a reason, which Claude Code reads", ofCampaign, async () => {
  session = new ExternalSession("claude-code");
  await session.converse("choose");
  expect((await session.answer({ approved: false, reason: "you decide" })).status).toBe("waiting");
  expect(answers()).toEqual([
    { behavior: "deny", message: "The person did not answer. The reason: you decide" },
  ]);
});

test(
  "an answer that comes after the process was ended is told to the next turn, and nobody is asked again",
  ofCampaign,
  async () => {
    session = new ExternalSession("claude-code");
    await session.converse("choose", { keepAliveMs: 500 });
    await session.processesEnded();
    expect((await session.answer(CHOSEN)).status).toBe("waiting");
    const prompts = session.prompts().replaceAll("\\", "");
    expect(prompts).toContain(
      `may not have received the answer: Which database? Which checks?nThe answer: ${JSON.stringify(CHOSEN)}`,
    );
    // The program asks the same again, and gets the same answer.
    expect(answers()).toMatchObject([{ updatedInput: { answers: { "Which database?": "Postgres" } } }]);
    expect(session.lines("claude.log")).toHaveLength(2);
  },
);

test("a form of an MCP server of Claude Code is a question, and a no declines it", ofCampaign, async () => {
  session = new ExternalSession("claude-code");
  await session.converse("elicit");
  expect(await session.question()).toContain("Fields: size (small or large), count (integer, optional).");
  expect((await session.answer({ size: "huge" })).status).toBe("input_required");
  await session.answer({ size: "large", count: 2 });
  await session.say("elicit");
  await session.answer({ approved: false });
  expect(answers()).toEqual([
    { action: "accept", content: { size: "large", count: 2 } },
    { action: "decline" },
  ]);
});

test("the choices and the forms of Codex are questions, and it gets the answers in its form", async () => {
  session = new ExternalSession("codex");
  await session.converse("choose elicit");
  await session.answer({ Database: "Postgres", Checks: "unit" });
  await session.answer({ size: "small" });
  expect(answers()).toEqual([
    { answers: { db: { answers: ["Postgres"] }, checks: { answers: ["unit"] } } },
    { action: "accept", content: { size: "small" }, _meta: null },
  ]);
});
