// The screens of one session in a real browser: its journal with the states and forks, and its workspace.
//
// They are in the page campaign (`HOLDFAST_CAMPAIGN`), because each starts several processes beside the browser.

import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { CHROMIUM, NO_CHROMIUM, startBrowser } from "../testing/browser.ts";
import { Project } from "../testing/holdfast-process.ts";
import { PageStand } from "../testing/page-stand.ts";

const TURNS = new URL("../testing/turn-agent.ts", import.meta.url).pathname;
const CHECKPOINT = 4;

// Several processes beside the browser are too much for every run.
const testOfCampaign = test.skipIf(process.env["HOLDFAST_CAMPAIGN"] === undefined);

let browser: Browser;
let project: Project;

beforeAll(async () => {
  if (CHROMIUM !== undefined) browser = await startBrowser();
});
afterAll(async () => {
  await browser?.close();
});
beforeEach(({ skip }) => {
  if (CHROMIUM === undefined) skip(NO_CHROMIUM);
  project = new Project({ fromSources: true });
});
afterEach(async () => {
  if (CHROMIUM !== undefined) await project.dispose();
});

testOfCampaign(
  "a record is reached by its link, shows the states around it, and is forked with another input by keyboard",
  async () => {
    const { code } = await project.run("run", TURNS, "--session", "origin", "--input", '{"n":1}');
    expect(code).toBe(0);
    const stand = await PageStand.open(project, browser);
    const { page } = stand;

    await stand.follow(`sessions/origin?tab=journal&at=${CHECKPOINT - 1}`);
    await page.getByRole("region", { name: "Record 3" }).getByText("task completed").waitFor();
    await page.getByText("file 0 <script>window.attacked = 1</script>").first().waitFor();
    expect(await stand.violations()).toEqual([]);
    await page.keyboard.press("]");
    await page.keyboard.press("]");
    await page.getByText("Before, of record 4").waitFor();
    await page.getByText('"step": 1').first().waitFor();
    await page.getByText('"step": 2').first().waitFor();
    expect(await stand.violations()).toEqual([]);

    await page.keyboard.press("[");
    await page.getByText("After, of record 4").waitFor();
    await page.keyboard.press("f");
    const input = page.getByLabel("Input, as JSON");
    await input.fill("{");
    await page.getByRole("button", { name: "Fork", exact: true }).press("Enter");
    await page.getByText("the input is no JSON").waitFor();
    await input.fill('{"n":2}');
    expect(await stand.violations()).toEqual([]);
    await page.getByRole("button", { name: "Fork", exact: true }).press("Enter");
    await page.getByText(`Their first ${CHECKPOINT + 1} records are the same.`).waitFor();
    const id = new URL(page.url()).searchParams.get("beside")!;
    await page.getByText(`holdfast resume ${id}`).waitFor();

    const resumed = await project.run("resume", id);
    expect(JSON.parse(resumed.stdout)).toEqual({ n: 2 });
    await page.getByText("(completed)").waitFor();
    await page.reload();
    await page.getByText(`Their first ${CHECKPOINT + 1} records are the same.`).waitFor();
    expect(await stand.violations()).toEqual([]);
    await page.setViewportSize({ width: 390, height: 780 });
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(390);
    expect(await stand.violations()).toEqual([]);

    await stand.follow(`sessions/${id}`);
    await page.getByRole("link", { name: "forked from another session" }).click();
    await page.getByText(`Their first ${CHECKPOINT + 1} records are the same.`).waitFor();
    expect(await page.evaluate("globalThis.attacked")).toBeUndefined();
    expect(stand.trouble).toEqual([]);
    await page.close();
  },
);
