// The actions that agent files, skills and scripts at a coordinator share: `history`, `rollback`, `tag`,
// `activate`, `deactivate`.

import { defined } from "@holdfast/core";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import type { Kind } from "./catalogue-calls.ts";

const ACTIONS = ["history", "rollback", "tag", "activate", "deactivate"] as const;
type CatalogueAction = (typeof ACTIONS)[number];

export function isCatalogueAction(action: string | undefined): action is CatalogueAction {
  return ACTIONS.some((one) => one === action);
}

export async function catalogueAction(
  kind: Kind,
  action: CatalogueAction,
  args: Arguments,
  io: Io,
): Promise<number> {
  const calls = await import("./catalogue-calls.ts");
  const [name = "", second, third] = args.positionals;
  switch (action) {
    case "history":
      return calls.showHistory(kind, name, args, io);
    case "rollback":
      return calls.rollBack(kind, name, second, args, io);
    case "tag":
      return calls.changeItem(kind, name, { tag: second ?? "", ...defined({ version: third }) }, args, io);
    case "activate":
    case "deactivate":
      return calls.changeItem(kind, name, { active: action === "activate" }, args, io);
  }
}
