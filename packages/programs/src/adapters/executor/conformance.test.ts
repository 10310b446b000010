import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";

import { openWorld, type World } from "../../testing/executor-world.ts";
import { checkExecutor } from "./conformance.ts";
import { DEFAULT_EXECUTOR, findExecutor, type ExecutorProfile } from "./profile.ts";

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(() => world.close());

/** The numbers of the clauses by their outcome. */
async function check(profile: ExecutorProfile): Promise<Record<string, readonly number[]>> {
  const options = { environment: process.env, projectDir: world.folder, turnMs: 20_000 };
  const outcome: Record<string, number[]> = {};
  for (const { clause, status } of await checkExecutor(profile, options))
    (outcome[status] ??= []).push(Number(clause.split("-").at(-1)));
  return outcome;
}

test(
  "the executor that comes with Holdfast keeps every clause of a one-shot program",
  ofCampaign,
  async () => {
    expect(await check(findExecutor(world.folder, DEFAULT_EXECUTOR))).toEqual({
      passed: [1, 2, 3, 4, 5, 6, 7],
      skipped: [8, 9],
    });
  },
);

test("a program that accepts everything and reports nothing fails", ofCampaign, async () => {
  const outcome = await check(await world.shell("cat > /dev/null; exit 0"));
  expect(outcome).toEqual({ failed: [1, 2, 5, 6], skipped: [3, 4, 8, 9], passed: [7] });
});

test("a program that goes on with a wrong invocation fails, although it crashes on its way", async () => {
  const accepts = await world.node(`
    await call("POST", "/bind", { executor_session_id: "own" });
    await event("result", { result_text: "ready" });`);
  // It accepts an unknown version. Without a gateway it dies of the closed port, which is no refusal.
  expect((await check(accepts)).failed).toEqual([5, 6]);
  const refusing = await world.node(`
    const known = inv.schema_version === "2.0" || inv.schema_version === "2.1" || inv.schema_version === "2.2";
    if (!known || !["start", "resume"].includes(inv.mode)) { console.error("no such invocation"); process.exit(1); }
    await call("POST", "/bind", { executor_session_id: "own" });
    await event("result", { result_text: "ready" });`);
  expect((await check(refusing)).failed).toBeUndefined();
});

test.each([
  ["a stack trace", "null.mode;"],
  ["the text of every other end", 'console.error("something went wrong"); process.exit(1);'],
])("a program whose refusals are crashes with %s fails", async (_, crash) => {
  const crashing = await world.node(`
    const isKnown = ["2.0", "2.1", "2.2"].includes(inv.schema_version) && ["start", "resume"].includes(inv.mode);
    if (!isKnown) { ${crash} }
    ${crash.startsWith("null") ? "" : crash}
    await call("POST", "/bind", { executor_session_id: "own" });
    await event("result", { result_text: "ready" });`);
  const { failed } = await check(crashing);
  expect(failed).toEqual(expect.arrayContaining([5, 6]));
});

test("a program that ignores SIGTERM fails the clause about its end alone", ofCampaign, async () => {
  const profile = await world.node(`
    process.on("SIGTERM", () => {});
    await call("POST", "/bind", { executor_session_id: "own" });
    await event("result", { result_text: "ready" });`);
  const deaf = {
    ...profile,
    command: ["/bin/sh", "-c", "trap '' TERM; cat | " + profile.command.join(" ")] as const,
  };
  expect((await check(deaf)).failed).toContain(7);
});

test("a program that is not there fails, and the check ends", async () => {
  const profile = await world.shell("");
  const outcome = await check({ ...profile, command: ["/no/such/program"] });
  expect(outcome["passed"]).toBeUndefined();
  expect(outcome["failed"]).toContain(2);
});
