// The lists of the page in a real browser. Sessions have counts, saved views and a choice of all. Agents say
// what they did, and schedules are made and edited.

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

test(
  "sessions are counted, chosen beyond what is read, and found again at their place",
  ofCampaign,
  async () => {
    const { ask } = await stand.openCoordinator();
    const sessions = 230;
    for (let at = 0; at < sessions; at += 23)
      await Promise.all(Array.from({ length: 23 }, () => ask("sessions", { agent: "greeter" })));
    const { sessionId: stopped } = await ask("sessions", { agent: "greeter", title: "Stop <i>me" });
    await ask(`sessions/${stopped}/cancel`, { mode: "hard" });
    await page.keyboard.press("s");
    const list = page.getByTestId("sessions");
    await list.getByText("Stop <i>me").waitFor();
    const statuses = page.getByRole("navigation", { name: "Statuses" });
    // The numbers are the server's: only 200 rows are read.
    await statuses.getByRole("link", { name: `submitted ${sessions}` }).waitFor();
    await statuses.getByRole("link", { name: "cancelled 1" }).waitFor();
    await statuses.getByRole("link", { name: `all ${sessions + 1}` }).waitFor();
    const total = page.locator("output");
    await expect.poll(() => total.innerText()).toBe(String(sessions + 1));
    expect(await list.getByRole("list").getByRole("listitem").first().getAttribute("aria-setsize")).toBe(
      "-1",
    );
    await stand.follow("sessions?agent=nobody");
    await expect.poll(() => total.innerText()).toBe("0");
    expect(await statuses.getByRole("link", { name: /\d/ }).count()).toBe(0);
    await stand.follow("sessions?agent=greeter");
    await statuses.getByRole("link", { name: `submitted ${sessions}` }).waitFor();
    await stand.follow("sessions?text=greeter"); // Nobody counts what no index finds.
    await expect.poll(() => total.innerText()).toMatch(/^2\d\d\+?$/);
    expect(await statuses.getByRole("link", { name: /\d/ }).count()).toBe(0);
    await stand.follow("sessions");
    await statuses.getByRole("link", { name: `submitted ${sessions}` }).waitFor();
    await stand.check("sessions");

    // A choice of all that the filters find, and not of what they leave out.
    await statuses.getByRole("link", { name: /^submitted/ }).click();
    await list.getByText("Stop <i>me").waitFor({ state: "detached" });
    await list.getByRole("listitem").first().waitFor(); // There is nothing to select before.
    await page.getByLabel("Select all rows that are read").check();
    const chosen = page.getByRole("region", { name: "Selected sessions" });
    await chosen.getByText("200 selected").waitFor();
    await chosen.getByRole("button", { name: "Select all that the filters find" }).press("Enter");
    await chosen.getByText(`${sessions} selected`).waitFor();
    await stand.check("sessions-selected");
    await chosen.getByRole("button", { name: "Select none" }).press("Enter");

    // A view keeps the filters under a name, over a reload.
    await page.getByRole("button", { name: "Views" }).press("Enter");
    await page.getByLabel("Name of the view").fill("what <b>waits");
    await page.keyboard.press("Enter");
    await stand.follow("sessions");
    await list.getByText("Stop <i>me").waitFor();
    await page.getByRole("button", { name: "Views" }).press("Enter");
    await stand.check("sessions-views");
    await page
      .getByRole("dialog")
      .getByRole("link", { name: /what <b>waits/ })
      .press("Enter");
    await list.getByText("Stop <i>me").waitFor({ state: "detached" });
    expect(new URL(page.url()).searchParams.get("status")).toBe("submitted");

    // The place is kept for when the person comes back, and keys go on from there.
    const scroll = () => list.evaluate((element) => ((element.scrollTop = 3_000), element.scrollTop));
    await expect.poll(scroll).toBe(3_000); // Once its rows are there.
    const row = list.locator('li[aria-posinset="55"] a'); // In view there, and not made before.
    const id = (await row.getAttribute("data-session"))!;
    await row.press("Enter");
    await page.getByRole("tab", { name: "timeline" }).waitFor();
    await page.goBack();
    await list.locator(`a[data-session="${id}"]`).waitFor();
    expect(await list.evaluate((element) => element.scrollTop)).toBeGreaterThan(2_000);
    await page.keyboard.press("j");
    await page.keyboard.press("k");
    await expect.poll(() => page.evaluate("document.activeElement.dataset.session")).toBe(id);
    expect(stand.trouble).toEqual([]);
  },
);

test(
  "agents say what they did in the last day, and a schedule is made and edited on the page",
  ofCampaign,
  async () => {
    const coordinator = await stand.openCoordinator();
    const { ask } = coordinator;
    await stand.startRunner(coordinator, "box");
    await ask("sessions", { agent: "spender", input: { calls: 1 } });
    await ask("sessions", { agent: "breaker" });
    await page.keyboard.press("g");
    const agent = (name: string) => page.getByRole("article", { name });
    await agent("spender").getByText("$0.04").waitFor({ timeout: 60_000 });
    await agent("spender").getByText("1 run").waitFor();
    await agent("breaker").getByText("1 failed").waitFor({ timeout: 60_000 });
    await agent("talker").getByText("no run").waitFor();
    await stand.check("agents");

    await page.keyboard.press("S");
    await page.getByRole("button", { name: "New schedule" }).press("Enter");
    await page.getByRole("button", { name: "Make the schedule" }).press("Enter");
    await page.getByText("An agent is required").waitFor();
    await page.getByText("The times are required").waitFor();
    await stand.check("schedule-form");
    await page.getByLabel("Name", { exact: true }).fill("nightly");
    await page.getByLabel("Agent", { exact: true }).selectOption("talker");
    await page.getByLabel("Times").fill("99 3 * * *");
    await page.getByLabel("Time zone").fill("UTC");
    await page.getByLabel("Input").fill("the <b>report");
    await page.getByRole("button", { name: "Make the schedule" }).press("Enter");
    await page.getByRole("alert").first().waitFor();
    await page.getByLabel("Times").fill("0 3 * * *");
    await page.getByText("every day at 03:00").waitFor();
    await page.getByRole("button", { name: "Make the schedule" }).press("Enter");
    const card = page.getByRole("article", { name: "nightly" });
    await card.getByText("every day at 03:00").waitFor();

    await card.getByRole("button", { name: "Edit" }).press("Enter");
    await page.getByLabel("Times").fill("30 6 * * 1");
    await page.getByRole("button", { name: "Save" }).press("Enter");
    await card.getByText("every Monday at 06:30").waitFor();
    expect((await ask("schedules")).schedules).toMatchObject([
      { cron: "30 6 * * 1", timeZone: "UTC", start: { agent: "talker", input: "the <b>report" } },
    ]);
    expect(stand.trouble).toEqual([]);
  },
);
