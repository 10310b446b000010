// The screens of one session in a real browser, over a coordinator and a runner. A person follows the work, answers
// in place, reads the timeline, and acts on a failure.

import { writeFileSync } from "node:fs";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { CHROMIUM, NO_CHROMIUM, startBrowser } from "../testing/browser.ts";
import { PageStand, type OpenCoordinator } from "../testing/page-stand.ts";

const AGENTS = new URL("../testing/page-work-agents.ts", import.meta.url).pathname;
const TIMEOUT = { timeout: 30_000 };

let browser: Browser;
let stand: PageStand;
let coordinator: OpenCoordinator;

beforeAll(async () => {
  if (CHROMIUM === undefined) return;
  browser = await startBrowser();
  stand = await PageStand.open(browser);
  coordinator = await stand.openCoordinator();
  await stand.startRunner(coordinator, "box", "--agents", AGENTS);
});
afterAll(async () => {
  await stand?.close();
  await browser?.close();
});

async function start(agent: string, input?: object): Promise<string> {
  const { sessionId } = await coordinator.ask("sessions", { agent, input });
  return sessionId as string;
}

/** Lets the step of a coder end. */
function open(gate: number): void {
  writeFileSync(stand.project.path(`open-${gate}`), "");
}

test("a person follows the work, edits a call and approves it in place, and the answer is said once", async ({
  skip,
}) => {
  if (CHROMIUM === undefined) skip(NO_CHROMIUM);
  const { page } = stand;
  const id = await start("coder", { text: "Mend the sum" });
  await stand.follow(`sessions/${id}?tab=conversation`);
  const now = page.getByRole("group", { name: "What it does now" });
  await now.getByText("thinking").waitFor();
  open(1);
  await now.getByText("Run npm test").waitFor();
  await page.getByText("1,234 tokens, $0.012").waitFor();
  await page.getByRole("region", { name: "Read src/add.ts" }).getByText("4 lines").waitFor();
  await stand.check("work-running");
  open(2);

  // The end of an output that failed is shown, and all of it in place.
  const run = page.getByRole("region", { name: "Run npm test" });
  await run.getByText("2 tests fail").waitFor();
  expect(await run.getByText("at line 3\n").count()).toBe(0);
  await run.getByRole("button").press("Enter");
  await run.getByRole("region", { name: "Output" }).getByText("at line 3\n").waitFor();
  await run.getByRole("button", { name: "As recorded" }).click();
  await run.getByRole("region", { name: "Record of Bash" }).getByText('"command": "npm test"').waitFor();
  const edit = page.getByRole("region", { name: "Edit src/add.ts" });
  await edit.getByText("return a - b;").waitFor();
  await edit.getByText("return a + b;").waitFor();

  const card = page.getByRole("article", { name: "Asks for your approval: Bash" });
  await card.scrollIntoViewIfNeeded();
  await stand.check("work-asks");
  await card.getByRole("button", { name: "Edit the call" }).press("Enter");
  const call = card.getByLabel("The call, as JSON");
  await call.fill('{ "command": ');
  const approve = card.getByRole("button", { name: "Approve this call" });
  await expect.poll(() => approve.isEnabled(), TIMEOUT).toBe(true);
  await approve.click();
  await card.getByText("This is no JSON").waitFor();
  await page.reload(); // A text that was typed stays.
  await expect.poll(() => call.inputValue(), TIMEOUT).toBe('{ "command": ');
  await call.fill('{ "command": "git push origin fix" }');
  await stand.check("work-edited");
  await expect.poll(() => approve.isEnabled(), TIMEOUT).toBe(true);
  await approve.press("Enter");
  await page.getByRole("region", { name: "Run git push origin fix" }).waitFor();
  open(3);
  await page.getByText("completed").first().waitFor();
  expect(await page.getByText("The sum is right now.").count()).toBe(1);
  expect(await page.getByText("Output").count()).toBe(0);
  expect(await page.evaluate("globalThis.attacked")).toBeUndefined();
  await stand.check("work-done");
  expect(stand.trouble).toEqual([]);
});

test("a call is denied with a reason by keyboard, which the agent reads", ofCampaign, async ({ skip }) => {
  if (CHROMIUM === undefined) skip(NO_CHROMIUM);
  const { page } = stand;
  const id = await start("coder", { text: "Mend the sum", isGated: false });
  await stand.follow(`sessions/${id}?tab=conversation`);
  const card = page.getByRole("article", { name: "Asks for your approval: Bash" });
  await card.focus();
  await page.keyboard.press("e");
  await card.getByRole("textbox", { name: "Reason" }).fill("not on a Friday");
  await page.keyboard.press("Escape");
  await card.focus();
  await expect.poll(() => card.getByRole("button", { name: "Deny" }).isEnabled(), TIMEOUT).toBe(true);
  await page.keyboard.press("d");
  await page.getByText("not allowed: not on a Friday").waitFor();
  expect(await coordinator.ask(`sessions/${id}`)).toMatchObject({ status: "completed" });
});

test(
  "work is stopped and continues, and a message that is typed without a server is stored once it is back",
  ofCampaign,
  async ({ skip }) => {
    if (CHROMIUM === undefined) skip(NO_CHROMIUM);
    const { page } = stand;
    const id = await start("coder", { text: "Mend the sum" });
    await stand.follow(`sessions/${id}?tab=conversation`);
    await page.getByRole("button", { name: "Stop" }).press("Enter");
    await page.getByText("paused: by user").waitFor();
    expect(await page.getByRole("group", { name: "What it does now" }).count()).toBe(0);
    await stand.check("work-stopped");
    await page.getByRole("button", { name: "Unpause" }).click();
    await expect
      .poll(async () => (await coordinator.ask(`sessions/${id}`)).status, TIMEOUT)
      .not.toBe("paused");

    await page.context().setOffline(true);
    await page.getByLabel("Message to the agent").fill("use the other function");
    await page.keyboard.press("Enter");
    await page.getByText("No answer yet").waitFor();
    await page.getByLabel("Message to the agent").fill("and the next");
    await stand.check("work-offline");
    await page.context().setOffline(false);
    await page.getByText("Stored. The agent takes it when it next looks.").waitFor();
    expect(await page.getByLabel("Message to the agent").inputValue()).toBe("and the next");
    await page.getByLabel("Message to the agent").fill("");
    await coordinator.ask(`sessions/${id}/cancel`, { mode: "hard" });
    stand.trouble.length = 0;
  },
);
