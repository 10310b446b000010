// An answer over REST is for the question that it names, or for the only open one.

import { TestClock } from "@holdfast/testkit/test-runtime";
import { afterEach, expect, test } from "vitest";
import { openFleet, type Fleet } from "../testing/fleet.ts";

let fleet: Fleet | undefined;
afterEach(() => fleet?.close());

test("an answer that names none of several open questions is refused, and the error has their commands", async () => {
  fleet = await openFleet({ clock: new TestClock() });
  const ada = await fleet.user("ada");
  const runner = await fleet.runner();
  const sessionId = await ada.start();
  const { claims } = await runner.poll({ free: 1 });
  const claim = claims[0]!;
  const waits = [
    { type: "input", id: 4, name: "answer:4", prompt: "Ship\nit?", answer: "approval" },
    { type: "input", id: 6, name: "answer:6", prompt: "Which?", answer: "any" },
  ] as const;
  await runner.say(claim, { status: "input_required", waits });
  const answer = (body: object) => ada.post(`/v1/sessions/${sessionId}/answer`, body);
  const refused = await answer({ answer: "blue" });
  expect(refused.status).toBe(422);
  expect(JSON.stringify(refused.body)).toContain("has 2 open questions, and the answer names none of them");
  expect(JSON.stringify(refused.body)).toContain("4: Ship it?");
  expect(JSON.stringify(refused.body)).toContain(
    `holdfast approve ${sessionId} 4 or holdfast answer ${sessionId} 6 JSON`,
  );
  expect(await fleet.storage.reader.pendingSignals(sessionId)).toEqual([]);
  expect((await answer({ answer: "blue", question: "6" })).body.question).toBe("answer:6");
  expect((await answer({ answer: { approved: true } })).body.question).toBe("answer:4");
});
