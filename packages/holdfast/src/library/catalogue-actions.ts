// The actions that agent files, skills and scripts at a coordinator share: `history`, `rollback`, `tag`,
// `activate`, `deactivate`.

import { defined } from "@holdfast/core";
import { NAME_ARGUMENT, type Action, type Arguments, type Io } from "@holdfast/terminal/frame/command";
import type { Kind } from "@holdfast/place/calls/catalogue-calls";

type CatalogueAction = "history" | "rollback" | "tag" | "activate" | "deactivate";

const ACTIONS: Readonly<Record<CatalogueAction, Action>> = {
  history: { does: "its versions", takes: [NAME_ARGUMENT] },
  rollback: {
    does: "use an earlier version",
    takes: [NAME_ARGUMENT, { name: "VERSION|TAG", is: "the version", optional: true }],
  },
  tag: {
    does: "give a version a tag",
    takes: [
      NAME_ARGUMENT,
      { name: "TAG", is: "the tag" },
      { name: "VERSION", is: "the version", optional: true },
    ],
  },
  activate: { does: "let it be used", takes: [NAME_ARGUMENT] },
  deactivate: { does: "let it be used no longer", takes: [NAME_ARGUMENT] },
};

/**
 * The actions of a command.
 *
 * @param here those that mean this machine unless `--catalogue` is given. The others mean the coordinator.
 */
export function catalogueActions(here: readonly string[]): Readonly<Record<string, Action>> {
  const entries = Object.entries(ACTIONS).map(([name, action]) => [
    name,
    here.includes(name)
      ? { ...action, options: ["catalogue"] }
      : { ...action, does: `${action.does} at the coordinator` },
  ]);
  return Object.fromEntries(entries);
}

export function isCatalogueAction(action: string | undefined): action is CatalogueAction {
  return action !== undefined && Object.hasOwn(ACTIONS, action);
}

export async function catalogueAction(
  kind: Kind,
  action: CatalogueAction,
  args: Arguments,
  io: Io,
): Promise<number> {
  const calls = await import("@holdfast/place/calls/catalogue-calls");
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
