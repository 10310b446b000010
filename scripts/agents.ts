// `npm run agents`: the real programs of external agents against the scripted model server. Writes
// docs/agents.md.
//
//   -- [--programs FOLDER] [NAME…]    the place of the programs, a new folder by default, and the agents whose columns are written, all by default
//
// It needs the npm registry, some gigabytes and some minutes, and no account. It is no part of `npm test`:
// `npm test` runs the same adapters against programs that only speak the protocols.

import { existsSync, mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { toError } from "@holdfast/core";
import { BEHAVIOURS, type Observed } from "./agents/behaviours.ts";
import { installAgent } from "./agents/install-agent.ts";
import { REAL_AGENTS, type RealAgent } from "./agents/real-agents.ts";
import { RealSubject } from "./agents/real-subject.ts";
import { readArguments, refuse } from "./arguments.ts";

const { values, positionals } = readArguments(import.meta.filename, { programs: { type: "string" } }, true);
const names = new Set<string>(positionals);
const unknown = positionals.find((name) => !REAL_AGENTS.some((agent) => agent.name === name));
if (unknown !== undefined)
  refuse(`there is no agent "${unknown}"`, `name one of ${REAL_AGENTS.map(({ name }) => name).join(", ")}`);

/** Not below /tmp, where Codex refuses to install its helpers. */
const place = mkdtempSync("/var/tmp/holdfast-agents-");
const programs = values.programs === undefined ? join(place, "programs") : resolve(values.programs);
const document = fileURLToPath(new URL("../docs/agents.md", import.meta.url));

/** In the document: what stands before it was written by a person. */
const MARK = "<!-- The rest is written by `npm run agents`. -->";

interface Column {
  readonly name: string;
  readonly version: string;
  readonly cells: readonly Observed[];
}

/**
 * The sandbox of Codex makes these empty folders, and a killed one leaves them. Its bridge does so although
 * its settings say otherwise.
 */
const LEFT = [".git", ".agents", ".codex", ".aws"]
  .map((name) => join("/tmp", name))
  .filter((path) => !existsSync(path));

const wanted = REAL_AGENTS.filter(({ name }) => positionals.length === 0 || names.has(name));
let columns: readonly Column[];
try {
  columns = await Promise.all(wanted.map((agent) => observe(agent)));
} finally {
  rmSync(place, { recursive: true, force: true });
  for (const path of LEFT.filter((one) => existsSync(one))) rmdirSync(path);
}
writeFileSync(document, page(columns));

async function observe(agent: RealAgent): Promise<Column> {
  const { name } = agent;
  const bin = join(programs, name, "node_modules/.bin");
  const problem = installAgent(agent, programs);
  if (problem !== undefined) {
    console.log(`${name}: ${problem}`);
    return { name, version: agent.version, cells: BEHAVIOURS.map(() => problem) };
  }
  const cells: Observed[] = [];
  const home = mkdtempSync(join(place, `${name}-`)); // Some programs fill theirs when they start first.
  let version = agent.version;
  for (const { text, observed } of BEHAVIOURS) {
    const cell = await RealSubject.make(agent, bin, home)
      .then(async (subject) => {
        if (subject.version !== "unknown") version = subject.version;
        try {
          return await observed(subject);
        } finally {
          await subject.dispose();
        }
      })
      .catch((error: unknown) => `no: ${toError(error).message}`);
    cells.push(cell);
    console.log(`${name} ${version}: ${text}: ${cell}`);
  }
  return { name, version, cells };
}

/** The document with these columns, and with those of other agents that it has. */
function page(seen: readonly Column[]): string {
  const [introduction = "", table = ""] = readFileSync(document, "utf8").split(MARK);
  const kept = readColumns(table).filter(({ name }) => !seen.some((one) => one.name === name));
  const order = REAL_AGENTS.map(({ name }) => name);
  const all = [...kept, ...seen].toSorted((a, b) => order.indexOf(a.name) - order.indexOf(b.name));
  const row = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  const rows = [
    row(["behaviour", ...all.map(({ name, version }) => `${name} ${version}`)]),
    row(["---", ...all.map(() => "---")]),
    ...BEHAVIOURS.map(({ text }, at) => row([text, ...all.map(({ cells }) => inCell(cells[at] ?? ""))])),
  ];
  return `${introduction}${MARK}\n\n${rows.join("\n")}\n`;
}

function readColumns(table: string): readonly Column[] {
  const [header = [], , ...rows] = table
    .trim()
    .split("\n")
    .map((line) => line.split(" | ").map((cell) => cell.replace(/^\| | \|$/g, "")));
  return header.slice(1).map((title, at) => {
    const [name = "", version = ""] = title.split(" ");
    const cellOf = (text: string): string => rows.find(([first]) => first === text)?.[at + 1] ?? "not run";
    return { name, version, cells: BEHAVIOURS.map(({ text }) => cellOf(text)) };
  });
}

function inCell(text: string): string {
  return text.replaceAll("|", "/").replaceAll(/\s+/g, " ").slice(0, 200);
}
