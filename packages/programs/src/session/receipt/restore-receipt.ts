// `RestoreReceipt`: the record of all that must survive between two turns of an external agent, and its
// comparison (`compareReceipt`). Pure.
//
//   - A loss is something that the agent had and that is gone. Everything else that differs is a change, such
//     as an edit by a person. A loss stops the resume until a person decides. A change is told to the agent.
//   - The agent's session file only grows. Its recorded part must still be its beginning.
//   - After a turn that was cut off, the files of the workspace are not compared, because the agent was
//     changing them.

import { MIB } from "@holdfast/core";
import type { ExternalIntent } from "../external-agent-protocol.ts";

export interface RestoreReceipt {
  readonly version: 1;
  /** The agent's own session file; `null` where the adapter does not know it, or where there was none. */
  readonly sessionFile: SessionFile | null;
  /** `null` outside of git, and after a turn that was cut off. */
  readonly workspace: Workspace | null;
  /** `none` without one. */
  readonly sandbox: string;
  readonly permissionMode: string;
  readonly model: string | null;
  readonly program: ProgramFile | null;
  /** The hashes of the files that name its MCP servers, by path. */
  readonly mcpFiles: Readonly<Record<string, string>>;
  /** The variables that the program got for itself. The value is a digest for settings and `set` for keys. */
  readonly environment: Readonly<Record<string, string>>;
}

export interface SessionFile {
  readonly path: string;
  readonly bytes: number;
  readonly sha256: string;
  /** Whether a copy of it is kept. */
  readonly isMirrored: boolean;
}

export interface Workspace {
  /** `null` in a repository without a commit. */
  readonly commit: string | null;
  /** Digests of the files that differ from the commit, by path. */
  readonly uncommitted: Readonly<Record<string, string>>;
}

/** The file of the program, which tells a new version without a start of the program. */
export interface ProgramFile {
  readonly version: string;
  readonly stamp: string;
}

/** The state at the time of a resume. */
export interface FoundState extends Omit<RestoreReceipt, "version" | "sessionFile"> {
  readonly isFolderThere: boolean;
  /** The beginning of the session file, as long as the recorded one; `null` for a file that is missing. */
  readonly sessionFile: Pick<SessionFile, "bytes" | "sha256"> | null;
  /** Whether the repository still has the recorded commit. */
  readonly hasCommit: boolean;
}

export interface Difference {
  readonly part:
    | "folder"
    | "session_file"
    | "workspace"
    | "sandbox"
    | "permission_mode"
    | "model"
    | "program"
    | "mcp_servers"
    | "environment";
  readonly isLoss: boolean;
  readonly text: string;
}

/** Larger session files are hashed and not copied. */
export const MIRROR_BYTES_MAX = 32 * MIB;
/** Names in one difference. */
const NAMES_MAX = 10;

export function compareReceipt(receipt: RestoreReceipt, found: FoundState): readonly Difference[] {
  return [
    ...(found.isFolderThere ? [] : [loss("folder", "the folder of the session is gone")]),
    ...compareSessionFile(receipt.sessionFile, found.sessionFile),
    ...(found.isFolderThere ? compareWorkspace(receipt.workspace, found) : []),
    ...compareText("sandbox", "the sandbox", receipt.sandbox, found.sandbox),
    ...compareText("permission_mode", "the permission mode", receipt.permissionMode, found.permissionMode),
    ...compareText("model", "the model", receipt.model ?? "unnamed", found.model ?? "unnamed"),
    ...compareProgram(receipt.program, found.program),
    ...compareNamed("mcp_servers", "the file with MCP servers", receipt.mcpFiles, found.mcpFiles),
    ...compareNamed("environment", "the variable", receipt.environment, found.environment),
  ];
}

export function afterCutOff(receipt: RestoreReceipt | null): RestoreReceipt | null {
  return receipt === null ? null : { ...receipt, workspace: null };
}

