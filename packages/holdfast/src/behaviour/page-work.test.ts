// The screens of one session in a real browser, over a coordinator and a runner. A person follows the work, answers
// in place, reads the timeline, and acts on a failure.

import { rmSync, writeFileSync } from "node:fs";
import { loadavg } from "node:os";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { CHROMIUM, NO_CHROMIUM, startBrowser } from "../testing/browser.ts";
import { noteFigures, PageStand, type OpenCoordinator } from "../testing/page-stand.ts";

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

/** Every step of a coder waits for its gate. */
async function start(agent: string, input?: object): Promise<string> {
  for (const gate of GATES) rmSync(gateOf(gate), { force: true });
  const { sessionId } = await coordinator.ask("sessions", { agent, input });
  return sessionId as string;
}

const GATES = [1, 2, 3];

function gateOf(gate: number): string {
  return stand.project.path(`open-${gate}`);
}

/** Lets the step of a coder end. */
function open(gate: number): void {
  writeFileSync(gateOf(gate), "");
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
  await page.getByRole("group", { name: "Read src/add.ts" }).getByText("4 lines").waitFor();
  await stand.check("work-running");
  open(2);

  // The end of an output that failed is shown, and all of it in place.
  const run = page.getByRole("group", { name: "Run npm test", exact: true });
  await run.getByText("2 tests fail").waitFor();
  expect(await run.getByText("at line 3\n").count()).toBe(0);
  await run.getByRole("button").press("Enter");
  await run.getByRole("group", { name: "Output of Run npm test" }).getByText("at line 3\n").waitFor();
  await run.getByRole("button", { name: "As recorded" }).click();
  await run.getByRole("group", { name: "Record of Run" }).getByText('"command": "npm test"').waitFor();
  const read = page.getByRole("group", { name: "Read src/add.ts", exact: true });
  await read.getByRole("button").press("Enter"); // Two outputs at once have two names.
  await read.getByRole("group", { name: "Output of Read src/add.ts" }).waitFor();
  expect(await stand.violations()).toEqual([]);
  const edit = page.getByRole("group", { name: "Edit src/add.ts" });
  await edit.getByText("return a - b;").waitFor();
  await edit.getByText("return a + b;").waitFor();

  // The steps of a plan stand there, whether they are an entry of a coding agent or a call of ours.
  await page.getByRole("group", { name: "Plan" }).getByText("[>] mend it").waitFor();
  await page.getByRole("group", { name: "Plan" }).getByText("[>] publish the fix").waitFor();

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
  await page.getByRole("group", { name: "Run git push origin fix" }).waitFor();
  const receipt = page
    .getByRole("status")
    .filter({ hasText: /Approved with an edit by you \(first\), .*\d:\d\d/ });
  await receipt.getByText("Run git push origin fix").waitFor();
  open(3);
  await page.getByText("completed").first().waitFor();
  await expect.poll(() => page.getByText("The sum is right now.").count()).toBe(1);
  expect(await page.getByText("Output").count()).toBe(0);
  expect(await page.evaluate("globalThis.attacked")).toBeUndefined();
  await receipt.waitFor(); // The card is gone, and what became of it stays.
  await stand.check("work-done");
  expect(stand.trouble).toEqual([]);
});

test(
  "the text of a model is shown while it is written, and the recorded message takes its place",
  ofCampaign,
  async ({ skip }) => {
    if (CHROMIUM === undefined) skip(NO_CHROMIUM);
    const { page } = stand;
    const id = await start("writer");
    await stand.follow(`sessions/${id}`); // It opens on its conversation.
    const draft = page.getByRole("article", { name: "assistant, being written" });
    await draft.getByText("The first half of the answer,").waitFor();
    expect(await draft.getByText("and the second").count()).toBe(0);
    expect(await page.getByText("The first half").count()).toBe(1);
    await page.getByRole("group", { name: "What it does now" }).getByText("writing").waitFor();
    await stand.check("work-writes");
    open(1);
    await draft.getByText("and the second").waitFor();
    await page.reload();
    await draft.getByText("and the second").waitFor();
    const { entries } = await coordinator.ask(`sessions/${id}/entries?from=0&limit=9`);
    expect(JSON.stringify(entries)).not.toContain("first half");
    open(2);
    await page.getByRole("article", { name: "assistant", exact: true }).getByText("and the second").waitFor();
    await draft.waitFor({ state: "detached" });
    expect(await page.getByText("The first half").count()).toBe(1);
    expect(await page.evaluate("globalThis.attacked")).toBeUndefined();
    expect(stand.trouble).toEqual([]);
  },
);

