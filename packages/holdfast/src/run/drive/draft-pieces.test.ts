import { DRAFT_CHARS_MAX } from "@holdfast/core";
import fc from "fast-check";
import { expect, test } from "vitest";
import { DraftPieces } from "./draft-pieces.ts";

const piece = (text: string, isAnother = false) => ({ taskId: "s-1", text, isAnother });

test("the pieces of a growing text are the text, however long it is and whichever drafts are left out", () => {
  const words = fc.array(fc.stringMatching(/^[a-z0-9]{1,900}$/), { maxLength: 60 });
  fc.assert(
    fc.property(words, (parts) => {
      const pieces = new DraftPieces();
      let whole = "";
      let shown = "";
      for (const [i, part] of parts.entries()) {
        whole += `${i} ${part} `;
        const draft = whole.slice(-DRAFT_CHARS_MAX);
        const taken = pieces.take("s-1", draft);
        expect(taken?.isAnother).toBe(false);
        shown += taken?.text ?? "";
      }
      expect(shown).toBe(whole);
    }),
  );
});

test("a text with another beginning is another text, and an empty draft shows nothing", () => {
  const pieces = new DraftPieces();
  expect(pieces.take("s-1", "Hello, ")).toEqual(piece("Hello, "));
  expect(pieces.take("s-1", "Hello, ")).toBeUndefined();
  expect(pieces.take("s-2", "Other")).toEqual({ ...piece("Other"), taskId: "s-2" });
  expect(pieces.take("s-1", "Good day")).toEqual(piece("Good day", true));
  expect(pieces.take("s-1", "")).toBeUndefined();
});

test("a draft that comes after the entry of its text shows nothing, and the next text of the task is new", () => {
  const pieces = new DraftPieces();
  pieces.take("s-1", "First");
  pieces.event({ seq: 1, type: "append_entry", role: "assistant", content: "First message" });
  expect(pieces.take("s-1", "First mess")).toBeUndefined();
  expect(pieces.take("s-1", "Second")).toEqual(piece("Second"));
  expect(pieces.take("s-1", "Second one")).toEqual(piece(" one"));
  pieces.event({ seq: 2, type: "task_completed", taskId: "s-1" });
  expect(pieces.take("s-1", "Second one!")).toBeUndefined();
});

test("a piece has the name of its task, where its beginning was seen", () => {
  const pieces = new DraftPieces();
  pieces.event({ seq: 1, type: "schedule_task", taskId: "s-1", kind: "draft a letter" });
  expect(pieces.take("s-1", "Dear")?.kind).toBe("draft a letter");
});
