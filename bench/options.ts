// The options of the bench on its command line, or the reason why they are invalid.

import { parseArgs } from "node:util";
import { UsageError } from "@holdfast/core";
import { STORAGE_KINDS, type StorageKind } from "./storages.ts";
import type { Workload } from "./workload.ts";

export interface Options {
  readonly workloads: readonly Workload[];
  readonly storages: readonly StorageKind[];
  readonly isJson: boolean;
  readonly isQuick: boolean;
  readonly repeats: number;
  readonly folder: string | undefined;
  readonly isHelp: boolean;
}

export const USAGE = `npm run bench -- [workload ...] [options]

  --storage memory|sqlite|postgres   one storage; all by default
  --json                    one JSON line per variant, the main one of a workload last
  --repeats N               how often each is run beside its floor; 5 by default
  --folder PATH             where databases are made; beside the checkout's packages by default
  --quick                   everything once, small: a smoke test, its figures mean nothing

Example: npm run bench -- W3 --storage sqlite --json
`;

const REPEATS = 5;

/** @throws UsageError that says what is wrong, what would be right, and shows it. */
export function readOptions(args: readonly string[], workloads: readonly Workload[]): Options {
  const { values, positionals } = parse(args);
  const chosen = positionals.map((name) => findWorkload(name, workloads));
  const storages = values.storage === undefined ? STORAGE_KINDS : [readStorage(values.storage)];
  for (const workload of chosen) refuseIfImpossible(workload, storages);
  return {
    workloads: chosen.length === 0 ? workloads : chosen,
    storages,
    isJson: values.json,
    isQuick: values.quick,
    repeats: values.quick ? 1 : readRepeats(values.repeats),
    folder: values.folder,
    isHelp: values.help,
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        storage: { type: "string" },
        json: { type: "boolean", default: false },
        quick: { type: "boolean", default: false },
        repeats: { type: "string" },
        folder: { type: "string" },
        help: { type: "boolean", short: "h", default: false },
      },
    });
  } catch (thrown) {
    // Node's own first sentence says which option; the rest is advice about quoting.
    const message = thrown instanceof Error ? (thrown.message.split(". ")[0] ?? "") : String(thrown);
    throw new UsageError(message, { fix: "npm run bench -- --help shows the options" });
  }
}

function findWorkload(name: string, workloads: readonly Workload[]): Workload {
  const workload = workloads.find(({ id }) => id.toLowerCase() === name.toLowerCase());
  if (workload !== undefined) return workload;
  throw new UsageError(`there is no workload "${name}"`, {
    expected: workloads.map(({ id, title }) => `${id} (${title})`).join(", "),
    fix: "npm run bench -- W3",
  });
}

function readStorage(name: string): StorageKind {
  const kind = STORAGE_KINDS.find((known) => known === name);
  if (kind !== undefined) return kind;
  throw new UsageError(`there is no storage "${name}"`, {
    expected: STORAGE_KINDS.join(", "),
    fix: "npm run bench -- W3 --storage sqlite",
  });
}

function readRepeats(text: string | undefined): number {
  if (text === undefined) return REPEATS;
  const repeats = Number(text);
  if (Number.isSafeInteger(repeats) && repeats >= 1 && repeats <= 100) return repeats;
  throw new UsageError(`"${text}" is not a number of repeats`, {
    expected: "a whole number from 1 to 100",
    fix: "--repeats 5",
  });
}

function refuseIfImpossible(workload: Workload, storages: readonly StorageKind[]): void {
  const reasons = storages.map((storage) => workload.refuses?.(storage));
  if (reasons.some((reason) => reason === undefined)) return;
  throw new UsageError(`${workload.id} cannot be measured with ${storages.join(" or ")}: ${reasons[0]}`, {
    fix: `npm run bench -- ${workload.id} --storage sqlite`,
  });
}
