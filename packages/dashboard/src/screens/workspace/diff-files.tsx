// A difference by files, each folded to its head until somebody opens it.
//
// The page draws only the lines of open files, and at most `LINES` of each until somebody asks for more.

import type { DiffFile, DiffLine } from "@holdfast/proto/view";
import { useMemo, useState } from "react";
import { CodeLine, useCode } from "../../code/code.tsx";
import type { CodePart } from "../../code/highlight.ts";
import { Button } from "../../parts/parts.tsx";
import { LineComment, type Comments } from "./line-comment.tsx";
import { briefPath, shown } from "../../parts/text.ts";

const OPEN_FILES = 10;
const OPEN_LINES = 400;
const LINES = 1_000;
const LINE_CHARS = 2_000;

export interface DiffProps {
  readonly files: readonly DiffFile[];
  /** Comments on lines; absent where no agent would read them. */
  readonly comments?: Comments | undefined;
}

export function DiffFiles({ files, comments }: DiffProps) {
  return files.map((file, at) => (
    <File
      key={`${at} ${file.path}`}
      file={file}
      comments={comments}
      isFirst={at < OPEN_FILES && file.lines.length <= OPEN_LINES}
    />
  ));
}

function File(props: {
  readonly file: DiffFile;
  readonly isFirst: boolean;
  readonly comments: DiffProps["comments"];
}) {
  const { file, isFirst, comments } = props;
  const { path, from, change, added, deleted, isBinary, lines } = file;
  const [isOpen, setOpen] = useState(isFirst);
  return (
    <details
      open={isOpen}
      onToggle={({ currentTarget }) => setOpen(currentTarget.open)}
      className="rounded-md border border-line bg-panel"
    >
      <summary className="px-3 py-1.5">
        <span className="font-mono text-sm wrap-anywhere">
          {from === undefined ? "" : `${briefPath(from)} → `}
          {briefPath(path)}
        </span>
        {change === "changed" ? null : <span className="ml-3 text-soft">{change}</span>}
        {isBinary ? <span className="ml-3 text-soft">binary</span> : null}
        <span className="ml-3 text-good">+{added}</span> <span className="text-bad">−{deleted}</span>
      </summary>
      {isOpen ? <Lines path={path} lines={lines} comments={comments} /> : null}
    </details>
  );
}

function Lines(props: {
  readonly path: string;
  readonly lines: readonly DiffLine[];
  readonly comments: DiffProps["comments"];
}) {
  const { path, lines, comments } = props;
  const [max, setMax] = useState(LINES);
  const [choice, setChoice] = useState<{ readonly line: DiffLine }>();
  const setLine = (line: DiffLine | undefined): void => setChoice(line === undefined ? undefined : { line });
  const parts = useDiffCode(path, lines);
  if (lines.length === 0) return <p className="px-3 pb-2 text-soft">It has no line to show.</p>;
  return (
    <>
      {comments === undefined ? null : (
        <LineComment path={path} lines={lines} choice={choice} onLine={setLine} comments={comments} />
      )}
      <div
        role="region"
        aria-label={`Lines of ${briefPath(path, 100)}`}
        tabIndex={0}
        className="max-h-half overflow-auto border-t border-line"
      >
        <table className="w-full border-collapse font-mono text-xs">
          <tbody>
            {lines.slice(0, max).map((each, at) => (
              <Line
                key={at}
                line={each}
                parts={parts.get(each)}
                isChosen={each === choice?.line}
                onChoose={comments === undefined || each.type === "head" ? undefined : () => setLine(each)}
              />
            ))}
          </tbody>
        </table>
        {lines.length > max ? (
          <div className="p-2">
            <Button onClick={() => setMax(max * 4)}>
              Show more of {lines.length.toLocaleString()} lines
            </Button>
          </div>
        ) : null}
      </div>
    </>
  );
}

/** The parts of the lines of both sides. Each side is code of its own. */
function useDiffCode(path: string, lines: readonly DiffLine[]): ReadonlyMap<DiffLine, readonly CodePart[]> {
  const language = /\.([^./]+)$/.exec(path)?.[1];
  const before = useMemo(() => linesOf(lines, "deleted"), [lines]);
  const after = useMemo(() => linesOf(lines, "added"), [lines]);
  const beforeParts = useCode(language, before.texts);
  const afterParts = useCode(language, after.texts);
  return useMemo(() => {
    const found = new Map<DiffLine, readonly CodePart[]>();
    beforeParts?.forEach((parts, at) => found.set(before.lines[at]!, parts));
    afterParts?.forEach((parts, at) => found.set(after.lines[at]!, parts));
    return found;
  }, [before, after, beforeParts, afterParts]);
}

/** The lines of one side of a difference, without those that are cut. */
function linesOf(
  lines: readonly DiffLine[],
  side: "deleted" | "added",
): { readonly lines: readonly DiffLine[]; readonly texts: readonly string[] } {
  const found = lines.filter(
    ({ type, text }) => (type === "same" || type === side) && text.length <= LINE_CHARS,
  );
  return { lines: found, texts: found.map(({ text }) => shown(text)) };
}

const LOOKS: Readonly<Record<DiffLine["type"], { readonly mark: string; readonly row: string }>> = {
  head: { mark: "", row: "bg-raised text-soft" },
  note: { mark: "", row: "text-soft" },
  same: { mark: " ", row: "" },
  added: { mark: "+", row: "bg-good/10" },
  deleted: { mark: "−", row: "bg-bad/10" },
};

function Line(props: {
  readonly line: DiffLine;
  readonly parts: readonly CodePart[] | undefined;
  readonly isChosen: boolean;
  /** A click chooses it for a comment. The box for comments takes its number, too. */
  readonly onChoose: (() => void) | undefined;
}) {
  const { line, parts, isChosen, onChoose } = props;
  const { type, text, before, after } = line;
  const { mark, row } = LOOKS[type];
  const cut = text.length > LINE_CHARS;
  const number = "w-10 border-r border-line px-2 text-right align-top text-soft select-none";
  return (
    <tr
      className={`${row} ${isChosen ? "outline-2 -outline-offset-2 outline-accent" : ""} ${onChoose === undefined ? "" : "cursor-pointer"}`}
      onClick={() => {
        // A person who selects a text to copy it chooses no line.
        if (getSelection()?.isCollapsed !== false) onChoose?.();
      }}
    >
      <td className={number}>{before}</td>
      <td className={number}>{after}</td>
      <td className="w-5 text-center align-top select-none">{mark}</td>
      <td className="pr-2 whitespace-pre-wrap wrap-anywhere" dir="ltr">
        {parts === undefined ? shown(text.slice(0, LINE_CHARS)) : <CodeLine parts={parts} />}
        {cut ? <span className="text-soft"> … ({text.length.toLocaleString()} characters)</span> : null}
      </td>
    </tr>
  );
}
