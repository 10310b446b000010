// The memory of a page that stays open while sessions change, in a real browser over a coordinator.
//
// Only the page campaign runs it (`HOLDFAST_CAMPAIGN`), for `HOLDFAST_PAGE_MINUTES`.

import type { Browser, CDPSession } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { CHROMIUM, NO_CHROMIUM, startBrowser } from "../testing/browser.ts";
import { noteFigures, PageStand } from "../testing/page-stand.ts";

const MINUTES = Number(process.env["HOLDFAST_PAGE_MINUTES"] ?? "1");
const SESSIONS = 200;
const COMMITS_PER_SECOND = 10;
const SAMPLES = 24;
/** Samples that are left out: caches fill, and code is compiled. */
const WARM_UP = 4;
const GROUP = 5;
const MIB = 1024 * 1024;

let browser: Browser;
beforeAll(async () => {
  if (CHROMIUM !== undefined) browser = await startBrowser();
});
afterAll(async () => {
  await browser?.close();
});

interface Sample {
  readonly heap: number;
  readonly nodes: number;
  readonly listeners: number;
}

/** The page's memory after a forced collection. */
async function sample(client: CDPSession): Promise<Sample> {
  await client.send("HeapProfiler.collectGarbage");
  const { metrics } = await client.send("Performance.getMetrics");
  const of = (name: string): number => metrics.find((metric) => metric.name === name)!.value;
  return { heap: of("JSHeapUsedSize"), nodes: of("Nodes"), listeners: of("JSEventListeners") };
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
}

test(
  "a page that stays open while sessions change keeps its memory flat",
  { ...ofCampaign, timeout: (MINUTES + 5) * 60_000 },
  async ({ skip }) => {
    if (CHROMIUM === undefined) skip(NO_CHROMIUM);
    const stand = await PageStand.open(browser);
    const { page } = stand;
    let others: ReturnType<typeof setInterval> | undefined;
    try {
      const { ask } = await stand.openCoordinator();
      const ids: string[] = [];
      for (let at = 0; at < SESSIONS; at += 20)
        ids.push(
          ...(await Promise.all(
            Array.from({ length: 20 }, async () => {
              const { sessionId } = await ask("sessions", { agent: "nobody" });
              return sessionId as string;
            }),
          )),
        );
      let commits = 0;
      // Each session is paused and, twenty commits later, unpaused: it comes into the inbox and leaves it.
      others = setInterval(() => {
        const at = Math.floor(commits / 40) * 20 + (commits % 20);
        const action = Math.floor(commits++ / 20) % 2 === 0 ? "pause" : "unpause";
        ask(`sessions/${ids[at % ids.length]}/${action}`, {}).catch(() => {}); // The end of the test may cut it off.
      }, 1_000 / COMMITS_PER_SECOND);
      const client = await page.context().newCDPSession(page);
      await client.send("Performance.enable");
      const samples: Sample[] = [];
      const beginsAt = performance.now();
      for (let at = 1; at <= SAMPLES; at++) {
        while (performance.now() - beginsAt < (at / SAMPLES) * MINUTES * 60_000) {
          // Every screen is entered and left again and again.
          await page.keyboard.press("s");
          await page.getByRole("list", { name: "Sessions" }).waitFor();
          await page.keyboard.press("j");
          await page.keyboard.press("Enter");
          await page.getByRole("tab", { name: "timeline" }).waitFor();
          for (const key of "clb") await page.keyboard.press(key);
          for (const key of "hgCFSA") {
            await page.keyboard.press(key);
            await page.waitForTimeout(300);
          }
          await page.keyboard.press("i");
          await page.getByRole("article").first().waitFor();
          await page.waitForTimeout(1_000);
        }
        samples.push(await sample(client));
      }
      const early = samples.slice(WARM_UP, WARM_UP + GROUP);
      const late = samples.slice(-GROUP);
      const of = (group: readonly Sample[], name: keyof Sample): number =>
        median(group.map((each) => each[name]));
      const change = (name: keyof Sample, unit = 1): string =>
        [of(early, name), of(late, name)]
          .map((value) => (value / unit).toFixed(unit === 1 ? 0 : 1))
          .join(" to ");
      const figures = `over ${MINUTES} minutes with ${COMMITS_PER_SECOND} commits a second the heap of the page after a forced collection went from ${change("heap", MIB)} MiB (nodes ${change("nodes")}, listeners ${change("listeners")}; medians of ${GROUP} samples)`;
      console.log(samples.map(({ heap }) => (heap / MIB).toFixed(1)).join(" "));
      noteFigures(figures);
      expect(commits).toBeGreaterThan(0);
      expect(of(late, "heap")).toBeLessThan(1.1 * of(early, "heap") + MIB);
      expect(of(late, "nodes")).toBeLessThan(1.25 * of(early, "nodes") + 500);
      expect(of(late, "listeners")).toBeLessThan(1.25 * of(early, "listeners") + 200);
      expect(stand.trouble).toEqual([]);
    } finally {
      clearInterval(others);
      await stand.close();
    }
  },
);
