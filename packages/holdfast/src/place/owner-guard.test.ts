// Looking whether the owner of a database lives: several times a second, also while it is stopped.

import { UnavailableError } from "@holdfast/core";
import { MemoryStorage } from "@holdfast/runtime";
import { expect, test, vi } from "vitest";
import { guardOwner } from "./owner-guard.ts";

test("an owner that does not answer is asked once, however often it is looked", async () => {
  const storage = new MemoryStorage();
  const answer = Promise.withResolvers<undefined>();
  const asked = vi.spyOn(storage.reader, "session").mockReturnValue(answer.promise);
  const owner = guardOwner(storage);
  const looks = [owner.look(), owner.look(), owner.look()];
  expect(asked).toHaveBeenCalledTimes(1);
  answer.resolve(undefined);
  expect(await Promise.all(looks)).toEqual([true, true, true]);
  asked.mockRejectedValue(new UnavailableError("storage_unavailable", "gone", {}));
  expect(await owner.look()).toBe(false);
  expect(asked).toHaveBeenCalledTimes(2);
});
