// `useCode`, `CodeLine`, `CodeText`: code with syntax colours once these are loaded, and plain until then.
// `DiffText`: a difference as a text, whose lines have the colours of what they do.

import { useEffect, useState } from "react";
import type { CodePart } from "./highlight.ts";

/** The parts of each line; `undefined` for lines without colours. @param language also the end of a file's name. */
export function useCode(
  language: string | undefined,
  lines: readonly string[],
): readonly (readonly CodePart[])[] | undefined {
  const [found, setFound] = useState<{
    readonly text: string;
    readonly parts: readonly (readonly CodePart[])[] | undefined;
  }>();
  const text = lines.join("\n");
  useEffect(() => {
    if (language === undefined || text === "") return undefined;
    let isOver = false;
    import("./highlight.ts")
      .then(({ highlight }) => highlight(language, text.split("\n")))
      .then(
        (parts) => isOver || setFound({ text, parts }),
        () => {}, // The text stays plain.
      );
    return () => void (isOver = true);
  }, [language, text]);
  return found?.text === text ? found.parts : undefined;
}

export function CodeLine({ parts }: { readonly parts: readonly CodePart[] }) {
  return parts.map(({ text, kind }, at) =>
    kind === undefined ? (
      text
    ) : (
      <span key={at} className={`code-${kind}`}>
        {text}
      </span>
    ),
  );
}

/** Code of several lines. */
export function CodeText({ language, text }: { readonly language: string; readonly text: string }) {
  const parts = useCode(language, text.split("\n"));
  return parts === undefined
    ? text
    : parts.map((line, at) => (
        <span key={at}>
          {at === 0 ? "" : "\n"}
          <CodeLine parts={line} />
        </span>
      ));
}

const DIFF_LINES: readonly (readonly [start: RegExp, look: string])[] = [
  [/^(\+\+\+|---|@@|diff |index )/, "text-soft"],
  [/^\+/, "bg-good/10 text-good"],
  [/^-/, "bg-bad/10 text-bad"],
];

/** A difference as `git diff` writes it. */
export function DiffText({ text }: { readonly text: string }) {
  return text.split("\n").map((line, at) => {
    const [, look = ""] = DIFF_LINES.find(([start]) => start.test(line)) ?? [];
    return (
      <span key={at} className={look}>
        {at === 0 ? "" : "\n"}
        {line}
      </span>
    );
  });
}
