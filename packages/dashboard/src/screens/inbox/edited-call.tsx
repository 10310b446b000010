// `useEditedCall`, `EditedCall`: the arguments that a person gives a call before it is approved. The call then
// runs with these, and never with its own.

import { useRef, useState } from "react";
import type { OpenItem } from "../../api/open-items.ts";
import { useDraft } from "../../parts/use-session.ts";
import { json } from "../../parts/text.ts";

export type EditedCallState = ReturnType<typeof useEditedCall>;

export function useEditedCall({ id, editable }: OpenItem) {
  const [text, setText] = useDraft(`edited call of ${id}`);
  const [isOpen, setOpen] = useState(text !== "");
  const [problem, setProblem] = useState<string>();
  const box = useRef<HTMLTextAreaElement>(null);
  const open = (): void => {
    if (text === "") setText(json(editable));
    setOpen(true);
    setTimeout(() => box.current?.focus());
  };
  const done = (): void => {
    setText("");
    setProblem(undefined);
    setOpen(false);
  };
  /** @returns the new arguments; no value where they are those of the call. */
  const read = (): { readonly value?: object; readonly problem?: string } => {
    const found = isOpen ? readArguments(text, editable) : {};
    setProblem(found.problem);
    if (found.problem !== undefined) box.current?.focus();
    return found;
  };
  return { text, setText, isOpen, problem, box, open, done, read };
}

function readArguments(
  text: string,
  before: OpenItem["editable"],
): { readonly value?: object; readonly problem?: string } {
  try {
    const value = JSON.parse(text) as unknown;
    if (typeof value !== "object" || value === null || Array.isArray(value))
      return { problem: 'The arguments of a call are an object, such as { "command": "ls" }.' };
    return JSON.stringify(value) === JSON.stringify(before) ? {} : { value };
  } catch (error) {
    return { problem: `This is no JSON: ${error instanceof Error ? error.message : ""}` };
  }
}

export function EditedCall(props: { readonly edit: EditedCallState; readonly isBusy: boolean }) {
  const { edit, isBusy } = props;
  const { text, setText, problem, box } = edit;
  return (
    <div>
      <label className="block text-soft">
        The call, as JSON
        <textarea
          ref={box}
          value={text}
          rows={Math.min(14, text.split("\n").length + 1)}
          spellCheck={false}
          dir="ltr"
          readOnly={isBusy}
          aria-invalid={problem !== undefined}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === "Escape") event.currentTarget.blur();
          }}
          className="field w-full font-mono text-sm text-text"
        />
      </label>
      {problem === undefined ? null : (
        <p role="alert" className="text-bad">
          {problem}
        </p>
      )}
    </div>
  );
}
