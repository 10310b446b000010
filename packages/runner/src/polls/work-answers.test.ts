import { expect, test } from "vitest";
import type { Command } from "./poll-loop.ts";
import { WorkAnswers, type WorkOfSessions } from "./work-answers.ts";

const command = (commandId: string, type: string, given: object = {}) =>
  ({
    commandId,
    type,
    sessionId: "ses_a",
    arguments: new TextEncoder().encode(JSON.stringify(given)),
  }) as unknown as Command;

/** The answers over this work, as they were sent. */
function answersOver(work: WorkOfSessions) {
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
