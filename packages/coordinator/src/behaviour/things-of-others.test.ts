// A thing of another user cannot be told from one that does not exist, over real HTTP. The calls come from the
// contract: a new one is tried without a line here, unless it needs a body.

import { MemoryStorage } from "@holdfast/testkit/test-runtime";
import { afterAll, beforeAll, expect, test } from "vitest";
import { mayCall, METHODS, type Rule } from "../api/contract.ts";
import { openFleet, type Fleet, type Person } from "../testing/fleet.ts";

/** The bodies of the calls that are refused without one. */
const BODIES: Readonly<Record<string, object>> = {
  "SessionService.Signal": { name: "go" },
  "SessionService.Answer": { answer: 1 },
  "SessionService.SetTitle": { title: "Theirs" },
  "SessionService.SetBudget": { maxTokens: 5 },
  "SessionService.GrantWindow": { per: "day" },
};
const ELSEWHERE = new Map([
  ["ScheduleService.Put", "its caller chooses the id; scope.test.ts has it"],
  ["EnvironmentService.Set", "its caller has environments of its own; environments.test.ts has it"],
  ["CatalogueService.Get", "agent files and skills of a fleet belong to nobody"],
]);
/** The parameters of paths that name a thing of somebody, with the id of none. */
const NONE = { session_id: "ses_none", run_id: "run_ses_none.next", schedule_id: "none", name: "none" };

const CALLS = METHODS.filter((method) => mayCall(method, "user") && !ELSEWHERE.has(method.name)).flatMap(
  ({ name, rules }) => rules.filter(({ path }) => path.includes("{")).map((rule) => [name, rule] as const),
);

let fleet: Fleet;
let eve: Person;
const ids = { ...NONE };
beforeAll(async () => {
  fleet = await openFleet({
    storage: new MemoryStorage(),
    environmentKeys: ["a key of environments".repeat(2)],
  });
  eve = await fleet.user("eve");
  const ada = await fleet.user("ada");
  ids.session_id = await ada.start({ input: "secret" });
  const runs = await ada.get(`/v1/runs?sessionId=${ids.session_id}`);
  ids.run_id = runs.body.runs[0].runId;
  ids.schedule_id = "nightly";
  ids.name = "staging";
  await ada.call("PATCH", "/v1/environments/staging", { keys: [{ name: "A", value: "b" }] });
  await ada.call("PUT", "/v1/schedules/nightly", { cron: "0 3 * * *", start: { agent: "greeter" } });
});
afterAll(() => fleet.close());

test.each(CALLS)("%s answers for another user's as for none", async (name, { verb, path, body }: Rule) => {
  const ask = async (of: Readonly<Record<string, string>>) => {
    const filled = path.replace(/\{(\w+)\}/g, (_, parameter: string) => {
      const id = of[parameter];
      if (id === undefined) throw new Error(`say in NONE, or in ELSEWHERE, whose {${parameter}} is`);
      return id;
    });
    const answer = await eve.call(verb, filled, body === "" ? undefined : (BODIES[name] ?? {}));
    let text = JSON.stringify({ ...answer, body: { ...answer.body, instance: "" } });
    for (const id of Object.values(of)) text = text.replaceAll(id, "ID");
    return { status: answer.status, text };
  };
  const theirs = await ask(ids);
  expect(theirs.status, theirs.text).toBe(404);
  expect(theirs.text).toBe((await ask(NONE)).text);
  expect((await fleet.storage.reader.session(ids.session_id))?.inbox).toBe(0);
});
