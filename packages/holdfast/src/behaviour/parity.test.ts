// One scenario in every mode and sandbox. The model must see the same, the person must see the same, and the
// folder must end the same. The table of differences must be empty.
//
//   - An MCP server that is a program runs outside of every sandbox. It is refused with all sandboxes but
//     `filesystem`, so the scenario has a server over HTTP (docs/sandboxes.md).
//
// It takes minutes, so only the campaign `parity` plays it.

import { ownSandboxes } from "@holdfast/workspace";
import { afterEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { MODES, type Mode } from "../testing/parity-modes.ts";
import { openScenario, OUTPUT, type Seen } from "../testing/parity-scenario.ts";

let open: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of open.toReversed()) await close();
  open = [];
});

async function sandboxes(): Promise<readonly string[]> {
  const checks = ownSandboxes({ keys: async () => undefined }).map(async ({ name, check }) => ({
    name,
    ...(await check()),
  }));
  return (await Promise.all(checks)).filter(({ status }) => status === "ready").map(({ name }) => name);
}

interface Cell {
  readonly mode: Mode;
  readonly sandbox: string;
}

async function cells(): Promise<readonly [Cell, ...Cell[]]> {
  const [memory, ...others] = MODES;
  const all = await sandboxes();
  const of = (mode: Mode): Cell[] => all.map((sandbox) => ({ mode, sandbox }));
  return [{ mode: memory, sandbox: "filesystem" }, ...of(memory).slice(1), ...others.flatMap(of)];
}

async function play({ mode, sandbox }: Cell): Promise<Column> {
  const startedAt = performance.now();
  const scenario = await openScenario(sandbox, (close) => void open.push(close));
  const seen = scenario.seen(await mode.play(scenario));
  const name = `${mode.name}, ${sandbox}`;
  console.log(`${name}: ${Math.round((performance.now() - startedAt) / 1_000)} s`);
  return { name, seen };
}

interface Column {
  readonly name: string;
  readonly seen: Seen;
}

/** The rows in which a column differs from the first one. */
function differences([base, ...others]: readonly [Column, ...Column[]]): readonly string[] {
  return others.flatMap(({ name, seen }) =>
    [...new Set([...Object.keys(base.seen), ...Object.keys(seen)])]
      .filter((row) => seen[row] !== base.seen[row])
      .map((row) => `${row} | ${base.name}: ${base.seen[row]} | ${name}: ${seen[row]}`),
  );
}

test(
  "every mode and sandbox shows the model and the person the same",
  { ...ofCampaign, timeout: 1_800_000 },
  async () => {
    const [first, ...pairs] = await cells();
    const columns: [Column, ...Column[]] = [await play(first)];
    expect(columns[0].seen).toMatchObject({
      environment: expect.stringContaining("region north"),
      script: expect.stringMatching(/4[^]*It is marked\./),
      child: expect.stringContaining("helped"),
      hook: expect.stringContaining("It is secret."),
      shell: expect.stringContaining("exit code 3"),
      asked: "Allow write_file: result.txt?",
      output: OUTPUT,
      file: "four\n",
      "calls of the MCP server": "tools/call greet",
    });
    for (const pair of pairs) columns.push(await play(pair));
    const table = differences(columns);
    console.log(`${columns.length} columns, ${table.length} differences\n${table.join("\n")}`);
    expect(table).toEqual([]);
  },
);
