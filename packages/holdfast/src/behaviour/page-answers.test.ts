// A person answers and writes on the page: an answer is for what was read, and a message is stored once.

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

test("a key approves only what was read whole, once for each press", async ({ skip }) => {
  if (CHROMIUM === undefined) skip(NO_CHROMIUM);
  const { page } = stand;
  const { keyboard } = page;
  const ask = async (command: string): Promise<string> =>
    (await coordinator.ask("sessions", { agent: "asker", input: { command } })).sessionId;
  const card = (command: string) => page.getByRole("article").filter({ hasText: command });
  const approve = (command: string) => card(command).getByRole("button", { name: "Approve" });
  const isReady = (command: string): Promise<void> =>
    expect.poll(() => approve(command).isEnabled(), TIMEOUT).toBe(true);
  const hasFocus = (command: string): Promise<void> =>
    expect.poll(() => card(command).evaluate((one) => one.matches(":focus")), TIMEOUT).toBe(true);
  const isApproved = (id: string): Promise<void> =>
    expect
      .poll(async () => (await coordinator.ask(`sessions/${id}`)).output, TIMEOUT)
      .toEqual({ approved: true });
  const waits = async (id: string): Promise<void> =>
    expect((await coordinator.ask(`sessions/${id}`)).status).toBe("input_required");

  // An item slides in above the one that is read.
  const read = await ask("ls -la");
  await stand.follow("sessions");
  await page.getByRole("link", { name: /asks you asker/ }).waitFor();
  await page.getByRole("link", { name: /^Inbox ?1/ }).click();
  await hasFocus("ls -la");
  const came = await ask("rm -rf /srv/app");
  await card("rm -rf").waitFor();
  await hasFocus("ls -la");
  await isReady("ls -la");

  // A key that is held answers the item on which it was pressed.
  await keyboard.down("a");
  await isApproved(read);
  await hasFocus("rm -rf");
  await isReady("rm -rf");
  for (let times = 0; times < 3; times++) await keyboard.down("a");
  await keyboard.up("a");
  const long = await ask(`echo ${"safe ".repeat(5_000)}; rm -rf /srv # THE END`);
  await card("echo safe").waitFor();
  await waits(came);

  // Enter is the focused button's own, and an item of which the end was not shown is not approved.
  await isReady("rm -rf");
  await card("rm -rf").getByRole("button", { name: "Deny" }).focus();
  await keyboard.press("Enter");
  await expect
    .poll(async () => (await coordinator.ask(`sessions/${came}`)).output, TIMEOUT)
    .toEqual({ approved: false });
  expect(new URL(page.url()).pathname).toBe("/ui/");
  await hasFocus("echo safe");
  await expect
    .poll(() => card("echo safe").getByRole("button", { name: "Deny" }).isEnabled(), TIMEOUT)
    .toBe(true);
  await keyboard.press("a");
  await page.getByText("See the rest first").waitFor();
  await page.getByRole("button", { name: "Show more" }).click();
  await page.getByText("THE END").waitFor();
  expect(await approve("echo safe").isEnabled()).toBe(false);
  await keyboard.press("a");
  await waits(long);
  await approve("echo safe").scrollIntoViewIfNeeded();
  await isReady("echo safe");
  await keyboard.press("a");
  await isApproved(long);
  expect(stand.trouble).toEqual([]);
});
