// Every name in an error, a note, a help text or a question exists. A person who follows an advice types it.

import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { ownSandboxes } from "@holdfast/workspace";
import { ERROR_TABLE, LIMITS } from "@holdfast/core";
import { createRuntime, MemoryStorage } from "@holdfast/runtime";
import { expect, test } from "vitest";
import { PROJECT_FILES, VARIABLES } from "../packages/agents/src/places/project-inputs.ts";
import { METHODS } from "../packages/coordinator/src/api/contract.ts";
import { COMMANDS } from "../packages/holdfast/src/commands/index.ts";
import { COMMON_OPTIONS } from "../packages/terminal/src/frame/command.ts";
import { alternatives } from "../packages/terminal/src/frame/help.ts";
import { COMMAND_ERRORS } from "../packages/terminal/src/frame/command-error.ts";
import { EXIT_CODES } from "../packages/terminal/src/frame/help.ts";
import {
  fieldsOfSchema,
  functionsIn,
  keysOfConstant,
  membersOf,
  namesInCode,
  unknownNames,
  unknownNamesOf,
  type Known,
} from "./advised-names.ts";
import { printedTexts, speakingSources } from "./printed-texts.ts";
import { anchorOf } from "./site/anchors.ts";
import { FOR_OWN_PROGRAMS } from "./tidy/inputs.ts";
import { readTree, type Source } from "./tidy/tree.ts";

/** Variables that other programs read, and those that stand for one of the reader's own. */
const OTHER_VARIABLES = [
  "CLAUDE_PROJECT_DIR",
  "NODE_EXTRA_CA_CERTS",
  "OTEL_EXPORTER_OTLP_ENDPOINT",
  "PLUGIN_DATA",
  "PLUGIN_ROOT",
  "SOCK_STREAM",
  "API_TOKEN",
  "API_URL",
  "DEPLOY_TOKEN",
  "ISSUES_TOKEN",
  "MCP_TOKEN",
];

/** Names of other systems, and one of a person's own (`gpu`). */
const OTHER_NAMES = [
  "createPi",
  "current_setting",
  "default_transaction_read_only",
  "gRPC",
  "gpu",
  "macOS",
  "pg_is_in_recovery",
  "server_version",
  "server_version_num",
  "setImmediate",
  "toJSON",
];

/** The program of an executor, which is the author's, takes it. */
const OPTION_OF_EXECUTORS = "schema";

const CONTRACT = "packages/proto/proto/holdfast/v1";

const root = fileURLToPath(new URL("..", import.meta.url));
const tree = readTree(root);
const known = await knownNames();

test("every name that a text tells a person is defined where its kind is defined", () =>
  expect(unknownNamesOf(tree, known)).toEqual([]));

// A field of the contract is in camelCase in JSON, and a request with its name in snake_case is refused.
test("errors of the API name fields of requests as JSON has them", () => {
  const fields = new Set(
    readdirSync(new URL(`../${CONTRACT}`, import.meta.url)).flatMap((file) =>
      [...read(`${CONTRACT}/${file}`).matchAll(/^ {2}.* (\w+_\w+) = \d+/gm)].map(([, name]) => name!),
    ),
  );
  expect(fields).toContain("parent_session_id");
  const texts = tree.sources
    .filter(({ file, isTest }) => file.startsWith("packages/coordinator/src/services/") && !isTest)
    .flatMap(printedTexts);
  const wrong = texts.filter(({ text }) =>
    text.match(/[a-z]+(?:_[a-z]+)+/g)?.some((name) => fields.has(name)),
  );
  expect(wrong.map(({ at, text }) => `${at}: ${text}`)).toEqual([]);
});

test("the page and the documents name no member of the context that it does not have", () => {
  const files = tree.files.filter((file) =>
    /^(README|docs\/[\w-]+)\.md$|^packages\/dashboard\/.*\.tsx$/.test(file),
  );
  const wrong = files.flatMap((file) =>
    [...read(file).matchAll(/\bctx\.(\w+)/g)]
      .filter(([, name]) => !known.fields.context.has(name!))
      .map(([found]) => `${file}: ${found}`),
  );
  expect(files.some((file) => file.endsWith("inbox.tsx"))).toBe(true);
  expect(wrong).toEqual([]);
});

test.each([
  ["option", "give it with --budgt 5usd"],
  ["command", "see `secret lst`"],
  ["command", "make a copy by `import --sesion ID`"],
  ["variable", "set HOLDFAST_MODLE to another model"],
  ["error code", "it ends with E_NOT_THERE then"],
  ["exit code", "it ends with exit code 44"],
  ["page", "see docs/sandbox.md for it"],
  ["page", "see docs/scripts.md#at-a-runner for it"],
  ["version of Node", "use Node 24.16 or newer"],
  ["npm script", "build it with npm run pages"],
  ["sandbox", "add `sandbox: bublewrap` to it"],
  ["place", "write it in .holdfast/profile/NAME.yaml"],
  ["REST path", "ask GET /sessions/ID/state for it"],
  ["field or member", "raise `maxTurn` in the agent's file"],
  ["field or member", "take an agent file with `workspace: worktree` for it"],
  ["field or member", "add the folder to `folder` of the profile"],
  ["field or member", "correct `holdfast.script_s` of it"],
  ["field or member", "raise the coordinator's limits.batchByte then"],
  ["field or member", "ask by ctx.scheduleTasks(task, input)"],
  ["function", "give it to createRuntimes({ agents })"],
  ["function", "give it to createRuntime({ agentz })"],
  ["name in code", "leave maxConversationToken out of it"],
  ["name in code", "start it with execution_modus instead"],
])("a wrong %s is found: %s", (kind, text) =>
  expect(unknownNames(text, known).map((found) => found.kind)).toContain(kind),
);

