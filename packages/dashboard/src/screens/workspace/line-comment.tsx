// A comment of a person on one line of a difference, which is sent to the agent as a message. The message has the
// path, the number and the text of the line, so the agent needs nothing else.

import type { DiffLine } from "@holdfast/proto/view";
import { useEffect, useRef, type FormEvent } from "react";
import { Button } from "../../parts/parts.tsx";
import { brief, briefPath } from "../../parts/text.ts";
import { useDraft } from "../../parts/use-session.ts";

/** The agent that reads comments. */
export interface Comments {
  readonly sessionId: string;
  readonly onSend: (message: string) => void;
}

export interface LineCommentProps {
  readonly path: string;
  readonly lines: readonly DiffLine[];
  /** The line that is chosen. Another object asks for the focus again, also for the same line. */
  readonly choice: { readonly line: DiffLine } | undefined;
  readonly onLine: (line: DiffLine | undefined) => void;
  readonly comments: Comments;
}

export function LineComment({ path, lines, choice, onLine, comments }: LineCommentProps) {
  const line = choice?.line;
  const [text, setText] = useDraft(`comment on ${path} of ${comments.sessionId}`);
  const box = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    if (choice !== undefined) box.current?.focus();
  }, [choice]);
  if (line === undefined)
    return (
      <p className="flex flex-wrap items-center gap-2 px-3 pb-2 text-sm text-soft">
        <Button kind="quiet" onClick={() => onLine(lines.find(({ type }) => type === "added") ?? lines[0])}>
          Comment on a line
        </Button>
        <span className="hidden sm:inline">or click it. The agent gets the comment as a message.</span>
      </p>
    );
  const send = (event: FormEvent): void => {
    event.preventDefault();
    if (text.trim() === "") return;
    comments.onSend(messageOf(path, line, text));
    setText("");
    onLine(undefined);
  };
  return (
    <form onSubmit={send} className="space-y-2 border-t border-line px-3 py-2">
      <label className="flex flex-wrap items-center gap-2 text-sm text-soft">
        Line
        <input
          type="number"
          min={1}
          value={numberOf(line) ?? ""}
          onChange={({ target }) => {
            const found = lines.find((each) => numberOf(each) === Number(target.value));
            if (found !== undefined) onLine(found);
          }}
          className="field w-24"
        />
        <code className="exact min-w-0 truncate">{brief(line.text, 120)}</code>
      </label>
      <textarea
        ref={box}
        aria-label={`Comment on ${briefPath(path, 100)}`}
        rows={2}
        value={text}
        placeholder="Your comment, which the agent reads as a message"
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") onLine(undefined);
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.repeat)
            event.currentTarget.form?.requestSubmit();
        }}
        className="field w-full"
      />
      <div className="flex gap-2">
        <Button type="submit" kind="main" hint="Ctrl Enter" isDisabled={text.trim() === ""}>
          Send to the agent
        </Button>
        <Button onClick={() => onLine(undefined)}>Close</Button>
      </div>
    </form>
  );
}

/** The number of a line in the file as it is now; of a deleted line as it was. */
function numberOf({ before, after }: DiffLine): number | undefined {
  return after ?? before;
}

const LINE_CHARS = 500;

function messageOf(path: string, line: DiffLine, text: string): string {
  const number = numberOf(line);
  const place = number === undefined ? path : `${path}, line ${number}`;
  const which = line.type === "deleted" ? " (deleted)" : "";
  return `About ${place}${which}:\n> ${line.text.slice(0, LINE_CHARS)}\n\n${text}`;
}
