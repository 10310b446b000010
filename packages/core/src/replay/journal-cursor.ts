// `JournalCursor`: the position of a kernel in its journal, and the comparison of each ask with the record
// there.
//
//   K1. A command's number (`id`) is claimed when the agent asks, before anything can interleave. Commands
//       have numbers of their own, apart from the journal's positions (`seq`), which events and notes take
//       too. Records that a crash adds therefore move no id.
//   - Replay and first execution run the same lines. They differ only in whether the journal already holds a
//     record.
//   K5. A command that differs from the recorded one is a divergence, with both sides. Limits are for new
//       commands only.
//   journal-cursor-1. A mark of changed code (`ctx.patched`) that the code does not ask for any more is passed
//       over. The code may drop the question when no session needs its old side. The mark is remembered, because
//       another question of the same change may follow.
//
// This file does not know what a record means, or which code asks. The kernel chooses the next record, and
// the cursor decides whether it fits.

import { InvariantError, NondeterminismError } from "../errors/errors.ts";
import {
  isCommand,
  type CommandRecord,
  type EventRecord,
  type JournalRecord,
  type NoteRecord,
} from "../journal/record.ts";
import { isPatchMark } from "../journal/patch-mark.ts";
import { callerLine } from "../errors/author-line.ts";
import type { FaultMemory } from "./fault-memory.ts";
import { limitReached } from "./faults.ts";
import { describeRecord, describeSides, identityOf, sortOf } from "./identity.ts";
import type { KernelOptions } from "./kernel-options.ts";
import type { Segment } from "./segment.ts";

/** A record that has no place in the journal yet. */
export type Draft<R> = R extends unknown ? Omit<R, "seq" | "id"> : never;

export class JournalCursor {
  readonly #options: KernelOptions;
  readonly #segment: Segment;
  readonly #faults: FaultMemory;
  readonly #drifted: number[] = [];
  /** Positions at which a person accepted drift before. */
  readonly #accepted: ReadonlySet<number>;
  readonly #passedMarks = new Set<string>();
  /** Position of the next record in the journal. */
  #seq: number;
  /** Number of the next command. */
  #id: number;
  #self: string;
  #slice: "none" | "replay" | "live" = "none";
  #sliceCommands = 0;
  /** Length of the segment's texts before the agent ran in this slice. */
  #charsBefore = 0;
  #now = 0;
  #deliveries = 0;

