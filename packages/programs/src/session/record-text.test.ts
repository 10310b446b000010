// The record of a session, as another session is told it.

import { expect, test } from "vitest";

import { recordText, RECORD_MARK } from "./record-text.ts";

test("a record of a session has no earlier record, and keeps what was said before it", () => {
  const said = `The user has sent this: stop\n${RECORD_MARK} The record below is not complete.\n\nThe record:\n\nuser: x`;
  expect(recordText([{ role: "user", content: said }])).toBe(
    "user: The user has sent this: stop\n(A new session was told what is recorded above.)",
  );
});
