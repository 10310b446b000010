// `useCode`, `CodeLine`, `CodeText`: code with syntax colours once these are loaded, and plain until then.

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
