// `instructionsCapability`: the `AGENTS.md` files of a trusted project, as a part of the system prompt of a
// session.
//
//   - A session keeps the text of its start. The files of a project that the user does not trust are not
//     read.
//   - Files in folders below the workspace are named and not read. The model reads the one of a folder before
//     it works there, and that one goes before those above it.

import { existsSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";

import { layersOf, realPath, type AgentPlaces } from "../places/agent-places.ts";
import {
  findNestedInstructions,
  INSTRUCTIONS_FILE,
  readInstructions,
  type Instructions,
} from "./instructions.ts";
import { isTrusted } from "../trust/trusted-folders.ts";
import type { Capability } from "../model-loop/capability.ts";

/** The facts that a session keeps. The paths begin at the workspace. */
// oxlint-disable-next-line typescript/consistent-type-definitions -- an interface is no JSON value.
type InstructionFacts = { readonly text: string; readonly nested: readonly string[] };

/** The instructions of a project for a workspace, with the reason for each file that is not used. */
export interface ProjectInstructions extends Instructions {
  /** Files in folders below the workspace, by their paths from it. */
  readonly nested: readonly string[];
}

/**
 * The `AGENTS.md` files for work in a folder.
 *
 * @param worktree the folder that stands for the project, for work in a worktree of it. The trust is that of
 *   the project.
 * @throws HoldfastError `config_invalid` when the file of trusted folders cannot be used.
 */
export function readProjectInstructions(
  places: AgentPlaces,
  folder: string,
  worktree?: string,
): ProjectInstructions {
  const top = places.layers?.at(-1) ?? places.project;
  const [root, at] = [realPath(worktree ?? top), realPath(folder)];
  if (at !== root && !at.startsWith(`${root}${sep}`)) return { text: "", files: [], leftOut: [], nested: [] };
  const isRead = (path: string): boolean => hasTrust(join(top, relative(root, dirname(path))), places);
  const found = readInstructions(at, root, isRead);
  const isWorkRead = isRead(join(at, INSTRUCTIONS_FILE));
  return { ...found, nested: isWorkRead ? findNestedInstructions(at) : [] };
}

/**
 * Whether the instructions of a folder count: the user trusts its layer, or one above it. A folder with
 * `.holdfast` needs trust of its own.
 */
function hasTrust(folder: string, places: AgentPlaces): boolean {
  if (places.trustsProject === true) return true;
  const ahead = layersOf(places).map(({ project }) => project);
  const above = ahead.filter((layer) => folder === layer || folder.startsWith(`${layer}${sep}`));
  const own = above.findIndex((layer) => existsSync(join(layer, ".holdfast")));
  const counted = own < 0 ? above : above.slice(0, own + 1);
  return counted.some((layer) => isTrusted(places.trustFile, layer));
}

/** @param places where the project of a session is, and whether the user trusts it. */
export function instructionsCapability(places: AgentPlaces): Capability<InstructionFacts> {
  return {
    name: "instructions",
    prepare: async ({ workspace }) => {
      const { text, nested } = readProjectInstructions(places, workspace.root, workspace.worktree);
      return text === "" && nested.length === 0 ? null : { text, nested };
    },
    offer: (facts) => ({ instructions: promptPart(facts) }),
  };
}

function promptPart({ text, nested }: InstructionFacts): string {
  const below =
    nested.length === 0
      ? []
      : [
          `These folders have instructions of their own. Before you work in one of them, read its ${INSTRUCTIONS_FILE}; it goes before the ` +
            `instructions of the folders above it.\n${nested.map((path) => `- ${path}`).join("\n")}`,
        ];
  return [...(text === "" ? [] : [text]), ...below].join("\n\n");
}
