import { SESSION_STATUSES } from "@holdfast/core";
import { STATUSES } from "@holdfast/proto/view";
import { expect, test } from "vitest";

test("the page offers exactly the statuses that sessions have, in their order", () => {
  expect([...STATUSES]).toEqual(SESSION_STATUSES);
});
