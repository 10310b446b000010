import {
  decodeJson,
  defined,
  describeRecord,
  encodeJson,
  isEnded,
  positionId,
  type Entry,
  type JournalRecord,
  type Session,
  type StorageReader,
} from "@holdfast/core";
import type { ReplayStand, ReplayStep } from "@holdfast/runtime";
import { refuse } from "@holdfast/terminal/frame/arguments";
import { SESSION_OR_LAST, type Arguments, type Command, type Io } from "@holdfast/terminal/frame/command";
import { entryText, roleText } from "@holdfast/terminal/view/event-line";
import { plainLine } from "@holdfast/terminal/frame/plain-text";
import { findDatabase } from "@holdfast/place/project";
import { agentOf, sessionOf } from "../run/recorded-agent.ts";
import { readTurn, replayTurn } from "../run/replaying/recorded-turn.ts";
import { findPlace, withReaderOf } from "@holdfast/place/find-session";
import { noteUnstored } from "@holdfast/terminal/view/describe-session";

export const replay: Command = {
  name: "replay",
  takes: [SESSION_OR_LAST],
  description:
    "Delivers the recorded outcomes to the agent's code, one at a time, and shows what the code asks for. No task is started, nothing " +
    "is sent or written, and the session may be running meanwhile. Where the code asks for something else than the journal holds, both " +
    "sides are shown. Without --turn the command replays the newest turn, or the turn of position N.",
  options: {
    last: { help: "the newest session that has not ended" },
    turn: { help: "an earlier turn, from 0", value: "T" },
    at: { help: "stop at this position of the journal (`holdfast logs` shows them)", value: "N" },
    agent: { help: "load the agent from another file", value: "FILE" },
    "accept-drift": { help: "continue where only inputs changed, and say where" },
  },
  examples: [
    ["replay ses_019a", "from the last checkpoint to the end of the journal"],
    ["replay ses_019a --at 12", "open tasks and waits, and the conversation, at position 12"],
    ["replay ses_019a --agent fixed.ts", "would the corrected code continue this session?"],
  ],

  async run(args, io) {
    const turn = wholeNumber(args, "turn");
    const at = wholeNumber(args, "at");
    const database = await findPlace(findDatabase(args, io), args, io, ({ status }) => !isEnded(status));
    const { sessionId } = await sessionOf(args, database);
    return withReaderOf(database, sessionId, async (session, reader) => {
      noteUnstored(session, io);
      const agent = await agentOf(session, database, args, io);
      const records = await readTurn(reader, session, { turn, at });
      const stand = await replayTurn(reader, session, records, {
        agent,
        acceptDrift: args.has("accept-drift"),
        ...defined({ stopAt: at }),
        onStep: (step) => io.show({ step: "delivery", ...stepJson(step) }, stepText(step, io)),
      });
      const said = await lastEntries(reader, sessionId, stand.entryCount);
      const state = encodeJson(stand.state, "state");
      io.show(
        { step: "stand", ...standJson(stand, state, said) },
        standText(stand, { state, said, session }, io),
      );
      return stand.fault === undefined ? 0 : io.complain(stand.fault);
    });
  },
};

const ENTRIES_SHOWN = 5;
const TEXT_CHARS = 160;

function wholeNumber(args: Arguments, option: "turn" | "at"): number | undefined {
  const text = args.text(option);
  if (text === undefined) return undefined;
  if (!/^\d{1,15}$/.test(text)) {
    throw refuse(`--${option} is not a whole number`, args.usage, {
      got: text,
      expected: `--${option} 0, 1, 2, ...`,
    });
  }
  return Number(text);
}

async function lastEntries(
  reader: StorageReader,
  sessionId: string,
  entryCount: number,
): Promise<readonly Entry[]> {
  const from = Math.max(0, entryCount - ENTRIES_SHOWN);
  return entryCount === 0 ? [] : reader.entries(sessionId, from, entryCount - from);
}

// ---- text and JSON -----------------------------------------------------------------------------------------------

function stepJson({ event, commands }: ReplayStep): object {
  return { event: recordJson(event), commands: commands.map(recordJson) };
}

function recordJson(record: JournalRecord): object {
  const { payload, ...rest } = record;
  return payload === undefined ? rest : { ...rest, payload: decodeJson(payload) };
}

function standJson(
  { tasks, waits, fault, ...stand }: ReplayStand,
  state: string | undefined,
  said: readonly Entry[],
): object {
  return {
    ...stand,
    fault: undefined,
    ...(fault === undefined
      ? {}
      : {
          divergence: {
            code: fault.code,
            message: fault.message,
            recorded: fault.expected,
            attempted: fault.got,
            at: fault.at,
          },
        }),
    tasks: tasks.map(({ id, kind, attempt }) => ({ id, kind, attempt })),
    waits,
    state: decodeJson(state),
    entries: said.map(({ role, content }) => ({ role, content: decodeJson(content) })),
  };
}

function stepText({ event, commands }: ReplayStep, io: Io): string {
  const { paint, symbols } = io.results;
  const outcome = line(event.seq, `${symbols.arrived} ${describeRecord(event)}${payloadOf(event)}`, io);
  return [
    paint.cyan(outcome),
    ...commands.map((command) => line(command.seq, `  ${symbols.begin} ${describeRecord(command)}`, io)),
  ].join("\n");
}

function standText(
  stand: ReplayStand,
  {
    state,
    said,
    session,
  }: { readonly state: string | undefined; readonly said: readonly Entry[]; readonly session: Session },
  io: Io,
): string {
  const { paint, symbols } = io.results;
  const { tasks, waits, turn, nextSeq, drift, fault } = stand;
  const end = stand.isOver
    ? "and has ended"
    : nextSeq < session.nextSeq
      ? "and continues"
      : "at the end of the journal";
  const lines = ["", paint.bold(line(nextSeq - 1, `is here, in turn ${turn}, ${end}`, io))];
  const fact = (text: string): void => void lines.push(indented(text, io));
  if (state !== undefined) fact(`state: ${state}`);
  for (const { id, kind, attempt } of tasks)
    fact(`open: task ${positionId(session.sessionId, id)} "${kind}", attempt ${attempt}`);
  for (const wait of waits)
    fact(`open: ${wait.type}${"name" in wait ? ` "${wait.name}"` : ""}, number ${wait.id}`);
  if (tasks.length + waits.length === 0 && fault === undefined) fact("nothing is open");
  for (const { role, content } of said) {
    const value = decodeJson(content);
    fact(`${roleText(role, value)}: ${entryText(role, value)}`);
  }
  if (drift.length > 0)
    fact(`${symbols.warn} recorded results were kept for changed inputs at ${drift.join(", ")}`);
  lines.push(
    fault === undefined
      ? paint.green(indented(`${symbols.done} the code asks for what the journal holds`, io))
      : paint.red(indented(`${symbols.failed} from here on the code asks for something else`, io)),
  );
  return lines.join("\n");
}

function payloadOf({ payload }: JournalRecord): string {
  return payload === undefined ? "" : `  ${payload.slice(0, TEXT_CHARS)}`;
}

function line(seq: number, text: string, io: Io): string {
  return fitted(`${String(Math.max(0, seq)).padStart(4)}  `, text, io);
}

function indented(text: string, io: Io): string {
  return fitted("      ", text, io);
}

/** On one line, however narrow; indentation of ours is kept. */
function fitted(before: string, text: string, { results }: Io): string {
  const indent = / */.exec(text)![0];
  const room = Math.max(10, Math.min(results.columns, TEXT_CHARS) - before.length - indent.length);
  return before + indent + plainLine(text, room, results.symbols.cut);
}
