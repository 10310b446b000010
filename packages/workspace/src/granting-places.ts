// `GRANTING_PLACES`: the places of a project whose files give rights, such as a hook, a server to start, or a
// rule that allows a call.
//
//   - The readers of such files take their paths from the table in `project-inputs.ts`, whose rows have the
//     type `ProtectedPath`. File tools and sandboxes keep agents from all places here, so a new format cannot
//     be forgotten. Places that only instruct are not here.
//   - A place is a path from the folder of the project. A place counts below any folder, because that folder
//     may be a project, too.
//   granting-places-3. `*` stands for one name. Names are compared without case, as macOS and Windows do.

/** Folders with the approved files that Holdfast writes into a workspace. */
export const WRITTEN_FOLDERS = [
  ".agent-orchestrator/bin",
  ".agent-orchestrator/scripts",
  ".agent-orchestrator/skills",
] as const;

/** Folders that hold nothing but approved files, or the configuration of agents or editors. */
export const GRANTING_FOLDERS = [
  ".claude",
  ".opencode",
  ".codex",
  ".gemini",
  ".agents",
  ".github/agents",
  ".vscode",
  ...WRITTEN_FOLDERS,
] as const;

/** Files among those of the user. Folders with such names may hold other things as well. */
export const GRANTING_FILES = [
  ".mcp.json",
  "opencode.json",
  "opencode.jsonc",
  "agents/*/agent.json",
  "agents/*/agent.mcp.json",
  "capabilities/*/capability.json",
  "capabilities/*/capability.mcp.json",
  "mcp-servers/*/mcp-server.json",
] as const;

export const GRANTING_PLACES: readonly string[] = [...GRANTING_FOLDERS, ...GRANTING_FILES];

/** The places that agents may read and not change. Git runs what it finds in `.git`. */
export const PROTECTED_PLACES: readonly string[] = [".git", ...GRANTING_PLACES];

type Folder = (typeof GRANTING_FOLDERS)[number];
type File = (typeof GRANTING_FILES)[number];
/** A path that agents cannot write. Holdfast's own folder is out of their reach anyway. */
export type ProtectedPath =
  | ".holdfast"
  | `.holdfast/${string}`
  | Folder
  | `${Folder}/${string}`
  | File
  /** The folders of folder agents. */
  | (File extends infer Path ? (Path extends `${infer Outer}/*/${string}` ? Outer : never) : never);

/** The place that a path is, or lies below. @param names the names of the path. */
export function placeIn(names: readonly string[], places: readonly string[]): string | undefined {
  const lower = names.map((name) => name.toLowerCase());
  return places.find((place) => {
    const steps = place.toLowerCase().split("/");
    return lower.some((_, at) => steps.every((step, i) => isStep(step, lower[at + i])));
  });
}

function isStep(step: string, name: string | undefined): boolean {
  return name !== undefined && (step === "*" || step === name);
}
