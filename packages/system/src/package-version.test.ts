// Versions of packages that Holdfast can do without.

import { expect, test } from "vitest";
import { isOlder, packageVersion } from "./package-version.ts";

test("the version of an installed package is read, and that of an absent one is not known", () => {
  expect(packageVersion("vitest", import.meta.url)).toMatch(/^\d+\.\d+\.\d+/);
  expect(packageVersion("no-such-package-anywhere", import.meta.url)).toBeUndefined();
});

test.each([
  ["1.9.1", "1.10.0", true],
  ["1.10.0", "1.10.0", false],
  ["2.0.0", "1.10.0", false],
  ["0.57.2", "0.301.0", true],
  ["3.1.0-beta.2", "3.1.0", false],
  ["3.0.9-beta.2", "3.1.0", true],
  ["1", "1.10.0", true],
  [undefined, "1.10.0", false],
])("whether %s is older than %s: %s", (found, least, older) => {
  expect(isOlder(found, least)).toBe(older);
});