test(
  "the page of a local database shows the texts that two other processes are writing",
  ofCampaign,
  async ({ skip }) => {
    if (CHROMIUM === undefined) skip(NO_CHROMIUM);
    for (const gate of GATES) rmSync(gateOf(gate), { force: true });
    const local = await PageStand.open(browser, stand.project);
    await local.openLocal();
    // The first process owns the database, and the second one reaches it through the first.
    const runs = [];
    for (const id of ["first", "second"]) {
      const run = stand.project.start(["run", `${AGENTS}#writer`, "--session", id]);
      await run.says("Write the answer");
      runs.push(run);
    }
    const draft = local.page.getByRole("article", { name: "assistant, being written" });
    for (const id of ["first", "second"]) {
      await local.follow(`sessions/${id}`);
      await draft.getByText("The first half of the answer,").waitFor();
      expect(await draft.getByText("and the second").count()).toBe(0);
    }
    open(1);
    await draft.getByText("and the second").waitFor();
    open(2);
    await local.page.getByRole("article", { name: "assistant", exact: true }).waitFor();
    await draft.waitFor({ state: "detached" });
    for (const run of runs) expect((await run.finished).code).toBe(0);
    expect(local.trouble).toEqual([]);
    await local.page.close();
  },
);

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

test(
  "a failed session begins with its cause, and its retry is another session that is made once",
  ofCampaign,
  async ({ skip }) => {
    if (CHROMIUM === undefined) skip(NO_CHROMIUM);
    const { page } = stand;
    const id = await start("faulty", { path: "/srv/app" });
    await stand.follow(`sessions/${id}`);
    const cause = page.getByRole("region", { name: "Cause" });
    await cause
      .getByText(/^connect ECONNREFUSED/)
      .first()
      .waitFor();
    await cause.getByText("ECONNREFUSED", { exact: true }).waitFor();
    await cause.getByText("start the database, and try again").first().waitFor();
    await stand.check("work-failed");

    let isLost = false;
    await page.route("**/fork", async (route) => {
      if (isLost) return route.continue();
      isLost = true;
      await route.fetch();
      return route.abort();
    });
    const retry = page.getByRole("button", { name: "Retry from the last commit" });
    await retry.press("Enter");
    await page.getByText("The server does not answer").waitFor();
    await retry.press("Enter");
    await page.getByRole("link", { name: "forked from another session" }).waitFor();
    await page.unroute("**/fork");
    await cause
      .getByText(/^connect ECONNREFUSED/)
      .first()
      .waitFor();
    const { sessions } = await coordinator.ask("sessions?agent=faulty");
    expect(sessions).toHaveLength(2);
    await page.getByRole("button", { name: "Fork…" }).click();
    await page.getByRole("dialog", { name: "Fork the session" }).getByLabel("The fork begins").waitFor();
    await page.keyboard.press("Escape");
    stand.trouble.length = 0;
  },
);

