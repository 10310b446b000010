// `withAgentTable`: the table of the included programs in docs/external-agents.md, which is made of what their
// adapters say. `npm run api-report` writes it, and `recipes.test.ts` compares it.

import { includedFacts, knownAgent } from "@holdfast/programs";
import {
  hasOwnAdapter,
  INCLUDED_NAMES,
  permissionModesOf,
  type IncludedName,
} from "@holdfast/programs/included-programs";

export const AGENT_PAGE = "docs/external-agents.md";

const HEAD =
  "| agent | `npm install -g` | protocol | after a crash | a message while it works (`steer`) | usage and cost | `model` | `permissionMode` | folders of its own |";
const STEER = {
  inject: "joins the turn",
  restart: "joins the turn where the program takes it, or else interrupts the turn, which resumes with it",
  none: "is the next prompt",
};
const USAGE = { message: "per message", turn: "per turn, without a price", none: "unknown" };

/** The page with the table as it is now. @param names those of the rows. */
export function withAgentTable(page: string, names: readonly IncludedName[] = INCLUDED_NAMES): string {
  const [before, after] = page.split(HEAD);
  if (after === undefined) throw new Error(`${AGENT_PAGE} has no table that begins with: ${HEAD}`);
  const rows = [HEAD, HEAD.replaceAll(/[^|]+/g, "---"), ...names.map(rowOf)];
  return `${before}${rows.join("\n")}${after.slice(after.indexOf("\n\n"))}`;
}

function rowOf(name: IncludedName): string {
  const adapter = knownAgent(name, { folder: "/", environment: { HOME: "~" } })!;
  const { resume, steer, usage, model } = adapter.capabilities();
  const cells = [
    code(name),
    code(includedFacts(name).program.install.replace("npm install -g ", "")),
    hasOwnAdapter(name) ? "its own" : "ACP",
    resume === "id" ? "continues" : "you are asked, once a tool was called",
    STEER[steer],
    USAGE[usage],
    model ? "yes" : "its own settings choose",
    permissionModesOf(name).map(code).join(", "),
    adapter.ownFolders?.()?.written.map(code).join(", ") ?? "not known",
  ];
  return `| ${cells.join(" | ")} |`;
}

const code = (text: string): string => `\`${text}\``;
