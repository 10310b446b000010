// The pictures of the documents: the real page and the real terminal, over sessions from a script.
//
// Where `HOLDFAST_PAGE_PICTURES` names a folder, the test leaves them there. Otherwise it only makes them, as it
// would fail where a screen can no longer be shown.

import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { CHROMIUM, NO_CHROMIUM, startBrowser } from "../testing/browser.ts";
import { PageStand, type OpenCoordinator } from "../testing/page-stand.ts";
import { terminalPicture } from "../testing/terminal-picture.ts";

const AGENTS = new URL("../testing/picture-agents.ts", import.meta.url).pathname;
const FOLDER = process.env["HOLDFAST_PAGE_PICTURES"];
const BYTES_MAX = 150_000;
/** `scale` is the pixels of the picture for one of the page. A document shows a narrow picture in its own size. */
const DESK = { width: 1200, height: 720, scale: 2 };
const PHONE = { width: 390, height: 800, scale: 1 };
const QUALITY = 85;
const TERMINAL = { columns: 110, rows: 24 };

let browser: Browser;
let stand: PageStand;

beforeAll(async () => {
  if (CHROMIUM !== undefined) browser = await startBrowser();
});
afterAll(async () => {
  await browser?.close();
});
beforeEach(async ({ skip }) => {
  if (CHROMIUM === undefined) skip(NO_CHROMIUM);
  stand = await PageStand.open(browser);
});
afterEach(async () => {
  if (CHROMIUM !== undefined) await stand.close();
});

/** Sessions of every kind. @returns the id of the one whose conversation is shown. */
async function startSessions({ ask }: OpenCoordinator): Promise<string> {
  const text = "12.5 % off 19.99 is one cent too low. Find out why, mend it, and open a pull request.";
  const start = async (session: object, status: string): Promise<string> => {
    const { sessionId } = await ask("sessions", session);
    await expect.poll(async () => (await ask(`sessions/${sessionId}`)).status).toBe(status);
    return sessionId as string;
  };
  await start({ agent: "reviewer", title: "Review pull request 412", input: { calls: 3 } }, "completed");
  const doing = [
    ["Compare the queues of three clouds", "reads 14 of 40 papers"],
    ["Summarise the incidents of June", "groups 212 reports by cause"],
  ] as const;
  for (const [title, what] of doing)
    await start({ agent: "researcher", title, input: { doing: what } }, "working");
  await start({ agent: "migrator", title: "Move the orders to the new database" }, "failed");
  const budget = { maxCostMicroUsd: 120_000 };
  const limited = { agent: "reviewer", title: "Review pull request 418", input: { calls: 9 }, budget };
  await start(limited, "paused");
  await start({ agent: "announcer", title: "Release notes of 2.4.0" }, "input_required");
  return start({ agent: "maintainer", title: "Mend the rounding", input: { text } }, "input_required");
}

/** Makes the picture of the page as it is, in light and in dark. */
async function take(name: string, size: typeof DESK): Promise<void> {
  const { page } = stand;
  const { scale, ...viewport } = size;
  await page.setViewportSize(viewport);
  const client = await page.context().newCDPSession(page);
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    expect(await stand.violations(), `${name}, ${colorScheme}`).toEqual([]);
    const clip = { x: 0, y: 0, ...viewport, scale };
    const { data } = await client.send("Page.captureScreenshot", { format: "webp", quality: QUALITY, clip });
    keep(`${name}-${colorScheme}.webp`, Buffer.from(data, "base64"));
  }
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize(DESK);
}

function keep(name: string, content: Buffer | string): void {
  expect(content.length, name).toBeLessThan(BYTES_MAX);
  if (FOLDER !== undefined) writeFileSync(join(resolve(FOLDER), name), content);
}

/** `holdfast top`, as it is on a terminal. */
async function takeTop({ url, adminTokenFile }: OpenCoordinator): Promise<void> {
  const { columns, rows } = TERMINAL;
  const command = `holdfast top --url ${url} --token-file ${adminTokenFile}`;
  const top = stand.project.shellOnTerminal(`stty cols ${columns} rows ${rows}; ${command}`, {
    NO_COLOR: undefined,
  });
  await top.says("git push origin fix-rounding");
  top.child.stdin.write("q");
  const { stdout } = await top.finished;
  const about =
    "A terminal with holdfast top: sessions with their status, cost and reason, and the call that one of them asks to approve";
  keep("top.svg", terminalPicture(stdout, { ...TERMINAL, about }));
}

/** The page names the storage of its coordinator, which is a folder of this test. */
async function nameStorage(): Promise<void> {
  await stand.page.route("**/ui/about", async (route) => {
    const response = await route.fetch();
    const about = (await response.json()) as object;
    await route.fulfill({ response, json: { ...about, place: "sqlite:/srv/holdfast.db" } });
  });
}

test(
  "the pictures of the documents are made, and each is small",
  { ...ofCampaign, timeout: 600_000 },
  async () => {
    await nameStorage();
    const coordinator = await stand.openCoordinator();
    await stand.startRunner(coordinator, "build-1", "--agents", AGENTS);
    const { page } = stand;
    const id = await startSessions(coordinator);

    await stand.follow("");
    const costs = page.getByRole("region", { name: "Cost today" }).getByText(/^\d+ calls?$/);
    await expect.poll(() => costs.count(), { timeout: 60_000 }).toBe(4);
    await take("page-home", DESK);

    await stand.follow(`sessions/${id}?tab=conversation`);
    const card = page.getByRole("article", { name: "Asks for your approval: Bash" });
    await card.scrollIntoViewIfNeeded();
    await expect.poll(() => card.getByRole("button", { name: "Approve" }).isEnabled()).toBe(true);
    await take("page-session", DESK);

    await stand.follow("inbox");
    await page.getByRole("article").first().waitFor();
    await take("page-inbox", PHONE);

    await takeTop(coordinator);
    expect(stand.trouble).toEqual([]);
  },
);
