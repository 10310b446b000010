import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { checkRunnerPolicy, requireFolder, RUNNER_POLICY_SCHEMA } from "./runner-policy.ts";

test("docs/runner-policy.schema.json is what the code checks a policy by", () => {
  const file = new URL("../../../../docs/runner-policy.schema.json", import.meta.url);
  expect(JSON.parse(readFileSync(file, "utf8"))).toEqual(RUNNER_POLICY_SCHEMA);
});

test("a policy with every field of the schema is accepted", () => {
  const policy = {
    $schema: "x",
    executors: ["test-executor"],
    roots: ["/work"],
    network: { allow: ["example.org", "*.example.org:8443"], allowPrivate: ["example.org"] },
    agentFiles: {
      allow: ["*", "reviewer"],
      tools: ["read_file", "mcp__docs__*"],
      environments: ["staging"],
      variables: ["REGION"],
      coordinatorEnvironments: true,
      hooks: true,
      subAgents: ["*", "helper", "lead.checker"],
    },
    concurrency: 4,
    mergeWork: true,
    allowScripts: "approved_hash",
    approvedScripts: ["0".repeat(64)],
  } as const;
  const { properties } = RUNNER_POLICY_SCHEMA;
  expect(Object.keys(policy)).toEqual(Object.keys(properties));
  expect(Object.keys(policy.agentFiles)).toEqual(Object.keys(properties.agentFiles.properties));
  const { $schema: _, ...checked } = policy;
  expect(checkRunnerPolicy(policy, "FILE")).toEqual(checked);
  expect(checkRunnerPolicy({}, "FILE")).toEqual({});
});

test.each([
  ["FILE#", [], "the policy is not a JSON object"],
  ["FILE#/executor", { executor: [] }, 'the policy has no "executor"'],
  ["FILE#/__proto__", JSON.parse('{"__proto__": []}'), 'the policy has no "__proto__"'],
  ["FILE#/executors", { executors: "all" }, '"executors" has a wrong value'],
  ["FILE#/executors", { executors: ["../x"] }, '"executors" has a wrong value'],
  ["FILE#/roots", { roots: ["relative"] }, '"roots" has a wrong value'],
  ["FILE#/network", { network: {} }, '"allow" is missing'],
  ["FILE#/network", { network: ["example.org"] }, "the policy is not a JSON object"],
  ["FILE#/network/allow", { network: { allow: ["https://example.org"] } }, '"allow" has a wrong value'],
  ["FILE#/network/deny", { network: { allow: [], deny: [] } }, 'the policy has no "deny"'],
  ["FILE#/agentFiles", { agentFiles: {} }, '"allow" is missing'],
  ["FILE#/agentFiles", { agentFiles: "*" }, "the policy is not a JSON object"],
  ["FILE#/agentFiles/allow", { agentFiles: { allow: ["rev*"] } }, '"allow" has a wrong value'],
  [
    "FILE#/agentFiles/tools",
    { agentFiles: { allow: [], tools: ["Bash(git:*)"] } },
    '"tools" has a wrong value',
  ],
  [
    "FILE#/agentFiles/coordinatorEnvironments",
    { agentFiles: { allow: [], coordinatorEnvironments: "staging" } },
    '"coordinatorEnvironments" has a wrong value',
  ],
  ["FILE#/agentFiles/hooks", { agentFiles: { allow: [], hooks: ["*"] } }, '"hooks" has a wrong value'],
  [
    "FILE#/agentFiles/subAgents",
    { agentFiles: { allow: [], subAgents: true } },
    '"subAgents" has a wrong value',
  ],
  ["FILE#/agentFiles/secrets", { agentFiles: { allow: [], secrets: [] } }, 'the policy has no "secrets"'],
  ["FILE#/concurrency", { concurrency: 0 }, '"concurrency" has a wrong value'],
  ["FILE#/concurrency", { concurrency: "4" }, '"concurrency" has a wrong value'],
  ["FILE#/allowScripts", { allowScripts: true }, '"allowScripts" has a wrong value'],
  ["FILE#/approvedScripts", { approvedScripts: ["0123abcd"] }, '"approvedScripts" has a wrong value'],
])("a policy that is wrong at %s is refused", (at, value, message) => {
  expect(() => checkRunnerPolicy(value, "FILE")).toThrow(
    expect.objectContaining({ code: "config_invalid", at, message: expect.stringContaining(message) }),
  );
});

describe("a folder", () => {
  let folder: string;
  beforeEach(() => {
    folder = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-policy-")));
    for (const name of ["root", "root/inside", "rooted"]) mkdirSync(join(folder, name));
    symlinkSync(join(folder, "rooted"), join(folder, "root", "link"));
    symlinkSync(join(folder, "root"), join(folder, "alias"));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  test.each([
    ["root", true],
    ["root/inside", true],
    ["alias/inside", true],
    ["root/inside/..", true],
    ["rooted", false],
    ["root/link", false],
    ["root/../rooted", false],
    ["none", false],
  ])("whether %s is within the root is %s", (name, expected) => {
    const allowed = (): boolean => {
      try {
        requireFolder({ roots: [join(folder, "root")] }, `${folder}/${name}`);
        return true;
      } catch {
        return false;
      }
    };
    expect(allowed()).toBe(expected);
  });
});
