// The home screen in a real browser: what needs the person, what is wrong, what runs, and what it costs.

import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { CHROMIUM, NO_CHROMIUM, startBrowser } from "../testing/browser.ts";
import { PageStand } from "../testing/page-stand.ts";

let browser: Browser;
let stand: PageStand;
let page: Page;

beforeAll(async () => {
  if (CHROMIUM !== undefined) browser = await startBrowser();
});
afterAll(async () => {
  await browser?.close();
});
beforeEach(async ({ skip }) => {
  if (CHROMIUM === undefined) skip(NO_CHROMIUM);
  stand = await PageStand.open(browser);
  page = stand.page;
});
afterEach(async () => {
  if (CHROMIUM !== undefined) await stand.close();
});

/** The text of a figure at the top. */
const figure = (name: string) =>
  page.locator("dt", { hasText: name }).locator("xpath=following-sibling::dd[1]").innerText();
const card = (name: string) => page.getByRole("region", { name, exact: true });

test(
  "home answers what needs the person, what is wrong, what runs and what it costs",
  ofCampaign,
  async () => {
    const coordinator = await stand.openCoordinator();
    const { ask } = coordinator;
    await stand.follow("");
    await page.getByText("Nothing runs now").waitFor();
    await stand.check("home-empty");

    await stand.startRunner(coordinator, "box");
    const { sessionId: asking } = await ask("sessions", { agent: "pusher", title: "Ship the <b>fix" });
    await ask("sessions", { agent: "breaker", title: "Move the orders" });
    await ask("sessions", { agent: "worker", title: "Count the orders" });
    await ask("sessions", { agent: "talker", demands: { gpu: "a100" } });
    await ask("sessions", { agent: "crawler", input: { resumeAtReset: true } });
    const maxCostMicroUsd = 100_000;
    await ask("sessions", { agent: "spender", input: { calls: 5 }, budget: { maxCostMicroUsd } });

    const needs = card("Needs you");
    await needs.getByText("Ship the <b>fix · pusher").waitFor();
    await needs.getByText("git push origin main").waitFor();
    await needs.getByText(/its budget has too little left: \$0.08 of \$0.10 spent/).waitFor();
    const wrong = card("Wrong");
    await wrong.getByText("Move the orders · breaker").waitFor();
    await wrong.getByText(/ECONNREFUSED/).waitFor();
    await wrong.getByText("1 session cannot start").waitFor();
    await wrong.getByText("no registered runner has gpu=a100").waitFor();
    await card("Running").getByText("reads the orders <b>of June</b>").waitFor();
    const cost = card("Cost today");
    await cost.getByText("$0.08 of $0.10").waitFor();
    await cost
      .getByText(/The usage limit of crawler is reached.*reset in .*they continue by themselves/)
      .waitFor();
    await cost.getByText("2 calls").waitFor({ timeout: 60_000 });
    expect([await figure("Needs you"), await figure("Wrong"), await figure("Running")]).toEqual([
      "3",
      "2",
      "1",
    ]);
    expect(await figure("Cost today")).toBe("$0.08");
    await stand.check("home");

    await needs.getByRole("link", { name: /Ship the/ }).press("Enter");
    await page.locator("article[aria-current]").filter({ hasText: asking }).waitFor();
    expect(stand.trouble).toEqual([]);
  },
);

test(
  "a call that waits is shown by the word for its work, and a long path by the name of the file",
  ofCampaign,
  async () => {
    const coordinator = await stand.openCoordinator();
    await stand.startRunner(coordinator, "box");
    await coordinator.ask("sessions", { agent: "mender", title: "Mend the totals" });
    await stand.follow("");
    const row = card("Needs you").getByRole("link", { name: /Mend the totals/ });
    await row.getByText("Edit packages/orders/src/totals/of-each-month/add-the-amounts.ts").waitFor();
    expect(await row.innerText()).not.toMatch(/file_path|\/srv\/app/);
    await stand.check("home-call");
    await page.setViewportSize({ width: 390, height: 800 });
    const path = row.locator("bdi");
    const [whole, seen] = [await path.boundingBox(), await path.locator("..").boundingBox()];
    expect(whole!.width).toBeGreaterThan(seen!.width); // It does not fit,
    expect(whole!.x).toBeLessThan(seen!.x); // its beginning is cut,
    expect(whole!.x + whole!.width).toBeLessThanOrEqual(seen!.x + seen!.width + 1); // and its end is there.
  },
);

test("home asks four times beside the inbox, and each answer is bounded", ofCampaign, async () => {
  await stand.openCoordinator();
  const asked: string[] = [];
  page.on("request", (request) => {
    const { pathname, search } = new URL(request.url());
    if (pathname.startsWith("/v1/") && pathname !== "/v1/changes") asked.push(pathname + search);
  });
  await stand.follow("");
  await page.getByText("Nothing runs now").waitFor();
  await page.getByText("No call of a model was made today").waitFor();
  const own = new Set(asked.filter((path) => !/status=(input_required|paused|failed)/.test(path)));
  expect(own.size).toBeLessThanOrEqual(5);
  for (const path of asked) expect(path).toMatch(/[?&]limit=\d+/);
});

test(
  "home without an answer of its server keeps what it has, says so, and the message can be closed",
  ofCampaign,
  async () => {
    await stand.openCoordinator();
    await stand.follow("");
    await page.getByText("Nothing runs now").waitFor();
    await page.getByText("No call of a model was made today").waitFor();
    await page.route("**/v1/**", (route) => route.abort());
    await page.getByRole("alert").getByText("The server does not answer").waitFor({ timeout: 60_000 });
    await page.getByText("Nothing waits for you.").waitFor();
    await stand.check("home-offline");
    await page.unroute("**/v1/**");
    await page.getByRole("alert").waitFor({ state: "detached" });

    await page.route("**/v1/costs**", (route) =>
      route.fulfill({ status: 500, contentType: "application/json", body: '{"detail":"the disk is full"}' }),
    );
    await page.reload();
    await page.getByRole("alert").getByText("the disk is full").waitFor();
    await page.getByText("The costs could not be read.").waitFor();
    await page.getByText("Nothing runs now").waitFor();
    await stand.check("home-error");
    await page.getByRole("button", { name: "Close the message" }).press("Enter");
    await page.getByRole("alert").waitFor({ state: "detached" });
  },
);

test("a link to an item of the first screen of old leads to the inbox", ofCampaign, async () => {
  await stand.openLocal();
  await stand.follow("?item=none");
  await page.getByText("The item of this link waits no longer").waitFor();
  expect(new URL(page.url()).pathname).toBe("/ui/inbox");
});
