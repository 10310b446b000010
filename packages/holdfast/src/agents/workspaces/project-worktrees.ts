// The worktrees of this project, for the commands `worktrees`, `diff` and `merge`.
//
// A session that has not ended uses its worktree, whether or not a process runs. Its worktree is not removed.

import type { ListedWorktree } from "@holdfast/workspace";
import { HoldfastError, isEnded, type Session } from "@holdfast/core";
import { workText } from "@holdfast/proto/view";
import { refuse } from "@holdfast/terminal/frame/arguments";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { plain, plainLine, table } from "@holdfast/terminal/frame/plain-text";
import { withReader } from "@holdfast/place/find-session";
import { findDatabase } from "@holdfast/place/project";
import { agentPlaces, shownPath } from "../agent-places.ts";
import { findSandboxRoot } from "../sandbox-settings.ts";
import { workMessage } from "./session-work.ts";
import { worktreesOf } from "@holdfast/machine/session-folder";

const NAME_CHARS = 100;
const STAT_LINES = 20;

export async function listWorktrees(args: Arguments, io: Io): Promise<number> {
  const { worktrees, project } = here(io);
  const found = await worktrees.list(project, { all: args.has("all") });
  const sessions = await sessionsOf(
    found.map(({ session }) => session),
    args,
    io,
  );
  const rows = found.map((worktree) => {
    const status = sessions.get(worktree.session)?.status ?? null;
    return { ...worktree, status, inUse: isUsed(worktree, sessions.get(worktree.session)) };
  });
  const text =
    rows.length === 0
      ? "no session of this project has a worktree"
      : table(
          rows.map((row) => [
            plainLine(row.session, NAME_CHARS),
            row.status ?? "no session",
            plainLine(row.branch, NAME_CHARS),
            workText(row, row.inUse),
            plainLine(shownPath(row.path, io), NAME_CHARS * 3),
          ]),
        ).join("\n");
  io.show(rows, text);
  return 0;
}

export async function removeWorktree(id: string, args: Arguments, io: Io): Promise<number> {
  const { worktrees, project } = here(io);
  const { session, branch } = await worktrees.find(project, id);
  const row = (await sessionsOf([session], args, io)).get(session);
  if (row !== undefined && !isEnded(row.status))
    // A session that has not ended uses its worktree, also without a process.
    throw new HoldfastError("in_use", `session ${session} has not ended, and uses its worktree`, {
      got: `it is ${row.status}`,
      fix: `wait for its end, or run \`${io.call(`cancel ${session}`)}\``,
    });
  const { rescue, commit } = await worktrees.remove(project, session, { rescues: args.has("rescue") });
  const isGone = commit === ""; // Without its folder there was nothing to rescue.
  const text =
    commit === undefined
      ? `the worktree of session ${session} was removed before`
      : isGone
        ? `the worktree of session ${session} is removed; its folder was gone, so what remains are the commits of ${branch}`
        : `the worktree of session ${session} is removed; everything that was in it is in ${rescue}`;
  io.show({ session, rescue: isGone ? null : rescue, commit: isGone ? null : (commit ?? null) }, text);
  return 0;
}

export async function showDiff(id: string, args: Arguments, io: Io): Promise<number> {
  const { worktrees, project } = here(io);
  const { session, base, branch } = await worktrees.find(project, id);
  const diff = await worktrees.diff(project, session, { stat: args.has("stat") });
  if (diff === "" && !io.isJson) io.note(`session ${session} has changed nothing since ${base.slice(0, 12)}`);
  io.result({ session, branch, base, diff }, diff.replace(/\n$/, ""));
  return 0;
}

/** Says after a run in a worktree which files have changed there, and how to see and take the work. */
export async function noteWork(session: string, io: Io): Promise<void> {
  const { worktrees, project } = here(io);
  if (io.isJson || (await worktrees.lookUp(project, session)) === undefined) return;
  const stat = await worktrees.diff(project, session, { stat: true });
  const lines = stat.trimEnd().split("\n");
  const { branch } = await worktrees.find(project, session);
  if (stat === "") return io.note(`nothing has changed in its worktree (branch ${branch})`);
  io.note(`changed in its worktree (branch ${branch}):`);
  for (const line of lines.slice(0, STAT_LINES)) io.note(plain(line));
  if (lines.length > STAT_LINES) io.note(` ${io.notes.symbols.cut} ${lines.length - STAT_LINES} more lines`);
  io.note(`see it:  ${io.call(`diff ${session}`)}`);
  io.note(`take it: ${io.call(`merge ${session} --commit`)}`);
}

export async function mergeWork(id: string, args: Arguments, io: Io): Promise<number> {
  const { worktrees, project } = here(io);
  const { session } = await worktrees.find(project, id);
  const row = (await sessionsOf([session], args, io)).get(session);
  if (row !== undefined && !isEnded(row.status))
    io.note(`${io.notes.symbols.warn} session ${session} is ${row.status}, and may change more`);
  const merge = workMessage(session, messageOf(args) ?? row?.title);
  const messages = args.has("commit") ? { merge, commit: merge } : { merge };
  const merged = await worktrees.merge(project, session, messages);
  const { branch, into, isNew, submodules } = merged;
  const text = isNew ? `${branch} is merged into ${into}` : `${into} has everything of ${branch} already`;
  io.show({ session, ...merged }, text);
  if (submodules.length > 0)
    io.note(
      `new commits of submodules: ${submodules.join(", ")}. Check them out with \`git submodule update --recursive\`, and push their branch ${branch} before you push ${into}`,
    );
  return 0;
}

/** @throws UsageError */
function messageOf(args: Arguments): string | undefined {
  const message = args.text("message")?.trim();
  if (message === "") throw refuse("the message is empty", args.usage, { fix: "leave --message out" });
  return message;
}

/** Whether a session of this project can have a worktree: the project is a repository with a commit. */
export async function canHaveWorktrees(io: Io): Promise<boolean> {
  const { worktrees, project } = here(io);
  try {
    await worktrees.list(project);
    return true;
  } catch (error) {
    if (HoldfastError.is(error)) return false;
    throw error;
  }
}

function here(io: Io) {
  return { worktrees: worktreesOf(agentPlaces(io)), project: findSandboxRoot(io).value };
}

/** The sessions of this project that are there, by id. */
async function sessionsOf(
  ids: readonly string[],
  args: Arguments,
  io: Io,
): Promise<ReadonlyMap<string, Session>> {
  const found = new Map<string, Session>();
  if (ids.length === 0) return found;
  const { stack, ...database } = findDatabase(args, io);
  for (const place of stack === undefined ? [database] : [database, stack])
    await withReader(place, async (reader) => {
      for (const id of ids) {
        const session = await reader?.session(id);
        if (session !== undefined) found.set(id, session);
      }
    });
  return found;
}

function isUsed({ processes }: ListedWorktree, session: Session | undefined): boolean {
  return (processes ?? []).length > 0 || (session !== undefined && !isEnded(session.status));
}