function compareSessionFile(
  recorded: SessionFile | null,
  found: FoundState["sessionFile"],
): readonly Difference[] {
  if (recorded === null) return [];
  const { bytes, sha256 } = recorded;
  const size = `it was too large for a copy, with ${bytes} bytes of at most ${MIRROR_BYTES_MAX}`;
  const path = isTooLarge(recorded) ? `${recorded.path} (${size})` : recorded.path;
  if (found === null) return [loss("session_file", `the agent's own session file is gone: ${path}`)];
  if (found.bytes < bytes)
    return [
      loss("session_file", `the agent's own session file has ${found.bytes} of its ${bytes} bytes: ${path}`),
    ];
  return found.sha256 === sha256
    ? []
    : [loss("session_file", `the agent's own session file has another content: ${path}`)];
}

function isTooLarge({ bytes, isMirrored }: SessionFile): boolean {
  return !isMirrored && bytes > MIRROR_BYTES_MAX;
}

function compareWorkspace(recorded: Workspace | null, found: FoundState): readonly Difference[] {
  if (recorded === null) return [];
  const { workspace, hasCommit } = found;
  if (workspace === null) return [loss("workspace", "the folder is in no git repository any more")];
  const { commit, uncommitted } = recorded;
  if (commit !== null && !hasCommit)
    return [loss("workspace", `the repository does not have the commit ${commit} any more`)];
  const isMoved = commit !== workspace.commit;
  const gone = Object.keys(uncommitted).filter((path) => workspace.uncommitted[path] === undefined);
  const edited = Object.entries(workspace.uncommitted)
    .filter(([path, digest]) => uncommitted[path] !== digest)
    .map(([path]) => path);
  return [
    ...(isMoved
      ? [change("workspace", `HEAD was ${commit ?? "unborn"} and is ${workspace.commit ?? "unborn"}`)]
      : []),
    // Another commit may hold what was not committed.
    ...(gone.length === 0
      ? []
      : [
          isMoved
            ? change("workspace", `no uncommitted changes any more: ${names(gone)}`)
            : loss("workspace", `changes that were not committed are gone: ${names(gone)}`),
        ]),
    ...(edited.length === 0 ? [] : [change("workspace", `files were changed: ${names(edited)}`)]),
  ];
}

function compareText(
  part: Difference["part"],
  title: string,
  recorded: string,
  found: string,
): readonly Difference[] {
  return recorded === found ? [] : [loss(part, `${title} was ${recorded} and is ${found}`)];
}

function compareProgram(recorded: ProgramFile | null, found: ProgramFile | null): readonly Difference[] {
  if (recorded === null) return [];
  if (found === null) return [loss("program", "the program is gone")];
  if (recorded.version === found.version) return [];
  return [change("program", `the program was version ${recorded.version} and is ${found.version}`)];
}

function compareNamed(
  part: Difference["part"],
  title: string,
  recorded: Readonly<Record<string, string>>,
  found: Readonly<Record<string, string>>,
): readonly Difference[] {
  return Object.entries(recorded).flatMap(([name, digest]) => {
    if (found[name] === undefined) return [loss(part, `${title} ${name} is gone`)];
    return found[name] === digest ? [] : [change(part, `${title} ${name} was changed`)];
  });
}

/** The text with which the agent is told of losses or changes. */
export function differencesText(differences: readonly Pick<Difference, "text">[]): string {
  return differences.map(({ text }) => `- ${text}`).join("\n");
}

/** The parts of a receipt that the intent decides. They are given to the program again with each turn. */
export function intendedParts({
  permissionMode,
  model,
  sandbox,
}: ExternalIntent): Pick<RestoreReceipt, "sandbox" | "permissionMode" | "model"> {
  return { sandbox: sandbox ?? "none", permissionMode, model };
}

function loss(part: Difference["part"], text: string): Difference {
  return { part, isLoss: true, text };
}

function change(part: Difference["part"], text: string): Difference {
  return { part, isLoss: false, text };
}

function names(all: readonly string[]): string {
  const more = all.length - NAMES_MAX;
  return `${all.slice(0, NAMES_MAX).join(", ")}${more > 0 ? `, and ${more} more` : ""}`;
}
