// One record of a journal: its fields and payload, the states before and after its turn, and the fork from
// it.

import type { JournalRow, PlainError } from "@holdfast/proto/view";
import { useRef } from "react";
import type { LiveState } from "../../api/live-session.ts";
import type { Session } from "../../api/types.ts";
import { LongText } from "../../parts/long-text.tsx";
import { Button, Problem, RecordedErrorView } from "../../parts/parts.tsx";
import { useKeys } from "../../parts/shell.tsx";
import { brief, dateText, json, shown } from "../../parts/text.ts";
import { ForkDialog } from "./fork-dialog.tsx";
import { StatePair } from "./state-pair.tsx";
import { useRecord } from "./use-record.ts";

export interface JournalPlace {
  /** The position of the record that is shown. */
  readonly at?: number | undefined;
  /** The session beside this one. */
  readonly beside?: string | undefined;
}

export function RecordPane(props: {
  readonly live: LiveState;
  readonly session: Session;
  readonly other?: LiveState | undefined;
  readonly at: number;
  readonly beside?: string | undefined;
  readonly onGo: (place: JournalPlace) => void;
  readonly onClose: () => void;
}) {
  const { live, session, other, at, beside, onGo, onClose } = props;
  const { sessionId } = session;
  const fork = useRef<HTMLDialogElement>(null);
  useKeys({ f: () => fork.current?.showModal() });
  const { before, after } = live.journal.checkpointsAround(at);
  return (
    <section
      aria-label={`Record ${at}`}
      tabIndex={0}
      className="min-h-0 basis-3/5 space-y-4 overflow-auto border-line bg-panel p-3 max-lg:border-t lg:border-l"
    >
      <div className="flex flex-wrap items-center gap-2">
        <h2 className="font-semibold">Record {at}</h2>
        <span className="ml-auto flex gap-2">
          <Button hint="f" onClick={() => fork.current?.showModal()}>
            Fork from here…
          </Button>
          <Button hint="Esc" onClick={onClose}>
            Close
          </Button>
        </span>
      </div>
      <ForkDialog
        ref={fork}
        session={session}
        rows={live.journal.rows}
        at={at}
        onForked={(id) => onGo({ at, beside: id })}
      />
      {other === undefined || beside === undefined ? (
        <>
          <RecordFields live={live} sessionId={sessionId} at={at} />
          <StatePair
            title="State around this record"
            left={{
              name: before === undefined ? "Before: none" : `Before, of record ${before}`,
              sessionId,
              seq: before,
            }}
            right={{
              name: after === undefined ? "After: no checkpoint yet" : `After, of record ${after}`,
              sessionId,
              seq: after,
            }}
          />
        </>
      ) : (
        <BothSides live={live} other={other} sessionId={sessionId} beside={beside} at={at} />
      )}
    </section>
  );
}

/** The record of each session at the same position, and the states that the two sessions had there. */
function BothSides(props: {
  readonly live: LiveState;
  readonly other: LiveState;
  readonly sessionId: string;
  readonly beside: string;
  readonly at: number;
}) {
  const { live, other, sessionId, beside, at } = props;
  const state = ({ journal }: LiveState): number | undefined => journal.checkpointsAround(at + 1).before;
  const name = (side: string, seq: number | undefined): string =>
    seq === undefined ? `${side}: no checkpoint yet` : `${side}, of record ${seq}`;
  return (
    <>
      <div className="grid gap-4 sm:grid-cols-2">
        <RecordFields live={live} sessionId={sessionId} at={at} />
        <RecordFields live={other} sessionId={beside} at={at} />
      </div>
      <StatePair
        title="The last state of both sides up to here"
        left={{ name: name("Left", state(live)), sessionId, seq: state(live) }}
        right={{ name: name("Right", state(other)), sessionId: beside, seq: state(other) }}
      />
    </>
  );
}

function RecordFields(props: { readonly live: LiveState; readonly sessionId: string; readonly at: number }) {
  const { live, sessionId, at } = props;
  const row = live.journal.rows[at];
  const { data, error } = useRecord(sessionId, row === undefined ? undefined : at);
  if (error !== null) return <Problem error={error} />;
  if (row === undefined) return <p className="text-soft">The journal has no record {at} yet.</p>;
  if (data === undefined) return <p className="text-soft">Reading the record…</p>;
  if (data === null) return <p className="text-soft">This session stores no record {at}.</p>;
  const { seq: _seq, type: _type, payload, ...fields } = data;
  const entry =
    row.type === "append_entry" ? live.entries.find(({ id }) => id === (data.id ?? at)) : undefined;
  const value =
    entry === undefined
      ? payload === undefined
        ? undefined
        : (JSON.parse(payload) as unknown)
      : entry.content;
  return (
    <div className="min-w-0 space-y-2">
      <h3 className="font-mono text-sm">
        {row.type.replaceAll("_", " ")} <span className="text-soft">{brief(row.about, 200)}</span>
      </h3>
      <dl className="grid grid-cols-[auto_1fr] gap-x-3 text-sm">
        {Object.entries(fields).map(([name, field]) => (
          <div key={name} className="contents">
            <dt className="text-soft">{shown(name)}</dt>
            <dd className="exact">{fieldText(name, field)}</dd>
          </div>
        ))}
      </dl>
      <Payload row={row} value={value} />
    </div>
  );
}

const TIMES = new Set(["at", "retryAt", "fireAt", "deadlineAt", "expiresAt", "timeoutAt", "cancelAt"]);

function fieldText(name: string, field: unknown): string {
  if (TIMES.has(name) && typeof field === "number") return dateText(field);
  return brief(typeof field === "string" ? field : (JSON.stringify(field) ?? ""), 500);
}

function Payload({ row, value }: { readonly row: JournalRow; readonly value: unknown }) {
  // The state stands below, beside the one before it.
  if (value === undefined || row.type === "checkpoint") return null;
  if (isError(row, value)) return <RecordedErrorView error={value} />;
  return (
    <div
      className="max-h-96 overflow-auto rounded-md bg-raised p-3"
      tabIndex={0}
      role="region"
      aria-label="Payload"
    >
      <LongText text={typeof value === "string" ? value : json(value)} />
    </div>
  );
}

const ERRORS: ReadonlySet<JournalRow["type"]> = new Set(["fail", "task_failed", "attempt_failed"] as const);

function isError({ type }: JournalRow, value: unknown): value is PlainError {
  return ERRORS.has(type) && typeof (value as Partial<PlainError> | null)?.message === "string";
}
