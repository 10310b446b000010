// The page shows the cost of sessions, and offers a higher limit where a budget is used up.

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CHROMIUM, NO_CHROMIUM, startBrowser } from "../testing/browser.ts";
import { PageStand, type OpenCoordinator } from "../testing/page-stand.ts";

const TIMEOUT = { timeout: 15_000 };

let browser: Browser;
let stand: PageStand;
let coordinator: OpenCoordinator;

beforeAll(async () => {
  if (CHROMIUM === undefined) return;
  browser = await startBrowser();
  stand = await PageStand.open(browser);
  coordinator = await stand.openCoordinator();
  await stand.startRunner(coordinator, "box");
});
afterAll(async () => {
  await stand?.close();
  await browser?.close();
});

test("the list shows and finds what a session has spent, without a budget too", async ({ skip }) => {
  if (CHROMIUM === undefined) skip(NO_CHROMIUM);
  const { page } = stand;
  const { ask } = coordinator;
  await ask("sessions", { agent: "reviewer", input: { repo: "acme/app", mode: "fast" } });
  const { sessionId } = await ask("sessions", { agent: "spender", input: { calls: 2 } });
  await stand.follow("sessions");
  const row = page.getByRole("link", { name: /completed spender/ });
  await row.getByText("$0.0800").waitFor();
  expect((await ask(`sessions/${sessionId}`)).cost).toEqual({
    calls: 2,
    unpriced: 0,
    costMicroUsd: 80_000,
    inputTokens: 1_000,
    outputTokens: 200,
  });
  await stand.follow("sessions?cost=0.08");
  await row.waitFor();
  expect(await page.getByRole("listitem").count()).toBe(1);
  await stand.follow("sessions?cost=0.09");
  await page.getByText("No session is like that").waitFor();
  expect(stand.trouble).toEqual([]);
});