async function knownNames(): Promise<Known> {
  const speaking = speakingSources(tree);
  const commands = await Promise.all(
    Object.entries(COMMANDS).map(async ([name, { load }]) => [name, await load()] as const),
  );
  const options = commands.flatMap(([, command]) => Object.keys(command.options));
  const constants = (file: string, ...names: readonly string[]): string[] =>
    names.flatMap((name) => [...keysOfConstant(sourceOf(file), name)]);
  const schema = (name: string): readonly string[] =>
    fieldsOfSchema(JSON.parse(read(`docs/${name}.schema.json`)));
  const manifest = JSON.parse(read("package.json")) as { scripts: object; engines: { node: string } };
  const runtime = createRuntime({ storage: new MemoryStorage() });
  const runtimeMembers = Object.getOwnPropertyNames(Object.getPrototypeOf(runtime));
  await runtime.close();
  return {
    options: new Set([...options, ...Object.keys(COMMON_OPTIONS), "help", OPTION_OF_EXECUTORS]),
    commands: new Map(commands),
    variables: new Set([...Object.keys(VARIABLES), ...FOR_OWN_PROGRAMS, ...OTHER_VARIABLES]),
    errorCodes: new Set(
      [...Object.keys({ ...ERROR_TABLE, ...COMMAND_ERRORS }), "node_version", "agent_busy"].map(
        (code) => `E_${code.toUpperCase()}`,
      ),
    ),
    exitCodes: new Set(Object.keys(EXIT_CODES)),
    pages: new Set(tree.files.flatMap(pagesOf)),
    nodes: new Set(manifest.engines.node.match(/\d+\.\d+\.\d+/g)),
    // A project that `holdfast init` made with a template has "dev".
    npmScripts: new Set([...Object.keys(manifest.scripts), "dev"]),
    sandboxes: new Set(ownSandboxes().map(({ name }) => name)),
    places: new Set([...Object.keys(PROJECT_FILES), ".holdfast/profiles"]),
    restPaths: new Set(
      [...METHODS.flatMap(({ rules }) => rules.map(({ path }) => path)), ...speaking.flatMap(pathsIn)].map(
        (path) => path.replaceAll(/\{\w+\}/g, "*"),
      ),
    ),
    fields: {
      "agent file": new Set(schema("agent-file")),
      configuration: new Set(schema("config")),
      coordinator: new Set(schema("coordinator")),
      policy: new Set(schema("runner-policy")),
      context: membersOf(speaking, "AgentContext"),
      runtime: new Set(runtimeMembers),
      profile: new Set([
        ...constants("packages/agents/src/files/profiles.ts", "PROFILE"),
        ...constants("packages/agents/src/files/profile-programs.ts", "CHOICE_FIELDS", "PROGRAM_FIELDS"),
      ]),
      script: new Set(constants("packages/agents/src/scripts/script-manifest.ts", "fields")),
      server: new Set(
        constants("packages/agents/src/format/mcp-servers.ts", "stdio", "http", "docker", "reference"),
      ),
    },
    functions: new Map([
      ...functionsIn(speaking),
      ...OTHER_NAMES.map((name) => [name, new Set<string>()] as const),
    ]),
    code: new Set([
      ...namesInCode(speaking),
      ...OTHER_NAMES,
      ...Object.keys(LIMITS),
      ...commands.flatMap(([name, command]) => [
        name,
        ...Object.keys({ ...command.actions, ...command.options }),
        ...Object.values(command.options).flatMap(({ value }) => alternatives(value ?? "")),
      ]),
    ]),
  };
}

function pagesOf(file: string): readonly string[] {
  if (!file.startsWith("docs/")) return [];
  const page = file.slice("docs/".length);
  const headings = file.endsWith(".md") ? [...read(file).matchAll(/^#+ (.+)$/gm)] : [];
  return [page, ...headings.map(([, heading]) => `${page}#${anchorOf(heading!)}`)];
}

/** Paths of REST that are keys of routes, or whole texts: `GET /children/{childId}`, `/healthz`. */
function pathsIn(source: Source): readonly string[] {
  return printedTexts(source).flatMap(({ text }) => {
    const path = /^(?:[A-Z]+ )?(\/[a-z][\w/{}.]*)$/.exec(text)?.[1];
    return path === undefined ? [] : [path];
  });
}

function sourceOf(file: string): Source {
  return tree.sources.find((source) => source.file === file)!;
}

function read(file: string): string {
  return readFileSync(new URL(`../${file}`, import.meta.url), "utf8");
}
