// The page shows the cost of sessions, offers a higher limit where a budget is used up, and says when a usage
// limit is reset.

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
  await row.getByText("$0.08").waitFor();
  expect((await ask(`sessions/${sessionId}`)).cost).toEqual({
    calls: 2,
    unpriced: 0,
    costMicroUsd: 80_000,
    inputTokens: 1_000,
    outputTokens: 200,
  });
  await stand.follow("sessions?cost=0.08");
  await row.waitFor();
  expect(await page.getByTestId("sessions").getByRole("listitem").count()).toBe(1);
  await stand.follow("sessions?cost=0.09");
  await page.getByText("No session is like that").waitFor();
  expect(stand.trouble).toEqual([]);
});

test("the costs of one day are a row, and those of several days a chart from the first to the last", async ({
  skip,
}) => {
  if (CHROMIUM === undefined) skip(NO_CHROMIUM);
  const { page } = stand;
  const day = (ago: number): string => new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10);
  const part = { model: "m", calls: 1, unpriced: 0, costMicroUsd: 100_000, inputTokens: 1, outputTokens: 1 };
  for (const [name, days] of [
    ["one", [day(0)]],
    ["several", [day(0), day(3)]],
  ] as const) {
    const parts = days.map((at) => ({ ...part, day: at }));
    await page.route("**/v1/costs*", (route) =>
      route.fulfill({ json: { costs: [{ sessionId: "s", agent: "a", createdAt: 1, parts }] } }),
    );
    await stand.follow("costs");
    const box = page.getByRole("region", { name: "By day" });
    const isOne = days.length === 1;
    await page.getByText(isOne ? "1 call, 1 token in" : "2 calls, 2 tokens in").waitFor();
    await expect.poll(() => box.locator("canvas").count(), TIMEOUT).toBe(isOne ? 0 : 1);
    expect(await box.getByText(day(0)).isVisible()).toBe(isOne);
    await stand.check(`costs-${name}`);
    await page.unroute("**/v1/costs*");
  }
  expect(stand.trouble).toEqual([]);
});

test("a session whose budget is used up says so once, and is raised to a limit that is enough", async ({
  skip,
}) => {
  if (CHROMIUM === undefined) skip(NO_CHROMIUM);
  const { page } = stand;
  const { ask } = coordinator;
  const budget = { maxCostMicroUsd: 100_000 };
  const { sessionId } = await ask("sessions", { agent: "spender", input: { calls: 3 }, budget });
  await stand.follow(`sessions/${sessionId}`);
  const why = "its budget has too little left: $0.08 of $0.10 spent, and the next call may need $0.06";
  await page.getByText(why).waitFor();
  const shown = await page.locator("main").innerText();
  expect(shown).not.toContain("maxCostMicroUsd");
  expect(shown.split("$0.08 of $0.10 spent")).toHaveLength(2);
  await page.getByText("waits: the session is paused").waitFor();
  expect(await page.getByRole("button", { name: "Unpause" }).count()).toBe(0);
  await stand.check("budget-session");
  await stand.follow("inbox");
  await page.getByRole("article").getByText(why).waitFor();
  await expect.poll(() => page.getByLabel("Limit in dollars").inputValue(), TIMEOUT).toBe("0.28");
  await stand.check("budget-inbox");
  await stand.follow("sessions");
  await page.getByText(why).waitFor();
  await stand.check("budget-list");
  await stand.follow(`sessions/${sessionId}`);
  await page.getByRole("button", { name: "Raise" }).click();
  await expect.poll(async () => (await ask(`sessions/${sessionId}`)).status, TIMEOUT).toBe("completed");
  expect(stand.trouble).toEqual([]);
});

test("a session that met a usage limit says when the limit is reset, or when it continues without a person", async ({
  skip,
}) => {
  if (CHROMIUM === undefined) skip(NO_CHROMIUM);
  const { page } = stand;
  const { ask } = coordinator;
  const cause = "the plan of the crawler is used up: wait until the reset, or buy more";
  for (const [resumeAtReset, word] of [
    [false, "the limit is reset"],
    [true, "it continues by itself"],
  ] as const) {
    const { sessionId } = await ask("sessions", { agent: "crawler", input: { resumeAtReset } });
    await stand.follow(`sessions/${sessionId}`);
    const why = page.getByText(new RegExp(`^${word} .*\\d:\\d\\d.*; ${cause}`));
    await why.waitFor();
    const row = await ask(`sessions/${sessionId}`);
    expect(row.quota).toEqual({
      pool: "crawler",
      resetsAt: expect.any(Number),
      ...(resumeAtReset ? { resumesAt: row.resumesAt } : {}),
    });
    expect(row.resumesAt).toEqual(resumeAtReset ? expect.any(Number) : undefined);
    expect((await page.locator("main").innerText()).split("used up")).toHaveLength(2);
    for (const screen of ["sessions?status=paused", "inbox"]) {
      await stand.follow(screen);
      await why.waitFor();
    }
    await stand.check(`quota-${resumeAtReset}`);
  }
  expect(stand.trouble).toEqual([]);
});

test("the head of a session has the windows of its budget and the name of its runner", async ({ skip }) => {
  if (CHROMIUM === undefined) skip(NO_CHROMIUM);
  const { page } = stand;
  const budget = { maxTokens: 50_000, windows: [{ per: "day", maxCostMicroUsd: 500_000 }] };
  const { sessionId } = await coordinator.ask("sessions", { agent: "editor", budget });
  await stand.follow(`sessions/${sessionId}`);
  await page.getByText("on box", { exact: true }).waitFor();
  await page.getByText("budget: tokens 0 of 50,000").waitFor();
  await page.getByText("budget: cost $0.00 of $0.50 per day").waitFor();
  await stand.check("window-head");
  await stand.follow(`sessions/${sessionId}?tab=tree`);
  await page.getByRole("region", { name: "Tree" }).getByText("cost $0.00 of $0.50 per day").waitFor();
  await stand.follow("fleet");
  await page.getByText("with 1 session, room for").waitFor();
});

test("the conversation colours the lines of differences and edits, and names the tool that failed", async ({
  skip,
}) => {
  if (CHROMIUM === undefined) skip(NO_CHROMIUM);
  const { page } = stand;
  const { sessionId } = await coordinator.ask("sessions", { agent: "editor" });
  await stand.follow(`sessions/${sessionId}?tab=conversation`);
  const failed = page.getByRole("group", { name: "Run" });
  await failed.getByText("failed", { exact: true }).waitFor();
  await failed.getByText("2 tests fail").waitFor();
  for (const [line, look] of [
    ["-minus", "text-bad"],
    ["+plus", "text-good"],
    ["return a - b;", "bg-bad-ground"],
    ["return a + b;", "bg-good-ground"],
  ] as const)
    await page.locator(`.${look}`, { hasText: line }).waitFor();
  await stand.check("differences");
  expect(stand.trouble).toEqual([]);
});
