// docs/api.md names what there is: a method that is not there is one that nobody finds.

import { readFileSync } from "node:fs";
import { AgentContext, RETRY_DEFAULTS } from "@holdfast/core";
import { createRuntime, MemoryStorage } from "@holdfast/runtime";
import { expect, test } from "vitest";
import { createClient } from "../packages/holdfast/src/client.ts";
import * as holdfast from "../packages/holdfast/src/index.ts";

const page = readFileSync(new URL("../docs/api.md", import.meta.url), "utf8");

const membersOf = (prototype: object): string[] =>
  Object.getOwnPropertyNames(prototype).filter((name) => name !== "constructor" && name !== "vanish");

test("every member of the context is named", () => {
  const fields = ["sessionId", "agentName", "input", "state"];
  const missing = [...membersOf(AgentContext.prototype), ...fields].filter(
    (name) => !new RegExp(`\`ctx\\.${name}\\b`).test(page),
  );
  expect(missing).toEqual([]);
});

test("every member of a runtime is named, and every function that a program calls", async () => {
  const runtime = createRuntime({ storage: new MemoryStorage() });
  const missing = membersOf(Object.getPrototypeOf(runtime) as object).filter(
    (name) => !page.includes(`runtime.${name}`),
  );
  expect(missing).toEqual([]);
  await runtime.close();
  for (const name of [
    "defineAgent",
    "defineTask",
    "NonRetryableError",
    "createRuntime",
    "MemoryStorage",
    "openSqliteStorage",
    "connectSqliteStorage",
    "openSqliteReader",
  ]) {
    expect(page).toContain(name);
    expect(holdfast).toHaveProperty(name);
  }
});

test("the defaults of a retry policy are those of the code", () => {
  for (const [name, value] of Object.entries(RETRY_DEFAULTS))
    expect(page).toContain(`| \`retry.${name}\` | ${value.toLocaleString("en")} |`);
});

test("every member of the client of a coordinator is named", () => {
  const client = createClient({ url: "http://127.0.0.1:1", token: "none" });
  client.close();
  const session = client.sessions.get("ses_1");
  const missing = [
    ...Object.keys(client.sessions).map((name) => `client.sessions.${name}(`),
    ...Object.keys(session)
      .filter((name) => name !== "sessionId")
      .map((name) => `session.${name}(`),
  ].filter((call) => !page.includes(call));
  expect(missing).toEqual([]);
});
