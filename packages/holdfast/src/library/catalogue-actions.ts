// The actions that agent files, skills and scripts at a coordinator share: `history`, `rollback`, `tag`,
// `activate`, `deactivate`.

import { defined } from "@holdfast/core";
import { refuse, takeOnly } from "@holdfast/terminal/frame/arguments";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import type { Kind } from "./catalogue-calls.ts";

const ACTIONS = ["history", "rollback", "tag", "activate", "deactivate"] as const;
type CatalogueAction = (typeof ACTIONS)[number];

export function isCatalogueAction(action: string | undefined): action is CatalogueAction {
  return ACTIONS.some((one) => one === action);
}

export async function catalogueAction(
  [kind, usage]: readonly [kind: Kind, usage: string],
  action: CatalogueAction,
  rest: readonly string[],
  args: Arguments,
  io: Io,
): Promise<number> {
  const calls = await import("./catalogue-calls.ts");
  switch (action) {
    case "history":
      return calls.showHistory(kind, takeOnly(rest, "the name", usage), args, io);
    case "rollback": {
      const [name, version] = takeUpTo(rest, 1, 2, usage);
      return calls.rollBack(kind, name, version, args, io);
    }
    case "tag": {
      const [name, tag = "", version] = takeUpTo(rest, 2, 3, usage);
      const change = { tag, ...defined({ version }) };
      return calls.changeItem(kind, name, change, args, io);
    }
    case "activate":
    case "deactivate": {
      const name = takeOnly(rest, "the name", usage);
      return calls.changeItem(kind, name, { active: action === "activate" }, args, io);
    }
  }
}

/** @throws UsageError for fewer or more arguments. */
export function takeUpTo(
  rest: readonly string[],
  least: number,
  most: number,
  usage: string,
): readonly [name: string, ...others: (string | undefined)[]] {
  const [name, ...others] = rest;
  if (name === undefined || rest.length < least) throw refuse("an argument is missing", usage);
  if (rest.length > most) throw refuse(`"${rest[most]}" is one argument too many`, usage);
  return [name, ...others];
}
