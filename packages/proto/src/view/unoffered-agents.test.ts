import { expect, test } from "vitest";
import {
  partlyOfferedAgents,
  unofferedAgents,
  type PlainItem,
  type PlainRunner,
} from "./unoffered-agents.ts";

const HASH = "0123456789abcdef".repeat(4);
const ITEM: PlainItem = { kind: "agent", name: "helper", current: HASH, active: true };
const runner = (name: string, more: Partial<PlainRunner> = {}): PlainRunner => ({
  name,
  status: "online",
  ...more,
});
const refuses = (problem: string, name = "helper") => ({ refusedAgents: [{ name, problem }] });
const offers = (version?: string) => ({
  agents: [{ name: "helper", ...(version === undefined ? {} : { version }) }],
});
const NO_POLICY =
  /, and no policy there allows it: `agentFiles` of a runner's policy allows a pushed agent by its name, or all by `\*`$/;

test.each<readonly [string, Partial<PlainItem>, readonly PlainRunner[], readonly unknown[] | undefined]>([
  ["a runner with its current version", {}, [runner("a", offers(HASH.slice(0, 16)))], undefined],
  ["a runner with any version", {}, [runner("a", offers())], undefined],
  [
    "one runner that refuses and one that offers",
    {},
    [runner("a", refuses("no")), runner("b", offers())],
    undefined,
  ],
  ["another kind", { kind: "skill" }, [], undefined],
  [
    "an inactive agent",
    { active: false },
    [runner("a", offers())],
    ["it is inactive, and `holdfast agents activate helper` activates it"],
  ],
  ["no runner", {}, [], ["no runner is online"]],
  [
    "runners that are not online",
    {},
    [runner("a", { status: "silent", ...refuses("no") }), runner("b", { status: "draining", ...offers() })],
    ["no runner is online"],
  ],
  [
    "a runner with another version, whose policy refuses the current one",
    {},
    [runner("a", { ...offers("fedcba9876543210"), ...refuses("no <b>shell</b>") }), runner("b")],
    ["runner a refuses it: no <b>shell</b>"],
  ],
  [
    "several runners with two problems",
    {},
    [
      ...["a", "b", "c", "d"].map((name) => runner(name, refuses("no shell"))),
      runner("e", refuses("no file")),
    ],
    ["runners a, b, c and 1 more refuse it: no shell", "runner e refuses it: no file"],
  ],
  [
    "a runner that refuses another agent",
    {},
    [runner("a", refuses("no", "other"))],
    [expect.stringMatching(new RegExp(`^one runner is online${NO_POLICY.source}`))],
  ],
  [
    "runners that announced nothing",
    {},
    [runner("a"), runner("b", { agents: [] })],
    [expect.stringMatching(new RegExp(`^2 runners are online${NO_POLICY.source}`))],
  ],
])("the reasons why a pushed agent is not offered: %s", (_, item, runners, reasons) => {
  const unoffered = unofferedAgents([{ ...ITEM, ...item }], runners);
  expect(unoffered).toEqual(reasons === undefined ? [] : [{ name: "helper", reasons }]);
});

test("an agent that some runners offer and others refuse has the refusals, and one that all offer has none", () => {
  const partly = (...runners: readonly PlainRunner[]) => partlyOfferedAgents([ITEM], runners);
  const refusing = runner("a", refuses("no script"));
  expect(partly(refusing, runner("b", offers()))).toEqual([
    { name: "helper", reasons: ["runner a refuses it: no script"] },
  ]);
  expect(partly(runner("b", offers()), runner("c"))).toEqual([]);
  expect(partly(refusing)).toEqual([]); // No runner offers it, which `unofferedAgents` says.
});
