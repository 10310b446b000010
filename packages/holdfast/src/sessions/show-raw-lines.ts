// `showRawLines`: the lines that the program of an external agent has written, turn by turn, for
// `holdfast logs --raw`.

import { rawLinesFolder, readRawLines, type RawReference } from "@holdfast/programs";
import { HoldfastError, type StorageReader } from "@holdfast/core";
import type { Io } from "@holdfast/terminal/frame/command";
import { JournalTail } from "@holdfast/terminal/view/journal-events";
import { agentPlaces } from "../agents/agent-places.ts";
import { mirrorsOf } from "@holdfast/machine/programs";

/** @returns the exit code. @throws HoldfastError for a session without such lines, and with `--follow`. */
export async function showRawLines(
  reader: StorageReader,
  sessionId: string,
  follows: boolean,
  io: Io,
): Promise<number> {
  if (follows)
    throw new HoldfastError("usage", "--raw cannot follow a session", {
      expected: "--raw or --follow",
      fix: "leave one of them out: the lines of a turn are kept when it ends",
    });
  const references: RawReference[] = [];
  await new JournalTail(reader, sessionId).advance(({ type, output }) => {
    const { raw } = type === "task_completed" ? ((output ?? {}) as { readonly raw?: RawReference }) : {};
    if (typeof raw?.blob === "string") references.push(raw);
  });
  if (references.length === 0)
    throw new HoldfastError("not_found", `session ${sessionId} has no lines of a program`, {
      expected: "a session of an external agent with a turn that has ended",
      fix: `look at its record: ${io.call(`logs ${sessionId}`)}`,
    });
  const folder = rawLinesFolder(mirrorsOf(agentPlaces(io)))!;
  let missing = 0;
  for (const [index, reference] of references.entries()) {
    const text = readRawLines(folder, reference);
    if (text === undefined) {
      missing++;
      io.note(`turn ${index + 1}: its ${reference.lines} lines are not on this machine (${reference.blob})`);
      continue;
    }
    if (reference.isCut) io.note(`turn ${index + 1}: only its first ${reference.lines} lines were kept`);
    for (const line of text.slice(0, -1).split("\n")) io.show(line, line);
  }
  return missing === references.length ? 1 : 0;
}
