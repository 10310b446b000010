// Every command line in a document is one that its command takes, with JSON where it must be. A person who
// follows a document types it. The same goes for the containers of an example.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { isScalar, isSeq, parseAllDocuments, visit } from "yaml";
import { parseArguments, readWords } from "../packages/terminal/src/frame/arguments.ts";
import type { Arguments, Command } from "../packages/terminal/src/frame/command.ts";
import { argumentsOf, knownOptions } from "../packages/terminal/src/frame/help.ts";
import { readJson } from "../packages/terminal/src/frame/input.ts";
import { COMMANDS } from "../packages/holdfast/src/commands/index.ts";
import { LATER, printedTexts, speakingSources } from "./printed-texts.ts";
import { readTree } from "./tidy/tree.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const tree = readTree(root);
/** Decisions and the change log say how things were. */
const PAGES = tree.files.filter(
  (file) => file.endsWith(".md") && !/^docs\/decisions\/|^CHANGELOG\.md$/.test(file),
);
const read = (page: string): string => readFileSync(root + page, "utf8");

interface CommandLine {
  readonly page: string;
  /** The words after `holdfast`. */
  readonly words: readonly string[];
}

/** The lines of shells and of units in a page, without those that only show a usage (`[JSON]`). */
function linesOf(page: string, text: string): readonly CommandLine[] {
  const blocks = (language: string): readonly string[] =>
    [...text.matchAll(new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, "gs"))].map(([, block]) => block!);
  const units = blocks("ini").flatMap((unit) => unit.match(/^ExecStart=.*/gm) ?? []);
  return [...blocks("sh"), ...units]
    .flatMap(callsIn)
    .filter((words) => !words.some((word) => /^\[(?:--|[A-Z])/.test(word)))
    .map((words) => ({ page, words }));
}

/** The commands in backticks, which may leave out what a person completes. */
function mentionsOf(page: string, text: string): readonly CommandLine[] {
  return [...text.replaceAll(/^```.*?^```/gms, "").matchAll(/`((?:npx )?holdfast [a-z][^`]*)`/g)]
    .flatMap(([, command]) => callsIn(command!))
    .map((words) => ({ page, words }));
}

/** The words after `holdfast` in a line of a shell or of a unit, up to where the shell takes over again. */
function callsIn(text: string): string[][] {
  return [
    ...text.matchAll(
      /(?:^|\$\(|(?<!--cli )npx |\/\.bin\/|&& |^(?:[A-Z_]+=\S+ )+)holdfast (?=[a-z]+\b)((?:'[^']*'|"[^"]*"|[^'"\n#;&|<>)])*)/gm,
    ),
  ].map(([, call]) =>
    [...call!.matchAll(/'([^']*)'|"([^"]*)"|\S+/g)].map(([word, single, double]) => single ?? double ?? word),
  );
}

/** The words of the containers in YAML, which are `args` in Kubernetes and `command` in Compose. */
function containersOf(page: string, text: string): readonly CommandLine[] {
  const lines: CommandLine[] = [];
  for (const document of parseAllDocuments(text))
    visit(document, {
      Pair: (_, { key, value }) => {
        if (!isScalar(key) || !["args", "command"].includes(String(key.value)) || !isSeq(value)) return;
        const words = value.toJSON() as readonly string[];
        if (Object.hasOwn(COMMANDS, words[0] ?? "")) lines.push({ page, words });
      },
    });
  return lines;
}

/** Why the command would refuse the line. */
async function problemOf({ words: [name = "", ...rest] }: CommandLine): Promise<string | undefined> {
  const command = await COMMANDS[name]?.load();
  if (command === undefined) return "no command of this name";
  try {
    refuseWrongJson(command, parseArguments(rest, command));
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/** Why the command would refuse the JSON of a mention. */
async function wrongJson({ words: [name = "", ...rest] }: CommandLine): Promise<string | undefined> {
  try {
    const command = await COMMANDS[name]!.load();
    refuseWrongJson(command, readWords(rest, command));
    return undefined;
  } catch (error) {
    return (error as { readonly code?: string }).code === "not_json" ? (error as Error).message : undefined;
  }
}

/** @throws UsageError for what stands as JSON and is none. */
function refuseWrongJson(command: Command, { action, positionals, text }: Arguments): void {
  const taken = argumentsOf(command, action);
  const [last, at] = [taken.at(-1), taken.length - 1];
  const isJson = last?.name.startsWith("JSON") === true && positionals.length > 1;
  const payload = isJson ? (last.optional === true ? positionals[at] : positionals.at(-1)) : undefined;
  const options = Object.entries(knownOptions(command)).map(([option, { value = "" }]) =>
    value.startsWith("JSON") ? text(option) : undefined,
  );
  for (const given of [payload, ...options])
    if (given !== undefined && !/^@|^-$|^JSON$/.test(given))
      readJson(given, "what stands there", "a document");
}

async function refused(
  lines: readonly CommandLine[],
  why: (line: CommandLine) => Promise<string | undefined>,
): Promise<readonly string[]> {
  const problems = await Promise.all(lines.map(async (line) => [line, await why(line)] as const));
  return problems.flatMap(([{ page, words }, problem]) =>
    problem === undefined ? [] : [`${page}: holdfast ${words.join(" ")}: ${problem}`],
  );
}

test("every command line of a document is taken by its command, with JSON where it must be", async () => {
  const lines = PAGES.flatMap((page) => linesOf(page, read(page)));
  expect(lines.length).toBeGreaterThan(400);
  expect(await refused(lines, problemOf)).toEqual([]);
});

test("every container of an example has words that its command takes", async () => {
  const files = tree.files.filter((file) => /^examples\/.*\.ya?ml$/.test(file));
  const lines = files.flatMap((file) => containersOf(file, read(file)));
  expect(lines.length).toBeGreaterThan(4);
  expect(await refused(lines, problemOf)).toEqual([]);
  const [wrong] = containersOf("x.yaml", "args: [runner, --nam=x]");
  expect(await problemOf(wrong!)).toContain("there is no option --nam");
});

test("the JSON of a command in backticks is JSON, in documents and in the texts of sources", async () => {
  const printed = speakingSources(tree).flatMap(printedTexts);
  const mentions = [
    ...PAGES.flatMap((page) => mentionsOf(page, read(page))),
    ...printed
      .flatMap(({ at, text }) => mentionsOf(at, text))
      .filter(({ words }) => !words.join("").includes(LATER)),
  ];
  expect(mentions.length).toBeGreaterThan(300);
  expect(await refused(mentions, wrongJson)).toEqual([]);
});

test.each([
  ["holdfast lst", "no command of this name"],
  ["holdfast list --stat x", "there is no option --stat"],
  ['npx holdfast signal ID steer "a text"', "what stands there is not JSON"],
  ["holdfast answer ID yes", "what stands there is not JSON"],
  ["holdfast run a.ts --input '{'", "what stands there is not JSON"],
])("%s would be found", async (line, problem) => {
  const [found] = await refused(linesOf("x.md", `\`\`\`sh\n${line}\n\`\`\`\n`), problemOf);
  expect(found).toContain(problem);
  const [mentioned] = await refused(mentionsOf("x.md", `See \`${line}\`.`), wrongJson);
  expect(mentioned).toBe(problem.includes("JSON") ? found : undefined);
});
