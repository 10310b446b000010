// The lock of sign-ins: one process at a time renews a token.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { signInStore } from "./sign-in-store.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-sign-ins-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const open = () => signInStore(folder, { env: {}, askPassphrase: async () => "" });

test("work under the lock waits for the end of other work, also of work that failed", async () => {
  const steps: string[] = [];
  const begun = Promise.withResolvers<void>();
  const end = Promise.withResolvers<void>();
  const first = open().exclusively(async () => {
    begun.resolve();
    await end.promise;
    steps.push("first");
    throw new Error("the issuer is away");
  });
  await begun.promise;
  const second = open().exclusively(async () => void steps.push("second"));
  end.resolve();
  await expect(first).rejects.toThrow("the issuer is away");
  await second;
  expect(steps).toEqual(["first", "second"]);
});
