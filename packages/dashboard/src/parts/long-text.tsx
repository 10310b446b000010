// A text of any length, as it is. Only the first part of a very long one is in the page until somebody asks
// for the rest.

import { lazy, Suspense, useEffect, useRef, useState } from "react";
import { Button } from "./parts.tsx";
import { shown } from "./text.ts";

const CHARS = 20_000;
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
  const part = text.slice(0, chars);
  const plain = <div className="exact">{shown(part)}</div>;
  return (
    <>
      {isMarkdown ? (
        <Suspense fallback={plain}>
          <Markdown text={part} />
        </Suspense>
      ) : (
        plain
      )}
      {text.length > chars ? (
        <div ref={more} className="mt-2">
          <Button
            onClick={() => {
              // The button may go, and the focus stays in the card.
              more.current?.closest<HTMLElement>("[tabindex]")?.focus({ preventScroll: true });
              setChars(chars * 10);
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
