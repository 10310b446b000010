// Takes the restore receipt of an external agent's session (`takeReceipt`), and checks it before a resume
// (`checkReceipt`). The comparison is in `restore-receipt.ts`.
//
//   - A copy of the agent's session file is kept for this user alone, up to a size. It is put back where the
//     file is missing, and never over a file that is there.
//   - A file that cannot be read is recorded as absent, and fails no turn.
//   read-receipt-3. A path counts only below the folder of the program's sessions, and with the ending of
//       this session, whatever a receipt names. No link leads a copy out of that folder. The name of a copy
//       is that of no other file.
//   - A damaged session file is replaced by its copy only where a person has chosen that. The damaged one
//     stays beside it.

import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { readdir, readFile, realpath, rename, rm, stat } from "node:fs/promises";
import { dirname, isAbsolute, join, relative, sep } from "node:path";
import { DAY_MS } from "@holdfast/core";
import { createPrivate, makePrivateFolder } from "@holdfast/system";

import { gitIn } from "@holdfast/workspace";
import type { AgentTraces, ExternalAgentProtocol, ExternalIntent } from "../external-agent-protocol.ts";
import { OWN_ID } from "../raw/raw-lines.ts";
import { KEPT_FILE } from "../intent/session-profile.ts";
import {
  compareReceipt,
  differencesText,
  intendedParts,
  type Difference,
  type FoundState,
  type ProgramFile,
  type RestoreReceipt,
  type SessionFile,
} from "./restore-receipt.ts";
import type { Workspaces } from "./read-workspace.ts";
import { factsOf, hashOf, type SessionFiles } from "./session-files.ts";

const MIRROR_DAYS = 180;
/** Codex sorts its sessions by year, month and day. */
const DEPTH_MAX = 4;

export interface ReceiptPlace {
  readonly protocol: ExternalAgentProtocol;
  /** The folder of the copies; `undefined` for no copies. */
  readonly mirrors: string | undefined;
  /** The files that this process has read before. */
  readonly workspaces: Workspaces;
  readonly sessionFiles: SessionFiles;
}

export interface TracedSession {
  readonly intent: ExternalIntent;
  readonly boundId: string | null;
}

export async function takeReceipt(
  { protocol, mirrors, workspaces, sessionFiles }: ReceiptPlace,
  session: TracedSession,
  last: RestoreReceipt | null,
): Promise<RestoreReceipt> {
  const { intent } = session;
  const traces = protocol.traces?.(session);
  const path = traces && (await findSessionFile(traces, last?.sessionFile?.path));
  if (last === null && mirrors !== undefined) await prune(mirrors);
  const [sessionFile, workspace, program] = await Promise.all([
    path === undefined ? null : sessionFiles.keep(path, mirrorOf(mirrors, intent)),
    workspaces.read(intent.folder, true),
    readProgram(protocol, intent, last?.program ?? null),
  ]);
  const parts = { ...intendedParts(intent), ...(await readNamed(traces)) };
  return { version: 1, sessionFile, workspace, program, ...parts };
}

export interface CheckedReceipt {
  readonly differences: readonly Difference[];
  /** The session file that was put back. */
  readonly putBack: string | undefined;
  /** The session file is damaged, and its copy is whole. */
  readonly isRestorable: boolean;
}

