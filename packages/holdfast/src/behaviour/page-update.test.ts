// How soon the page shows a change after its commit, in a real browser over a coordinator, at rest and under
// load.
//
// It measures and asserts no time. The page campaign writes the figures to its evidence.

import { loadavg } from "node:os";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { CHROMIUM, NO_CHROMIUM, startBrowser } from "../testing/browser.ts";
import { noteFigures, PageStand } from "../testing/page-stand.ts";

// A figure of a machine that does something else is none, so only a campaign measures.

const SESSIONS = 1_000;
const CHANGES = 200;
const TIMEOUT_MS = 15 * 60_000;
const PAUSE_MS = 200;

let browser: Browser;
beforeAll(async () => {
  if (CHROMIUM !== undefined) browser = await startBrowser();
});
afterAll(async () => {
  await browser?.close();
});

test(
  "an update is measured from the answer to its commit until the page shows it",
  { ...ofCampaign, timeout: TIMEOUT_MS },
  async ({ skip }) => {
    if (CHROMIUM === undefined) skip(NO_CHROMIUM);
    const stand = await PageStand.open(browser);
    try {
      const { ask } = await stand.openCoordinator();
      for (let at = 0; at < SESSIONS; at += 50)
        await Promise.all(Array.from({ length: 50 }, () => ask("sessions", { agent: "nobody" })));
      const { sessionId: other } = await ask("sessions", { agent: "nobody" });
      const { sessionId } = await ask("sessions", { agent: "watched" });
      let loads = 0;
      await stand.page.keyboard.press("s");
      await stand.page.getByRole("link", { name: new RegExp(sessionId) }).waitFor();
      // The browser and this process have the same clock.
      await stand.page.evaluate(`
      globalThis.shownAt = [];
      let before = false;
      new MutationObserver(() => {
        const row = document.querySelector('a[href$="${sessionId}"]');
        const isPaused = row?.textContent.includes("paused: by user") === true;
        if (row === null || isPaused === before) return;
        before = isPaused;
        globalThis.shownAt.push(performance.timeOrigin + performance.now());
      }).observe(document.body, { childList: true, subtree: true, characterData: true });
    `);
      const measure = async (perSecond: number): Promise<string> => {
        const others =
          perSecond === 0
            ? undefined
            : setInterval(
                () =>
                  void ask(`sessions/${other}/${loads++ % 2 === 0 ? "pause" : "unpause"}`, {}).catch(
                    () => {},
                  ), // The end of the test may cut it off.
                1_000 / perSecond,
              );
        const times: number[] = [];
        for (let at = 0; at < CHANGES; at++) {
          const count = await stand.page.evaluate<number>("globalThis.shownAt.length");
          await ask(`sessions/${sessionId}/${at % 2 === 0 ? "pause" : "unpause"}`, {});
          const committedAt = performance.timeOrigin + performance.now();
          await expect
            .poll(() => stand.page.evaluate<number>("globalThis.shownAt.length"), { timeout: 30_000 })
            .toBeGreaterThan(count);
          const shownAt = await stand.page.evaluate<number>("globalThis.shownAt.at(-1)");
          times.push(Math.max(0, shownAt - committedAt));
          await stand.page.waitForTimeout(PAUSE_MS);
        }
        clearInterval(others);
        expect(times).toHaveLength(CHANGES);
        const sorted = times.toSorted((a, b) => a - b).map(Math.round);
        const [median, p95] = [sorted[CHANGES / 2], sorted[Math.floor(CHANGES * 0.95)]];
        return `${median}/${p95} ms with ${perSecond} other commits a second`;
      };
      const figures = `an update is shown after ${await measure(0)}, ${await measure(10)} (p50/p95 of ${CHANGES}, ${SESSIONS} sessions, load average ${Math.round(loadavg()[0]!)})`;
      noteFigures(figures);
      expect(stand.trouble).toEqual([]);
    } finally {
      await stand.close();
    }
  },
);
