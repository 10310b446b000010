// A text of any length, as it is. Only the first part of a very long one is in the page until somebody asks for the rest.

import { lazy, Suspense, useState } from "react";
import { Button } from "./parts.tsx";
import { shown } from "./text.ts";

const CHARS = 20_000;
const Markdown = lazy(() => import("./markdown.tsx"));

export function LongText({
  text,
  isMarkdown = false,
}: {
  readonly text: string;
  readonly isMarkdown?: boolean;
}) {
  const [chars, setChars] = useState(CHARS);
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
        <div className="mt-2">
          <Button onClick={() => setChars(chars * 10)}>
            Show more of {text.length.toLocaleString()} characters
          </Button>
        </div>
      ) : null}
    </>
  );
}
