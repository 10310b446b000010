import { Redactor } from "@holdfast/system";
import { expect, test } from "vitest";
import type { Command } from "./poll-loop.ts";
import { WorkAnswers, type WorkOfSessions } from "./work-answers.ts";

const command = (commandId: string, type: string, given: object = {}) =>
  ({
    commandId,
    type,
    sessionId: "ses_a",
    arguments: new TextEncoder().encode(JSON.stringify({ createdAt: 1, ...given })),
  }) as unknown as Command;

/** The answers over this work, as they were sent. */
function answersOver(given: Omit<WorkOfSessions, "redactor">) {
  const work = { redactor: new Redactor(["key-of-a-model"]), ...given };
  const sent: unknown[] = [];
  const answers = new WorkAnswers(work, async ({ answer, error }) => {
    sent.push(JSON.parse(Buffer.from(answer ?? error ?? []).toString()));
  });
  return { answers, sent };
}

test("a title of a coordinator is one line without control characters", async () => {
  const titles: unknown[] = [];
  const { answers } = answersOver({
    read: async () => ({}),
    merge: async (_sessionId, { title }) => {
      titles.push(title);
      return {};
    },
  });
  await answers.answer(command("1", "merge_work", { title: "a\u001b]0;x\u0007 fix\nSigned-off-by: b" }));
  expect(titles).toEqual([expect.not.stringMatching(/\p{Cc}|Signed/u)]);
});

test("a coordinator that asks for much at once is refused, and can ask again", async () => {
  const gate = Promise.withResolvers<void>();
  let reads = 0;
  const { answers, sent } = answersOver({
    read: async () => {
      reads++;
      await gate.promise;
      return { status: "none" };
    },
  });
  const asked = Array.from({ length: 10 }, (_, i) => answers.answer(command(String(i), "read_work")));
  await expect.poll(() => sent.length).toBe(6);
  expect(sent).toEqual(Array.from({ length: 6 }, () => expect.objectContaining({ code: "rate_limited" })));
  expect(reads).toBe(4);
  gate.resolve();
  await Promise.all(asked);
  await answers.answer(command("later", "read_work"));
  expect(sent.at(-1)).toEqual({ status: "none" });
});

test("no answer and no error has a secret of the runner", async () => {
  const { answers, sent } = answersOver({
    read: async ({ sessionId }) => {
      if (sessionId === "ses_a") return { diff: '+KEY="key-of-a-model"\n' };
      throw new Error("no file key-of-a-model");
    },
  });
  await answers.answer(command("1", "read_work"));
  await answers.answer({ ...command("2", "read_work"), sessionId: "ses_b" });
  expect(JSON.stringify(sent)).not.toContain("key-of-a-model");
  expect(sent).toEqual([
    { diff: expect.stringContaining("+KEY=") },
    expect.objectContaining({ name: "Error" }),
  ]);
});

test("a runner waits for a merge that it has begun", async () => {
  const gate = Promise.withResolvers<object>();
  const { answers, sent } = answersOver({ read: async () => ({}), merge: () => gate.promise });
  void answers.answer(command("1", "merge_work", { revision: "r" }));
  let isIdle = false;
  const idle = answers.idle().then(() => (isIdle = true));
  await new Promise((resolve) => setImmediate(resolve));
  expect(isIdle).toBe(false);
  gate.resolve({ isNew: true });
  await idle;
  expect(sent).toEqual([{ isNew: true }]);
});

test("a runner waits for no read, which may be cut off", async () => {
  const gate = Promise.withResolvers<object>();
  const { answers } = answersOver({ read: () => gate.promise });
  const asked = answers.answer(command("1", "read_work"));
  await answers.idle();
  gate.resolve({});
  await asked;
});

test("a question without the start of its session is refused", async () => {
  const { answers, sent } = answersOver({ read: async () => ({}) });
  await answers.answer(command("1", "read_work", { createdAt: null }));
  expect(sent).toEqual([expect.objectContaining({ code: "invalid_input", at: "createdAt" })]);
});