  constructor(options: KernelOptions, segment: Segment, faults: FaultMemory) {
    this.#options = options;
    this.#segment = segment;
    this.#faults = faults;
    this.#seq = options.baseSeq;
    this.#id = options.baseId;
    this.#self = selfAfter(options, -1);
    this.#accepted = new Set(
      options.recorded.flatMap((record) => (record.type === "drift_accepted" ? record.positions : [])),
    );
  }

  get seq(): number {
    return this.#seq;
  }

  get id(): number {
    return this.#id;
  }

  /** The open slice: over recorded events, or over new ones. */
  get slice(): "none" | "replay" | "live" {
    return this.#slice;
  }

  /** X4. The session whose id names what is asked for here: a fork's origin, until the `forked` event. */
  get self(): string {
    return this.#self;
  }

  /** Whether any record is left. */
  get replaying(): boolean {
    return this.#seq - this.#options.baseSeq < this.#options.recorded.length;
  }

  /** The record at this position; `undefined` beyond the journal's end. */
  get here(): JournalRecord | undefined {
    return this.#options.recorded[this.#seq - this.#options.baseSeq];
  }

  /** journal-cursor-1. The probes of the marks that were passed, also of those that nobody asked for. */
  get passedMarks(): ReadonlySet<string> {
    return this.#passedMarks;
  }

  /** The record that a command is compared with: the next one that is no mark (journal-cursor-1). */
  get next(): JournalRecord | undefined {
    const { recorded, baseSeq } = this.#options;
    let at = this.#seq - baseSeq;
    // mutant: mark-hides-a-task
    for (let record = recorded[at]; record !== undefined && isPatchMark(record);) record = recorded[++at];
    return recorded[at];
  }

  /**
   * The record here that is accepted, if it is: then the marks before it are passed (journal-cursor-1). A position is never
   * passed for an ask that has no record, because the next ask may be for one of these marks.
   */
  ahead(isAccepted: (record: JournalRecord) => boolean): JournalRecord | undefined {
    const { recorded, baseSeq } = this.#options;
    const from = this.#seq - baseSeq;
    for (let i = from; i < recorded.length; i++) {
      const record = recorded[i]!;
      if (isAccepted(record)) {
        for (let passed = from; passed < i; passed++) this.passCommand();
        return record;
      }
      if (!isPatchMark(record)) return undefined;
    }
    return undefined;
  }

  /** The record at the position that was passed last. */
  get passed(): JournalRecord | undefined {
    return this.#options.recorded[this.#seq - 1 - this.#options.baseSeq];
  }

  /** H11. The agent's present: the time of the last delivery, which never goes back. */
  get now(): number {
    return this.#now;
  }

  /** The number of events that were passed. */
  get deliveries(): number {
    return this.#deliveries;
  }

  openSlice(): void {
    this.#slice = this.replaying ? "replay" : "live";
    this.#sliceCommands = 0;
    this.#charsBefore = this.#segment.chars;
  }

  closeSlice(): void {
    this.#slice = "none";
  }

  /** Past a recorded note. */
  passNote(): void {
    this.#seq++;
  }

  /** Past an event: the recorded one, or a new one. */
  passEvent(event: Draft<EventRecord> | EventRecord): void {
    if (event.type === "forked")
      this.#self = this.#slice === "live" ? this.#options.sessionId : selfAfter(this.#options, this.#seq);
    if (this.#slice === "live") {
      this.#segment.addRecord({ ...event, seq: this.#seq });
      this.#charsBefore = this.#segment.chars;
    }
    this.#seq++;
    // mutant: clock-goes-back
    this.#now = Math.max(this.#now, event.at); // The wall clock may go back; the agent's present does not.
    this.#deliveries++;
  }

  /** Past a recorded command that the caller has compared itself. */
  passCommand(): void {
    const { here } = this;
    if (here !== undefined && isPatchMark(here)) this.#passedMarks.add(here.probe);
    this.#seq++;
    this.#id++;
  }

  addNote(note: Draft<NoteRecord>): NoteRecord {
    const record = { ...note, seq: this.#seq++ } as NoteRecord;
    this.#segment.addRecord(record);
    return record;
  }

  /**
   * Claim the next position for a command; in replay, check that the command is the recorded one (K1, K5).
   *
   * @param lineOf finds the agent's line for a divergence; absent when the kernel itself asks.
   * @returns the number of the command.
   */
  append(draft: Draft<CommandRecord>, lineOf?: () => string | undefined): number {
    this.#countCommand();
    const recorded = this.#slice === "replay" ? this.ahead((record) => !isPatchMark(record)) : undefined;
    const id = this.#id;
    if (this.#slice === "replay") {
      if (recorded === undefined || !isCommand(recorded) || identityOf(recorded) !== identityOf(draft)) {
        this.#acceptDriftOrDiverge(recorded, draft, lineOf);
      }
    } else {
      const { recordsPerCheckpoint } = this.#options.limits;
      if (this.#seq - this.#options.baseSeq >= recordsPerCheckpoint) {
        throw this.#faults.fail(
          limitReached("recordsPerCheckpoint", recordsPerCheckpoint, "use ctx.checkpoint()"),
        );
      }
      this.#segment.addRecord({ ...draft, seq: this.#seq, id });
      this.refuseIfLarge();
    }
    this.passCommand();
    return id;
  }

  /**
   * Refuse a slice whose asks are too large, because they are all in one batch. Only live slices are checked,
   * as with all limits (K5).
   */
  refuseIfLarge(): void {
    const { batchChars } = this.#options.limits;
    // mutant: batch-limit-off-by-one
    if (this.#segment.chars - this.#charsBefore <= batchChars) return;
    throw this.#faults.fail(
      limitReached(
        "batchChars",
        batchChars,
        "ask for less before the next await, or keep large content in files and record their paths",
        callerLine(),
      ),
    );
  }

  /** Positions whose recorded results are used for changed inputs; noted once, when the replay is over. */
  takeDrift(): readonly number[] {
    return this.#drifted.splice(0);
  }

  /**
   * A batch ends at a standstill, and the journal ends with a batch. More commands than it holds would have
   * been in that batch (K5).
   */
  checkReplayEnd(): void {
    // Replay slices only advance over recorded positions, so there is nothing beyond; `nextRecorded` checks
    // what is left. This assertion records that reasoning.
    const length = this.#options.baseSeq + this.#options.recorded.length;
    if (this.#seq !== length)
      this.#faults.remember(
        new InvariantError(`session ${this.#options.sessionId}: replay ended at ${this.#seq}, not ${length}`),
      );
  }

  divergence(recorded: JournalRecord | undefined, attempted: string, line?: string): NondeterminismError {
    return new NondeterminismError({ ...this.#place, line }, describeRecord(recorded), attempted);
  }

  #divergentCommand(
    recorded: JournalRecord | undefined,
    draft: Draft<CommandRecord>,
    where: { readonly line: string | undefined; readonly mayDrift: boolean },
  ): NondeterminismError {
    const sides = describeSides(recorded, draft);
    return new NondeterminismError({ ...this.#place, ...where }, ...sides);
  }

  get #place() {
    const { sessionId, baseSeq, recorded } = this.#options;
    const ended = recorded.filter(({ type }) => type === "task_completed" || type === "task_failed").length;
    return { sessionId, baseSeq, ended, seq: this.#seq };
  }

  #acceptDriftOrDiverge(
    recorded: JournalRecord | undefined,
    draft: Draft<CommandRecord>,
    lineOf: (() => string | undefined) | undefined,
  ): void {
    const sameSort = recorded !== undefined && isCommand(recorded) && sortOf(recorded) === sortOf(draft);
    if (sameSort && this.#accepted.has(this.#seq)) return;
    if (!sameSort || !this.#options.acceptDrift)
      throw this.#faults.fail(
        this.#divergentCommand(recorded, draft, { line: lineOf?.(), mayDrift: sameSort }),
      );
    this.#drifted.push(this.#seq);
  }

  /** Limits are for new commands only: records replay under any limit (K5). */
  #countCommand(): void {
    // mutant: slice-limit-off-by-one
    if (this.#slice === "live" && ++this.#sliceCommands > this.#options.limits.commandsPerSlice) {
      const { commandsPerSlice } = this.#options.limits;
      throw this.#faults.fail(
        limitReached(
          "commandsPerSlice",
          commandsPerSlice,
          "await what was asked for, in portions",
          callerLine(),
        ),
      );
    }
  }
}

/**
 * X4. The owner of the records behind a position: the session that the next `forked` event or the journal's
 * end names.
 */
function selfAfter({ sessionId, recorded, origins, forkPending }: KernelOptions, seq: number): string {
  const next = recorded.find((record) => record.type === "forked" && record.seq > seq);
  if (next?.type === "forked") return next.from;
  return (forkPending === true ? origins?.[0] : undefined) ?? sessionId;
}
