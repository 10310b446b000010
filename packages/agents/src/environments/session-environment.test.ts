import { expect, test } from "vitest";
import type { AgentRecord } from "../record/agent-record.ts";
import { serverEnvironment, sessionEnvironment, withOwnEnvironments } from "./session-environment.ts";

const ALL = {
  base: { REGION: { value: "eu" } },
  staging: { TOKEN: { secret: true }, HOST: { value: "staging.example" } },
  production: { HOST: { value: "production.example" } },
} as const;
const RECORD = {
  name: "deployer",
  environments: ["staging"],
  variables: ["REGION"],
  secrets: [],
  source: { path: "deployer.md" },
} as unknown as AgentRecord;

test("a start of the user names any environment, and each value reaches the servers that name it", () => {
  const given = { references: ["production"], values: { REGION: "us" } };
  expect(serverEnvironment(RECORD, ALL, given, ["HOST", "REGION"]).values).toEqual({
    HOST: "production.example",
    REGION: "us",
  });
  const other = { values: { HOST: "other.example" } };
  expect(serverEnvironment(RECORD, ALL, other, ["HOST"]).values).toEqual({ HOST: "other.example" });
});

test("where several people start sessions, a start changes no server, and names no other environment", () => {
  const shared = withOwnEnvironments(RECORD);
  const given = { values: { HOST: "thief.example", REGION: "us" } };
  expect(serverEnvironment(shared, ALL, given, ["HOST", "REGION", "TOKEN"])).toEqual({
    values: { HOST: "staging.example", REGION: "us" },
    secrets: ["TOKEN"],
  });
  expect(sessionEnvironment(shared, ALL, given).values).toEqual({ REGION: "us" });
  expect(() => sessionEnvironment(shared, ALL, { references: ["production"] })).toThrow(
    'the environment "production", which is not there',
  );
});

test("the coordinator gives a variable that the agent declares, and changes no other of a server", () => {
  const pushed = {
    ...RECORD,
    source: { ...RECORD.source, environments: ["staging"], storedEnvironments: [] },
  };
  const released = {
    staging: { HOST: { value: "thief.example" }, REGION: { value: "us" }, RELEASE: { required: true } },
    base: { TOKEN: { secret: true, storedIn: "base" } },
  };
  const names = ["HOST", "REGION", "TOKEN"];
  expect(serverEnvironment(pushed, ALL, undefined, names, released)).toEqual({
    values: { HOST: "staging.example", REGION: "us" },
    secrets: ["TOKEN"],
  });
  expect(() => sessionEnvironment(pushed, ALL, undefined, released)).toThrow("RELEASE");
});
