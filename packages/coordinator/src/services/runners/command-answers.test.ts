import { TestClock } from "@holdfast/testkit/test-runtime";
import { expect, test } from "vitest";
import type { RunnerCommand } from "../../dispatch/poller.ts";
import { CommandAnswers } from "./command-answers.ts";

const ASKED = { type: "read_work", sessionId: "s1" } as const;

function open({ polls = true } = {}) {
  const clock = new TestClock();
  const sent = new Map<string, RunnerCommand>();
  let count = 0;
  const answers = new CommandAnswers({
    clock,
    random: { u32: () => count++ },
    dispatcher: {
      ask: (_runnerId, command) => {
        if (polls) sent.set(command.commandId, command);
        return polls;
      },
      withdraw: (_runnerId, commandId) => sent.delete(commandId),
    },
  });
  return { clock, sent, answers };
}

const json = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));

test("only the runner that was asked answers, and the command is sent no longer", async () => {
  const { sent, answers, clock } = open();
  const asked = answers.ask("r1", ASKED);
  const [command] = sent.values();
  expect(command).toMatchObject(ASKED);
  const { commandId } = command!;
  answers.take("r2", { commandId, answer: json({ status: "forged" }) });
  answers.take("r1", { commandId, answer: json({ status: "none" }) });
  expect(await asked).toEqual({ status: "none" });
  expect([sent.size, clock.armed]).toEqual([0, 0]);
  answers.take("r1", { commandId, answer: json({}) }); // Nobody waits any more.
});

test.each([
  ["its code", { name: "E", message: "no", code: "policy_denied" }, "policy_denied", "no"],
  ["no code of the coordinator's own", { message: "no", code: "unauthorized" }, "unavailable", "no"],
  ["no code", { message: "no" }, "unavailable", "no"],
  ["a list as its code", { message: "no", code: ["policy_denied"] }, "unavailable", "no"],
  ["no error", null, "unavailable", "it failed"],
] as const)("an error of the runner is the caller's, as its words: %s", async (_what, error, code, said) => {
  const { sent, answers } = open();
  const asked = answers.ask("r1", ASKED);
  const [commandId = ""] = sent.keys();
  answers.take("r1", { commandId, error: json(error) });
  await expect(asked).rejects.toMatchObject({ code, message: `the runner r1 says: ${said}` });
});

test("an advice of the runner is shown as its words", async () => {
  const { sent, answers } = open();
  const asked = answers.ask("r1", ASKED);
  const [commandId = ""] = sent.keys();
  answers.take("r1", { commandId, error: json({ message: "no", fix: "pay" }) });
  await expect(asked).rejects.toMatchObject({ fix: "the runner says: pay" });
});

test("a merge that its runner has got is not said to be left undone", async () => {
  const { sent, answers, clock } = open();
  const asked = answers.ask("r1", { ...ASKED, type: "merge_work" });
  const failure = expect(asked).rejects.toMatchObject({ fix: expect.stringContaining("may still carry") });
  sent.clear(); // It is acknowledged.
  await clock.advance(30_000);
  await failure;
});

test("a runner that is away is not asked, and a silent one is asked for half a minute", async () => {
  await expect(open({ polls: false }).answers.ask("r1", ASKED)).rejects.toMatchObject({
    code: "unavailable",
    fix: expect.stringContaining("`holdfast merge`"),
  });
  const { sent, answers, clock } = open();
  const asked = answers.ask("r1", ASKED);
  const failure = expect(asked).rejects.toMatchObject({ code: "unavailable" });
  await clock.advance(30_000);
  await failure;
  expect(sent.size).toBe(0);
});

test("at most a hundred questions are open", async () => {
  const { sent, answers } = open();
  const asked = Array.from({ length: 100 }, () => answers.ask("r1", ASKED));
  await expect(answers.ask("r1", ASKED)).rejects.toMatchObject({ code: "rate_limited" });
  for (const commandId of sent.keys()) answers.take("r1", { commandId, answer: json(1) });
  expect(await Promise.all(asked)).toHaveLength(100);
});
