// docs/api.md names what there is: a method that is not there is one that nobody finds.

import { readdirSync, readFileSync } from "node:fs";
import { defineWorkspaceTasks, workspacesByRoot } from "@holdfast/agents";
import { AgentContext, RETRY_DEFAULTS } from "@holdfast/core";
import { createRuntime, MemoryStorage } from "@holdfast/runtime";
import { expect, test } from "vitest";
import { createClient } from "@holdfast/client";
import * as holdfast from "../packages/holdfast/src/index.ts";

const read = (path: string): string => readFileSync(new URL(`../${path}`, import.meta.url), "utf8");
const page = read("docs/api.md");

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

const PAGES = [
  "README.md",
  ...readdirSync(new URL("../docs", import.meta.url))
    .filter((name) => name.endsWith(".md") && name !== "api-reference.md")
    .map((name) => `docs/${name}`),
];
const imported = PAGES.flatMap((path) =>
  [...read(path).matchAll(/import \{ ([\w, …]+) \} from "((?:@?holdfast|@a2a-js)[\w/]*)"/g)].map(
    ([, names, from]) =>
      [path, from!, names!.split(", ").filter((name) => name !== "…" && !name.startsWith("type "))] as const,
  ),
);

test.each(imported)("%s imports from %s what is there: %j", async (_, from, names) => {
  const module = (await import(from)) as Readonly<Record<string, unknown>>;
  expect(names.filter((name) => !(name in module))).toEqual([]);
});

test.each(PAGES)("%s makes objects only of classes that it imports, or that the language has", (path) => {
  const programs = [...read(path).matchAll(/```ts\n(.*?)```/gs)].map(([, text]) => text!).join("\n");
  const known = imported.filter(([of]) => of === path).flatMap(([, , names]) => names);
  const made = [...programs.matchAll(/\bnew ([A-Z]\w+)/g)].map(([, name]) => name!);
  expect(made.filter((name) => !known.includes(name) && !(name in globalThis))).toEqual([]);
});

test("every function that the page has of a fleet is exported where it says", async () => {
  const runner = (await import("holdfast/runner")) as Readonly<Record<string, unknown>>;
  const rows = page.slice(page.indexOf("## A fleet"), page.indexOf("## Tests"));
  const documented = [...rows.matchAll(/^\| `(?:new )?(\w+)\(/gm)].map(([, name]) => name!);
  expect(documented).toContain("startRunner");
  expect(documented.filter((name) => !(name in runner))).toEqual([]);
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

test.each([
  ["packages/core/src/asks/child-creation.ts", "SpawnOptions", "## Children"],
  ["packages/core/src/state/session-state.ts", "StateDefinition", "### Typed state"],
  ["packages/core/src/budget/budget.ts", "Budget", "## Budgets"],
  ["packages/core/src/ports/task-executor.ts", "TaskCost", "## Budgets"],
  ["packages/core/src/journal/record.ts", "TokenUsage", "## Tasks"],
  ["packages/runtime/src/agents/define.ts", "TaskDefinition", "## Tasks"],
  ["packages/runtime/src/api/runtime-api.ts", "StartOptions", "## Programs"],
])("%s: every field of %s is named under %s", (file, name, heading) => {
  const { fields } = fieldsOf(read(file), name);
  expect(fields.length).toBeGreaterThan(3);
  const from = page.indexOf(`\n${heading}\n`);
  const part = page.slice(from, page.indexOf("\n## ", from + 1));
  expect(fields.filter((field) => !new RegExp(`\\b${field}\\b`).test(part))).toEqual([]);
});

test("every task over a workspace is named", () => {
  const names = Object.keys(defineWorkspaceTasks(workspacesByRoot()));
  expect(names.filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
});

/** The fields of an interface, as its source has them; `type` is their value where there is one. */
function fieldsOf(source: string, name: string): { readonly type: string | undefined; fields: string[] } {
  const body = new RegExp(`interface ${name}\\b[^{]*\\{([^]*?)\\n\\}`).exec(source)?.[1] ?? "";
  const fields = [...body.matchAll(/^ {2}readonly (\w+)\??:/gm)].map(([, field]) => field!);
  return {
    type: /readonly type: "(\w+)"/.exec(body)?.[1],
    fields: fields.filter((field) => field !== "type"),
  };
}

test("every record that events tell of is named, with its kind and its fields, and no other", () => {
  const source = read("packages/core/src/journal/record.ts");
  const kindOf = (name: string): string =>
    ["Command", "Event", "Note"]
      .find((kind) => new RegExp(`type ${kind}Record =[^;]*\\b${name}\\b`).test(source))
      ?.toLowerCase() ?? "none";
  const known = [...source.matchAll(/interface (\w+) extends ([\w, ]+) \{/g)].flatMap(([, name, bases]) => {
    const { type, fields } = fieldsOf(source, name!);
    if (type === undefined) return [];
    const inherited = bases!.includes("CancelNotice") ? fieldsOf(source, "CancelNotice").fields : [];
    return [`${type}, ${kindOf(name!)}: ${[...fields, ...inherited].toSorted().join(" ")}`];
  });
  const documented = [...page.matchAll(/^\| `(\w+)` \| (command|event|note) \| (.*?) \|/gm)].map(
    ([, type, kind, fields]) =>
      `${type}, ${kind}: ${[...fields!.matchAll(/`(\w+)`/g)]
        .map(([, field]) => field!)
        .toSorted()
        .join(" ")}`,
  );
  expect(known.length).toBeGreaterThan(30);
  expect(documented.toSorted()).toEqual(known.toSorted());
});

test("a payload is told of for those records that have one in the golden journals", () => {
  const folder = new URL("../histories/", import.meta.url);
  const seen = new Map<string, boolean>();
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    if (!name.endsWith(".jsonl")) continue;
    for (const [, type, rest] of readFileSync(new URL(name, folder), "utf8").matchAll(
      /^\{"type":"(\w+)",(.*"seq":.*)/gm,
    ))
      seen.set(type!, (seen.get(type!) ?? false) || /"(?:payload|blob)":/.test(rest!));
  }
  const documented = new Map(
    [...page.matchAll(/^\| `(\w+)` \| (?:command|event|note) \|.*\| (.*)\|$/gm)].map(([, type, payload]) => [
      type!,
      payload!.trim() !== "",
    ]),
  );
  expect(seen.size).toBeGreaterThan(20);
  for (const [type, hasPayload] of seen) expect([type, documented.get(type)]).toEqual([type, hasPayload]);
});

test("every field of how a session stands is named, and every option of an agent", () => {
  const events = page.slice(page.indexOf("### Events"));
  const { fields } = fieldsOf(read("packages/client/src/client.ts"), "RemoteStatus");
  expect(fields.length).toBeGreaterThan(5);
  expect(fields.filter((field) => !events.includes(`\`${field}\``))).toEqual([]);
  const agents = page.slice(page.indexOf("## Agents"), page.indexOf("## The context"));
  const options = fieldsOf(read("packages/runtime/src/agents/define.ts"), "AgentCommon").fields;
  expect(options).toContain("agents");
  expect(options.filter((option) => !new RegExp(`\\b${option}\\b`).test(agents))).toEqual([]);
});