export async function checkReceipt(
  { protocol, mirrors, workspaces, sessionFiles }: ReceiptPlace,
  session: TracedSession,
  receipt: RestoreReceipt,
  restores = false,
): Promise<CheckedReceipt> {
  const { intent } = session;
  const traces = protocol.traces?.(session);
  const { sessionFile } = receipt;
  const mirror = mirrorOf(mirrors, intent);
  if (restores && traces && sessionFile && mirror) await setAside(traces, sessionFile, mirror);
  const putBack =
    traces && sessionFile && mirror ? await restoreFile(traces, sessionFile, mirror) : undefined;
  const path = traces && (await findSessionFile(traces, sessionFile?.path));
  const workspace = receipt.workspace === null ? null : await workspaces.read(intent.folder);
  const commit = receipt.workspace?.commit ?? null;
  const found: FoundState = {
    ...intendedParts(intent),
    isFolderThere: existsSync(intent.folder),
    sessionFile:
      path === undefined || sessionFile === null ? null : await sessionFiles.hashOf(path, sessionFile.bytes),
    workspace,
    hasCommit: commit === null || commit === workspace?.commit || (await hasCommit(intent.folder, commit)),
    program: await readProgram(protocol, intent, receipt.program),
    ...(await readNamed(traces)),
  };
  const differences = compareReceipt(receipt, found);
  const isDamaged = found.sessionFile !== null && differences.some(({ part }) => part === "session_file");
  const isRestorable =
    isDamaged &&
    sessionFile !== null &&
    mirror !== undefined &&
    (await copyOf(sessionFile, mirror)) !== undefined;
  return { differences, putBack, isRestorable };
}

interface UncheckedTurn extends TracedSession {
  readonly prompt: string;
  /** Absent where nothing is checked. */
  readonly receipt?: RestoreReceipt;
  readonly restores?: boolean;
}

/** The prompt of a turn, or the losses for which it does not begin. */
export interface CheckedTurn {
  readonly prompt: string;
  readonly notice?: string;
  readonly losses?: readonly string[];
  readonly isRestorable?: boolean;
}

/**
 * Compares the state with the receipt (turn-task-7). Changes are told to the agent, before the request, which
 * stays at the end of the prompt.
 */
export async function checkBeforeTurn(
  place: ReceiptPlace,
  { intent, boundId, prompt, receipt, restores }: UncheckedTurn,
): Promise<CheckedTurn> {
  if (receipt === undefined) return { prompt };
  const session = { intent, boundId };
  const { differences, putBack, isRestorable } = await checkReceipt(place, session, receipt, restores);
  const losses = differences.filter(({ isLoss }) => isLoss).map(({ text }) => text);
  if (losses.length > 0) return { prompt, losses, isRestorable };
  return {
    prompt: differences.length === 0 ? prompt : `${CHANGED}\n${differencesText(differences)}\n\n${prompt}`,
    ...(putBack === undefined ? {} : { notice: `the agent's own session file was put back: ${putBack}` }),
  };
}

const CHANGED = "Since your last turn this has changed, and not by you:";

/**
 * Removes the copies that no session has renewed for months. Each turn renews the copy of its session, and no
 * turn renews the files of profiles.
 */
async function prune(mirrors: string): Promise<void> {
  const oldest = Date.now() - MIRROR_DAYS * DAY_MS;
  const names = await readdir(mirrors).catch(() => []);
  for (const name of names.filter((one) => !KEPT_FILE.test(one))) {
    const path = join(mirrors, name);
    const facts = await stat(path).catch(() => undefined);
    if (facts?.isFile() === true && facts.mtimeMs < oldest) await rm(path, { force: true });
  }
}

/** @param known the file as it was found before. */
export async function findSessionFile(traces: AgentTraces, known?: string): Promise<string | undefined> {
  if (traces.sessions === undefined) return undefined;
  const { folder, ending } = traces.sessions;
  if (known !== undefined && isOfSession(traces, known) && existsSync(known)) return known;
  return findBelow(folder, ending, DEPTH_MAX);
}