test(
  "the timeline has a scale, opens what went in and came out, and leads to children",
  ofCampaign,
  async ({ skip }) => {
    if (CHROMIUM === undefined) skip(NO_CHROMIUM);
    const { page } = stand;
    const id = await start("planner");
    await stand.follow(`sessions/${id}`);
    const timeline = page.getByRole("region", { name: "Timeline" });
    await timeline.getByText("now", { exact: true }).waitFor();
    await timeline.getByRole("button", { name: /measure/ }).press("Enter");
    await timeline.getByRole("group", { name: "Output of measure" }).getByText('"lines": 12').waitFor();
    await stand.check("work-timeline");
    await timeline.getByRole("button", { name: /the end of waiter #1 open/ }).waitFor();
    await timeline.getByRole("button", { name: /the end of waiter #2 open/ }).waitFor();
    await timeline.getByRole("link", { name: "waiter #1" }).first().click();
    await page.getByRole("link", { name: "its parent" }).click();
    await coordinator.ask(`sessions/${id}/cancel`, { mode: "hard" });
    await timeline.getByRole("button", { name: /the end of waiter #2 cancelled/ }).waitFor();
    expect(await timeline.getByRole("button", { name: / open/ }).count()).toBe(0);
    expect(stand.trouble).toEqual([]);
  },
);

/** The heap and the nodes of a page that shows a long text stay far below the size of the text in a document. */
const MIB_MAX = 80;
const NODES_MAX = 3_000;
const SCROLLS = 100;
/** Collects the time from each frame to the next one. */
const COUNT_FRAMES = `
  globalThis.frameMs = [];
  let last = performance.now();
  const next = (now) => {
    globalThis.frameMs.push(now - last);
    last = now;
    requestAnimationFrame(next);
  };
  requestAnimationFrame((now) => {
    last = now;
    requestAnimationFrame(next);
  });
`;

test(
  "a text of four million characters is shown to its end, and the page stays small",
  ofCampaign,
  async ({ skip }) => {
    if (CHROMIUM === undefined) skip(NO_CHROMIUM);
    const { page } = stand;
    const id = await start("lengthy", { chars: 4_000_000 });
    await stand.follow(`sessions/${id}?tab=conversation`);
    const run = page.getByRole("group", { name: "Run cat log", exact: true });
    await run.getByRole("button").first().press("Enter");
    const output = run.getByRole("group", { name: "Output of Run" });
    await output.waitFor();
    await page.evaluate(COUNT_FRAMES);
    const pieces = (): Promise<number> => output.locator(".piece").count();
    for (const count of [1, 11, 110]) {
      await expect.poll(pieces, TIMEOUT).toBeGreaterThanOrEqual(count === 1 ? 1 : count - 20);
      const more = output.getByRole("button", { name: "Show more" });
      await expect.poll(() => more.count(), TIMEOUT).toBe(1);
      await more.press("Enter");
    }
    await expect.poll(pieces, TIMEOUT).toBeGreaterThanOrEqual(200);
    await page.mouse.move(600, 400);
    for (let at = 0; at < SCROLLS; at++) {
      await page.mouse.wheel(0, 10_000);
      await page.waitForTimeout(50);
    }
    const frames = (await page.evaluate<number[]>("globalThis.frameMs")).toSorted((a, b) => a - b);
    expect(frames.length).toBeGreaterThan(SCROLLS);
    const [p50, p95, most] = [0.5, 0.95, 1].map((part) =>
      Math.round(frames[Math.ceil(frames.length * part) - 1]!),
    );
    noteFigures(
      `the frames in which a text of four million characters is shown and scrolled take ${p50}/${p95}/${most} ms (p50/p95/longest of ${frames.length}, load average ${Math.round(loadavg()[0]!)})`,
    );
    const client = await page.context().newCDPSession(page);
    await client.send("Performance.enable");
    await client.send("HeapProfiler.collectGarbage");
    const { metrics } = await client.send("Performance.getMetrics");
    const of = (name: string): number => metrics.find((metric) => metric.name === name)!.value;
    expect(of("JSHeapUsedSize") / 2 ** 20).toBeLessThan(MIB_MAX);
    expect(of("Nodes")).toBeLessThan(NODES_MAX);
    expect(stand.trouble).toEqual([]);
  },
);
