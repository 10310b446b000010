// Two states of sessions line by line beside each other. Lines without a change are folded until somebody
// opens them.

import { foldRows, jsonRows, type JsonRow } from "@holdfast/proto/view";
import { useMemo, useState } from "react";
import { Problem } from "../../parts/parts.tsx";
import { shown } from "../../parts/text.ts";
import { useRecord } from "./use-record.ts";

interface Side {
  readonly name: string;
  readonly sessionId: string;
  /** The position of its checkpoint. */
  readonly seq: number | undefined;
}

export function StatePair(props: { readonly title: string; readonly left: Side; readonly right: Side }) {
  const { title, left, right } = props;
  const [before, after] = [useRecord(left.sessionId, left.seq), useRecord(right.sessionId, right.seq)];
  const [isWhole, setWhole] = useState(false);
  const [one, other] = [before.data?.payload, after.data?.payload];
  const { rows, changes, isCut } = useMemo(() => jsonRows(parsed(one), parsed(other)), [one, other]);
  const folded = useMemo(() => (isWhole ? rows : foldRows(rows)), [rows, isWhole]);
  const error = before.error ?? after.error;
  if (error !== null) return <Problem error={error} />;
  if (left.seq === undefined && right.seq === undefined)
    return (
      <p className="text-sm text-soft">
        {title}: none. A state is stored by each checkpoint, with which an agent ends a turn.
      </p>
    );
  if (before.isLoading || after.isLoading) return <p className="text-soft">Reading the states…</p>;
  return (
    <section aria-label={title}>
      <div className="mb-1 flex flex-wrap items-baseline gap-x-3">
        <h3 className="font-semibold">{title}</h3>
        <span className="text-sm text-soft">
          {changes === 0
            ? "no line differs"
            : changes === 1
              ? "1 line differs"
              : `${changes.toLocaleString()} lines differ`}
          {isCut ? ", and there are more lines than are shown" : ""}
        </span>
        {folded.length === rows.length && !isWhole ? null : (
          <button type="button" onClick={() => setWhole(!isWhole)} className="text-sm text-accent underline">
            {isWhole ? "fold what is the same" : "show all lines"}
          </button>
        )}
      </div>
      <div
        role="region"
        aria-label={`${title}, lines`}
        tabIndex={0}
        className="max-h-half overflow-auto rounded-md border border-line"
      >
        <table className="w-full table-fixed border-collapse text-sm">
          <thead>
            <tr className="bg-raised text-left">
              <th className="px-2 py-1 font-medium">{left.name}</th>
              <th className="border-l border-line px-2 py-1 font-medium">{right.name}</th>
            </tr>
          </thead>
          <tbody>
            {folded.map((row, at) =>
              typeof row === "number" ? (
                <tr key={at} className="text-soft">
                  <td colSpan={2} className="px-2 py-0.5 text-xs">
                    {row === 1 ? "1 line is the same" : `${row.toLocaleString()} lines are the same`}
                  </td>
                </tr>
              ) : (
                <Line key={at} row={row} />
              ),
            )}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Line({ row: { left, right, isChanged } }: { readonly row: JsonRow }) {
  const cell = (text: string | undefined, mark: string, colour: string) => (
    <td
      className={`border-line px-2 align-top ${isChanged && text !== undefined ? colour : ""} [&+td]:border-l`}
    >
      <span className="exact">
        {isChanged && text !== undefined ? <span className="select-none">{mark} </span> : "  "}
        {shown(text ?? "")}
      </span>
    </td>
  );
  return (
    <tr>
      {cell(left, "−", "bg-bad/10")}
      {cell(right, "+", "bg-good/10")}
    </tr>
  );
}

function parsed(payload: string | undefined): unknown {
  return payload === undefined ? undefined : (JSON.parse(payload) as unknown);
}