async function findBelow(folder: string, ending: string, depth: number): Promise<string | undefined> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  const file = entries.find((entry) => entry.isFile() && entry.name.endsWith(ending));
  if (file !== undefined) return join(folder, file.name);
  if (depth === 1) return undefined;
  // The newest folders of dates come first.
  for (const { name } of entries.filter((entry) => entry.isDirectory()).toReversed()) {
    const found = await findBelow(join(folder, name), ending, depth - 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** read-receipt-3. */
function isOfSession({ sessions }: AgentTraces, path: string): boolean {
  if (sessions === undefined) return false;
  const { folder, ending } = sessions;
  const inside = relative(folder, path);
  return inside !== "" && inside.split(sep)[0] !== ".." && !isAbsolute(inside) && path.endsWith(ending);
}

/** read-receipt-3. */
function mirrorOf(mirrors: string | undefined, { agentSessionId }: ExternalIntent): string | undefined {
  return mirrors === undefined || !OWN_ID.test(agentSessionId) ? undefined : join(mirrors, agentSessionId);
}

/** @returns the path of the file that was put back. */
async function restoreFile(
  traces: AgentTraces,
  sessionFile: SessionFile,
  mirror: string,
): Promise<string | undefined> {
  const { path, isMirrored } = sessionFile;
  if (!isMirrored || (await findSessionFile(traces, path)) !== undefined) return undefined;
  // The program's folder may be another one than at the time of the receipt.
  if (!isOfSession(traces, path) || !(await isWithoutLinks(traces.sessions?.folder ?? "", dirname(path))))
    return undefined;
  const content = await copyOf(sessionFile, mirror);
  if (content === undefined) return undefined;
  try {
    makePrivateFolder(dirname(path));
    createPrivate(path, content);
    return path;
  } catch {
    return undefined;
  }
}

/** The recorded bytes of the copy; `undefined` for one that is missing or damaged. */
async function copyOf({ bytes, sha256: wanted }: SessionFile, mirror: string): Promise<Buffer | undefined> {
  const content = (await readFile(mirror).catch(() => undefined))?.subarray(0, bytes);
  return content === undefined || sha256(content) !== wanted ? undefined : content;
}

/** The damaged file gets a name that is none of a session. */
async function setAside(traces: AgentTraces, sessionFile: SessionFile, mirror: string): Promise<void> {
  if (!sessionFile.isMirrored || (await copyOf(sessionFile, mirror)) === undefined) return;
  const path = await findSessionFile(traces, sessionFile.path);
  // A file that grew is whole.
  if (path === undefined || (await hashOf(path, sessionFile.bytes))?.sha256 === sessionFile.sha256) return;
  await rename(path, `${path}.damaged-${Date.now()}`).catch(() => {});
}

/** Whether no link leads from the outer folder to another place than the inner one, as far as folders are there. */
async function isWithoutLinks(outer: string, inner: string): Promise<boolean> {
  const there = await realpath(outer).catch(() => undefined);
  if (there === undefined) return true;
  for (let folder = inner; folder.startsWith(outer); folder = dirname(folder)) {
    const real = await realpath(folder).catch(() => undefined);
    if (real !== undefined) return real === join(there, relative(outer, folder));
  }
  return true;
}

async function hasCommit(folder: string, commit: string): Promise<boolean> {
  const asked = gitIn(folder, ["cat-file", "-e", `${commit}^{commit}`], {}, { codes: [0, 1, 128] });
  return (await asked.catch(() => undefined))?.exitCode === 0;
}

/** The program is asked for its version only after its file was replaced. */
async function readProgram(
  protocol: ExternalAgentProtocol,
  { program, version, profile }: ExternalIntent,
  last: ProgramFile | null,
): Promise<ProgramFile | null> {
  const facts = factsOf(program);
  if (facts === undefined) return null;
  const stamp = `${facts.size} ${facts.mtimeMs}`;
  if (last === null) return { version, stamp };
  if (last.stamp === stamp) return last;
  const now = await protocol.find(profile).catch(() => undefined);
  return { version: now?.program === program ? now.version : "unknown", stamp };
}

async function readNamed(
  traces: AgentTraces | undefined,
): Promise<Pick<RestoreReceipt, "mcpFiles" | "environment">> {
  const mcpFiles: Record<string, string> = {};
  for (const path of traces?.mcpFiles ?? []) {
    const hashed = await hashOf(path);
    if (hashed !== null) mcpFiles[path] = hashed.sha256.slice(0, 16);
  }
  const { settings = {}, keys = [] } = traces?.environment ?? {};
  const environment = Object.fromEntries([
    ...Object.entries(settings).map(([name, value]) => [name, sha256(value).slice(0, 16)] as const),
    ...keys.map((name) => [name, "set"] as const),
  ]);
  return { mcpFiles, environment };
}

function sha256(content: Buffer | string): string {
  return createHash("sha256").update(content).digest("hex");
}
