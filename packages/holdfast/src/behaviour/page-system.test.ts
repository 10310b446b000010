// The screens about everything rather than one session, in a real browser, over a coordinator and over a local database.
//
// Each test starts several processes beside the browser, so only the page campaign runs them (`HOLDFAST_CAMPAIGN`).

import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { CHROMIUM, NO_CHROMIUM, startBrowser } from "../testing/browser.ts";
import { PageStand } from "../testing/page-stand.ts";

const FAMILY = new URL("../../../../examples/09-family/family.ts", import.meta.url).pathname;
const HOSTILE_TEXT = `<img src=x onerror="globalThis.attacked=1">\u202e${"y".repeat(2_000)}`;

// Several processes beside the browser are too much for every run.
const testOfCampaign = test.skipIf(process.env["HOLDFAST_CAMPAIGN"] === undefined);

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
  if (CHROMIUM === undefined) return;
  const attacked = await page.evaluate("globalThis.attacked");
  await stand.close();
  expect([attacked, stand.trouble]).toEqual([undefined, []]);
});

testOfCampaign("schedules are shown, done now and deleted by keyboard", async () => {
  const coordinator = await stand.openCoordinator();
  const { url, admin, ask } = coordinator;
  await page.keyboard.press("S");
  await page.getByText("There is no schedule").waitFor();
  await stand.check("schedules-empty");
  const put = (id: string, body: object): Promise<Response> =>
    fetch(`${url}/v1/schedules/${id}`, {
      method: "PUT",
      headers: { authorization: `Bearer ${admin}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  await put("nightly", {
    cron: "0 3 * * *",
    timeZone: "Europe/Berlin",
    start: { agent: "greeter", input: { note: HOSTILE_TEXT } },
  });
  await page.getByRole("article", { name: "nightly" }).waitFor();
  await page.getByText("Input").click();
  await stand.check("schedules");

  await page.getByRole("button", { name: "Start now" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText(/started as ses_/).waitFor();
  const { sessions } = await ask("sessions");
  expect(sessions).toMatchObject([{ agent: "greeter", input: { note: HOSTILE_TEXT } }]);
  await page.getByRole("button", { name: "Delete…" }).press("Enter");
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).press("Enter");
  await page.getByText("There is no schedule").waitFor();
  expect(await ask("schedules")).toEqual({ schedules: [] });
});

testOfCampaign("schedules of a local database are shown, and deleted", async () => {
  const { project } = stand;
  await stand.openLocal();
  await page.keyboard.press("S");
  await page.getByText("There is no schedule").waitFor();
  const added = await project.run("schedule", "add", "0 3 * * *", "--run", FAMILY, "--id", "nightly");
  expect(added.code, added.stderr).toBe(0);
  await page.getByRole("article", { name: "nightly" }).waitFor();
  await stand.check("schedules-local");
  await page.getByRole("button", { name: "Delete…" }).press("Enter");
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).press("Enter");
  await page.getByText("There is no schedule").waitFor();
});
