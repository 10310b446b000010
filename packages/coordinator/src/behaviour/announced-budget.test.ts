// The budget that a runner announces with an agent.

import { expect, onTestFinished, test } from "vitest";
import { openFleet } from "../testing/fleet.ts";

test("a start that is repeated is the same when the budget of its agent has changed, and not with a budget of its own", async () => {
  const fleet = await openFleet();
  onTestFinished(() => fleet.close());
  const ada = await fleet.user("ada");
  const start = { agent: "greeter", sessionId: "one" };
  expect((await ada.post("/v1/sessions", start)).body.account).toBeUndefined();
  await fleet.runner({ budgets: { greeter: { maxSteps: 3 } } });
  expect((await ada.post("/v1/sessions", start)).body).toMatchObject({ sessionId: "one" });
  const other = await ada.post("/v1/sessions", { ...start, budget: { maxSteps: 9 } });
  expect(other.body).toMatchObject({ status: 409, code: "session_exists" });
  const next = await ada.post("/v1/sessions", { agent: "greeter" });
  expect(next.body.account.limits).toMatchObject({ maxSteps: 3 });
});
