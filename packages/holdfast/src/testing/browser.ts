// A real browser for tests of the page: Debian's Chromium, or the one that an environment variable names.

import { existsSync } from "node:fs";
import { chromium, type Browser } from "playwright-core";

const VARIABLE = "HOLDFAST_TEST_CHROMIUM";

export const CHROMIUM = [process.env[VARIABLE], "/usr/bin/chromium", "/usr/bin/chromium-browser"].find(
  (path) => path !== undefined && existsSync(path),
);

/** The reason to skip tests that need a browser. */
export const NO_CHROMIUM = `there is no Chromium here; ${VARIABLE} may name one`;

export function startBrowser(): Promise<Browser> {
  // Chromium refuses its sandbox to root.
  const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  return chromium.launch({ executablePath: CHROMIUM!, args });
}
