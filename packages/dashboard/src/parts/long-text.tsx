// A text of any length, as it is. Only the first part of a very long one is in the page until somebody asks
// for the rest.
//
//   - A text of megabytes blocks no frame. It comes in pieces, a few in each frame, and the browser lays out
//     those near the window alone.
//   - A piece ends with a line. A line that is longer than a piece goes on in the next one, which says so.

import { lazy, memo, Suspense, useEffect, useMemo, useRef, useState } from "react";
import { Button } from "./parts.tsx";
import { shown } from "./text.ts";

const CHARS = 20_000;
/** Pieces that come into the page in one frame. */
const PIECES_PER_FRAME = 10;
/** A press shows ten times as much, and not more than this. */
const MORE_CHARS_MAX = 4_000_000;
const Markdown = lazy(() => import("./markdown.tsx"));

export function LongText({
  text,
  isMarkdown = false,
  onSeen,
}: {
  readonly text: string;
  readonly isMarkdown?: boolean;
  /** Called when the last line of the whole text was in the window. */
  readonly onSeen?: () => void;
}) {
  const [chars, setChars] = useState(CHARS);
  const more = useRef<HTMLDivElement>(null);
  const pieces = useMemo(() => piecesOf(text, chars), [text, chars]);
  const there = useGrowing(pieces.length);
  return (
    <>
      {isMarkdown && chars === CHARS ? (
        <Suspense fallback={<Piece text={pieces[0] ?? ""} />}>
          <Markdown text={text.slice(0, chars)} />
        </Suspense>
      ) : (
        pieces
          .slice(0, there)
          .map((piece, at) => (
            <Piece key={at} text={piece} continues={at < pieces.length - 1 && !piece.endsWith("\n")} />
          ))
      )}
      {there < pieces.length ? (
        <p role="status" className="text-soft">
          Being shown…
        </p>
      ) : text.length > chars ? (
        <div ref={more} className="mt-2">
          <Button
            onClick={() => {
              // The button may go, and the focus stays in the card.
              more.current?.closest<HTMLElement>("[tabindex]")?.focus({ preventScroll: true });
              setChars(Math.min(chars * 10, chars + MORE_CHARS_MAX));
            }}
          >
            Show more of {text.length.toLocaleString()} characters
          </Button>
        </div>
      ) : onSeen === undefined ? null : (
        <EndMark onSeen={onSeen} />
      )}
    </>
  );
}

/** The pieces of the first characters of a text. */
function piecesOf(text: string, chars: number): readonly string[] {
  const end = Math.min(text.length, chars);
  const pieces: string[] = [];
  for (let from = 0; from < end;) {
    const to = Math.min(end, from + CHARS);
    const line = to < end ? text.lastIndexOf("\n", to - 1) + 1 : to;
    const next = line > from ? line : to;
    pieces.push(text.slice(from, next));
    from = next;
  }
  return pieces;
}

/** Grows to a number, a few in each frame. */
function useGrowing(wanted: number): number {
  const [there, setThere] = useState(PIECES_PER_FRAME);
  useEffect(() => {
    if (there >= wanted) return undefined;
    const frame = requestAnimationFrame(() => setThere(there + PIECES_PER_FRAME));
    return () => cancelAnimationFrame(frame);
  }, [there, wanted]);
  return Math.min(there, wanted);
}

const Piece = memo(({ text, continues = false }: { readonly text: string; readonly continues?: boolean }) => (
  <div className="exact piece">
    {shown(text)}
    {continues ? <span className="text-soft select-none"> (the line continues)</span> : null}
  </div>
));

/** The end of a text. It says when it was in the window. */
function EndMark({ onSeen }: { readonly onSeen: () => void }) {
  const line = useRef<HTMLDivElement>(null);
  const latest = useRef(onSeen);
  latest.current = onSeen;
  useEffect(() => {
    const observer = new IntersectionObserver((changes) => {
      if (!changes.some(({ isIntersecting }) => isIntersecting)) return;
      observer.disconnect();
      latest.current();
    });
    observer.observe(line.current!);
    return () => observer.disconnect();
  }, []);
  return <div ref={line} aria-hidden className="h-px" />;
}
