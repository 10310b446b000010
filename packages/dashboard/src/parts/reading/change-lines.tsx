// `ChangeLines`: the lines that an edit removes and adds, with syntax colours once these are loaded.

import type { DiffLine } from "@holdfast/proto/view";
import { useMemo } from "react";
import { shown } from "../text.ts";
import { CodeLine, useCode } from "../../code/code.tsx";

const LINE_CHARS = 2_000;

export function ChangeLines({ path, lines }: { readonly path: string; readonly lines: readonly DiffLine[] }) {
  const texts = useMemo(() => lines.map(({ text }) => shown(text.slice(0, LINE_CHARS))), [lines]);
  const parts = useCode(/\.([^./]+)$/.exec(path)?.[1], texts);
  return (
    <div className="my-1 overflow-hidden rounded-md border border-line font-mono text-xs" dir="ltr">
      {lines.map(({ type, text }, at) => (
        <div key={at} className={`flex ${type === "added" ? "bg-good-ground" : "bg-bad-ground"}`}>
          <span
            aria-label={type === "added" ? "added" : "removed"}
            role="img"
            className={`w-6 shrink-0 text-center select-none ${type === "added" ? "text-good" : "text-bad"}`}
          >
            {type === "added" ? "+" : "−"}
          </span>
          <span className="min-w-0 whitespace-pre-wrap wrap-anywhere">
            {parts?.[at] === undefined ? texts[at] : <CodeLine parts={parts[at]} />}
            {text.length > LINE_CHARS ? (
              <span className="text-soft"> … ({text.length.toLocaleString()} characters)</span>
            ) : null}
          </span>
        </div>
      ))}
    </div>
  );
}
