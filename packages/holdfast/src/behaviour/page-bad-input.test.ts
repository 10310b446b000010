// An open page under which something is replaced: its own files, its database, or the address in a link. A
// real browser.
//
// Each test starts processes beside the browser, so only the page campaign runs them (`HOLDFAST_CAMPAIGN`).

import { rmSync } from "node:fs";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { CHROMIUM, NO_CHROMIUM, startBrowser } from "../testing/browser.ts";
import { PageStand } from "../testing/page-stand.ts";

const FAMILY = new URL("../../../../examples/09-family/family.ts", import.meta.url).pathname;

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
  "a page that is left open over an upgrade reloads once for a screen whose file is gone, and then says so",
  ofCampaign,
  async () => {
    await stand.openLocal();
    let loads = 0;
    page.on("load", () => loads++);
    let isGone = true;
    await page.route("**/ui/assets/costs-*.js", (route) =>
      isGone ? route.fulfill({ status: 404, body: "" }) : route.continue(),
    );
    await page.keyboard.press("C");
    await page.getByText("A file of this screen cannot be loaded").waitFor();
    // The text may be there before the page has loaded all of it.
    await expect.poll(() => [loads, new URL(page.url()).pathname]).toEqual([1, "/ui/costs"]);
    expect(await stand.violations()).toEqual([]);
    isGone = false;
    await page.reload();
    await page.getByText("No session has called a model yet").waitFor();
  },
);

test(
  "a screen whose file is needed while the server is away comes with the server, and the page stays",
  ofCampaign,
  async () => {
    await stand.openLocal();
    await page.route("**/*", (route) => route.abort("connectionrefused"));
    await page.keyboard.press("C");
    await page.getByText("A file of this screen cannot be loaded").waitFor();
    // Longer than the page waits between two looks for the server.
    await page.waitForTimeout(1_500);
    expect(page.url()).toContain("/ui/costs");
    expect(await page.getByText("A file of this screen cannot be loaded").count()).toBe(1);
    await page.unroute("**/*");
    await page.getByText("No session has called a model yet").waitFor();
  },
);

test("a page whose database is replaced under it shows the sessions of the new one", ofCampaign, async () => {
  const { project } = stand;
  expect((await project.run("run", FAMILY, "--session", "before")).code).toBe(0);
  await stand.openLocal();
  await page.keyboard.press("s");
  await page
    .getByRole("link", { name: /before/ })
    .first()
    .waitFor();
  for (const end of ["", "-wal", "-shm"])
    rmSync(project.path(`.holdfast/holdfast.db${end}`), { force: true });
  expect((await project.run("run", FAMILY, "--session", "after")).code).toBe(0);
  await page.getByRole("link", { name: /after/ }).first().waitFor();
  await expect.poll(() => page.getByRole("link", { name: /before$/ }).count()).toBe(0);
  await stand.follow("sessions/before");
  await page.getByText("there is no session before").waitFor();
  expect(stand.trouble).toEqual([]);
});

test(
  "links that nobody could have copied from the page open a screen that says what is wrong",
  ofCampaign,
  async () => {
    await stand.openLocal();
    for (const [path, said] of [
      ["sessions/none", "there is no session none"],
      ["sessions/a%2Fb", "there is no session"],
      ["sessions/%3Cscript%3E", "session"],
      [`sessions/${"x".repeat(300)}`, "session"],
      ["no-such-screen", "There is no such screen"],
      ["?item=none", "The item of this link waits no longer"],
      ["sessions?agent=none&cost=much&endedFrom=never", "Remove all filters"],
      ["start?agent=%00", "Sessions of this database start in a terminal"],
    ] as const) {
      await stand.follow(path);
      await page.getByText(said).first().waitFor();
    }
    expect(stand.trouble).toEqual([]);
  },
);
