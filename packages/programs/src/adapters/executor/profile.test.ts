import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";

import { DEFAULT_EXECUTOR, executorAt, findExecutor, listExecutors } from "./profile.ts";

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "profiles-"));
});
afterEach(() => rm(root, { recursive: true, force: true }));

async function put(path: string, text = "#!/bin/sh\n"): Promise<string> {
  const file = join(root, path);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, text);
  await chmod(file, 0o755);
  return file;
}

test("an executor is found by its folder, which holds exactly one program", async () => {
  const program = await put("executors/mine/ao-mine-exec");
  await put("executors/mine/lib/helper");
  expect(findExecutor(root, "mine")).toMatchObject({
    name: "mine",
    command: [program],
    lifecycle: "one_shot",
  });
});

test("a folder without a program and a folder with two are refused, and the list says so", async () => {
  await put("executors/empty/README");
  await put("executors/two/ao-a-exec");
  await put("executors/two/ao-b-exec");
  expect(() => findExecutor(root, "empty")).toThrow("the executor empty has 0 programs");
  expect(() => findExecutor(root, "two")).toThrow("the executor two has 2 programs");
  const problems = listExecutors(root).map(({ name, problem }) => [
    name,
    problem?.replace(/^the executor /, ""),
  ]);
  expect(problems).toEqual([
    ["empty", "empty has 0 programs"],
    [DEFAULT_EXECUTOR, undefined],
    ["two", "two has 2 programs"],
  ]);
});

test("a profile names a command below its root, and every option", async () => {
  await put(
    "profiles/careful.json",
    JSON.stringify({
      type: "autonomous",
      command: ["tools/run", "--fast"],
      lifecycle: "persistent",
      config: { model: "opus" },
      schema_version: "2.1",
      secrets: ["API_KEY"],
      providers: { anthropic: "TEAM_KEY" },
      conversation_ttl_seconds: 60,
      timeout_seconds: 5,
    }),
  );
  expect(findExecutor(root, "careful")).toEqual({
    name: "careful",
    command: [join(root, "tools/run"), "--fast"],
    lifecycle: "persistent",
    config: { model: "opus" },
    schemaVersion: "2.1",
    secrets: ["API_KEY"],
    providers: { anthropic: "TEAM_KEY" },
    conversationTtlMs: 60_000,
    timeoutMs: 5_000,
  });
});

test.each([
  ["not JSON", "{", "it is not JSON"],
  ["a list", "[]", "it is not a JSON object"],
  ["no command", "{}", "command: it is missing"],
  ["an unknown field", '{"command":"a/b","comand":"c"}', "comand: the field is unknown"],
  ["an unknown schema", '{"command":"a/b","schema_version":"3.0"}', "schema_version: the value is wrong"],
  ["an unknown life cycle", '{"command":"a/b","lifecycle":"daemon"}', "lifecycle: the value is wrong"],
  ["an argument with NUL", '{"command":["a/b","x\\u0000"]}', "command: the value is wrong"],
  ["a secret that is no variable", '{"command":"a/b","secrets":["A=B"]}', "secrets: the value is wrong"],
  [
    "an unknown provider",
    '{"command":"a/b","providers":{"antropic":"KEY"}}',
    "providers: the value is wrong",
  ],
  [
    "a provider without a secret",
    '{"command":"a/b","providers":{"openai":true}}',
    "providers: the value is wrong",
  ],
  [
    "a provider's key among its secrets",
    '{"command":"a/b","secrets":["KEY"],"providers":{"openai":"KEY"}}',
    "secrets: the executor would see the key KEY",
  ],
  ["a negative time", '{"command":"a/b","timeout_seconds":-1}', "timeout_seconds: the value is wrong"],
])("a profile with %s is refused by its field", async (_what, text, message) => {
  await put("profiles/wrong.json", text);
  expect(() => findExecutor(root, "wrong")).toThrow(`the profile cannot be used: ${message}`);
});

test.each(["../x", "", ".", "a/b", "no-such", "__proto__"])(
  "no executor is found under the name %j",
  (name) => {
    expect(() => findExecutor(root, name)).toThrow("there is no executor");
  },
);

test("a program is found by its path, and gets its name from it", async () => {
  const program = await put("elsewhere/ao-search-exec");
  expect(executorAt(program)).toMatchObject({ name: "search", command: [program] });
  expect(() => executorAt(join(root, "nothing"))).toThrow("there is no executor");
  expect(() => executorAt(root)).toThrow("there is no executor");
  await chmod(program, 0o644);
  expect(() => executorAt(program)).toThrow("the executor search may not be executed");
});
