// The screens about everything rather than one session, in a real browser, over a coordinator and over a
// local database.
//
// Each test starts several processes beside the browser, so only the page campaign runs them
// (`HOLDFAST_CAMPAIGN`).

import { writeFileSync } from "node:fs";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { CHROMIUM, NO_CHROMIUM, startBrowser } from "../testing/browser.ts";
import { call } from "../testing/coordinator-process.ts";
import { PageStand } from "../testing/page-stand.ts";

const FAMILY = new URL("../../../../examples/09-family/family.ts", import.meta.url).pathname;
const SPENDER = `
import { defineAgent, defineTask } from "holdfast";
const ask = (model, costMicroUsd) => defineTask({ name: \`ask-\${model.replace(/\\W/g, "-")}\`, run: async (_, task) => {
  task.reportUsage({ model, inputTokens: 1000, outputTokens: 50, ...(costMicroUsd === undefined ? {} : { costMicroUsd }) });
} });
const tasks = [ask("dear", 1_250_000), ask("<img src=x onerror=attacked=1>", undefined)];
export default defineAgent({ name: "spender", tasks, run: async (ctx) => {
  for (const task of tasks) await ctx.scheduleTask(task, null);
} });
`;
const HOSTILE_TEXT = `<img src=x onerror="globalThis.attacked=1">\u202e${"y".repeat(2_000)}`;

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

test("schedules are shown, done now and deleted by keyboard", ofCampaign, async () => {
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
  await page.locator("summary", { hasText: "Input" }).click();
  await stand.check("schedules");

  await page.getByRole("button", { name: "Pause", exact: true }).press("Enter");
  await page.getByText("never: it is paused").waitFor();
  expect((await ask("schedules")).schedules).toMatchObject([{ isPaused: true }]);
  await page.getByRole("button", { name: "Unpause" }).press("Enter");
  await page.getByText(/^in /).waitFor();
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

test("schedules of a local database are shown, and deleted", ofCampaign, async () => {
  const { project } = stand;
  await stand.openLocal();
  await page.keyboard.press("S");
  await page.getByText("There is no schedule").waitFor();
  const added = await project.run("schedule", "add", "0 3 * * *", "--run", FAMILY, "--id", "nightly");
  expect(added.code, added.stderr).toBe(0);
  await page.getByRole("article", { name: "nightly" }).waitFor();
  await stand.check("schedules-local");
  await page.getByRole("button", { name: "Pause", exact: true }).press("Enter");
  await page.getByText("never: it is paused").waitFor();
  expect((await project.run("schedule", "list")).stdout).toContain("paused");
  expect((await project.run("schedule", "unpause", "nightly")).code).toBe(0);
  await page.getByRole("button", { name: "Pause", exact: true }).waitFor();
  await page.getByRole("button", { name: "Delete…" }).press("Enter");
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).press("Enter");
  await page.getByText("There is no schedule").waitFor();
});

test("the fleet shows what is queued and why, and a runner is drained by keyboard", ofCampaign, async () => {
  const coordinator = await stand.openCoordinator();
  const { ask } = coordinator;
  await page.keyboard.press("F");
  await page.getByText("No runner is registered").waitFor();
  await page.getByText("Nothing is queued").waitFor();
  await stand.check("fleet-empty");
  for (let at = 0; at < 7; at++) await ask("sessions", { agent: "talker", demands: { gpu: "a100" } });
  await page.getByText("7 runs").waitFor();
  await stand.startRunner(coordinator, "box");
  const card = page.getByRole("article", { name: "box" });
  await card.getByText("online").waitFor();
  await card.getByText("pusher").waitFor();
  await page.getByRole("heading", { name: /no registered runner has gpu=a100 7/ }).waitFor();
  await page.getByText("2 more").click();
  await stand.check("fleet");

  const { sessionId } = await ask("sessions", { agent: "pusher" });
  await expect
    .poll(async () => (await ask(`sessions/${sessionId}`)).status, { timeout: 30_000 })
    .toBe("input_required");
  await card.getByRole("button", { name: "Drain…" }).press("Enter");
  await page.getByRole("dialog").getByRole("button", { name: "Drain" }).press("Enter");
  await page
    .getByText(/It gets nothing new|No runner is registered/)
    .first()
    .waitFor();
});

test(
  "a user sees only their own queue, and a local database says that it has no fleet",
  ofCampaign,
  async () => {
    const { ask } = await stand.openCoordinator();
    const ada = await ask("tokens", { kind: "user", name: "ada" });
    await ask("sessions", { agent: "greeter" });
    await page.getByRole("button", { name: "Sign out" }).click();
    await stand.signIn(ada.secret);
    await page.getByText("Nothing waits for you").waitFor();
    await page.keyboard.press("F");
    await page.getByText("Only admins see the runners").waitFor();
    await page.getByText("Nothing is queued").waitFor();
    await stand.openLocal();
    await page.keyboard.press("F");
    await page.getByText("A local database has no fleet").waitFor();
  },
);

test("the agents screen says why no runner offers a pushed agent, until one does", ofCampaign, async () => {
  const { url, ask } = await stand.openCoordinator();
  await page.keyboard.press("g");
  await page.getByText("No runner offers an agent").waitFor();
  const base64 = Buffer.from("You help.").toString("base64");
  const { current } = await ask("catalogue/agent/helper/versions", {
    files: [{ path: "helper.md", base64 }],
  });
  const section = page.getByRole("region", { name: "Pushed agents that no runner offers" });
  await section.getByText("no runner is online").waitFor();
  await stand.follow("start");
  await page.getByRole("link", { name: "Agents", exact: true }).last().click();
  await section.getByText("no runner is online").waitFor();

  const { secret } = await ask("tokens", { kind: "registration", name: "box" });
  const process = "1".repeat(32);
  const register = (token: string, body: object) =>
    call(url, token, "runners/register", {
      protocol: 1,
      hostname: "box",
      maxRuns: 1,
      process,
      ...body,
    });
  const problem = HOSTILE_TEXT.slice(0, 900);
  const { runnerId, token } = await register(secret, { refusedAgents: [{ name: "helper", problem }] });
  await call(url, token, `runners/${runnerId}/poll`, { pollId: "1", free: 0, waitMs: 0, process });
  await section.getByText(/^runner box refuses it: <img src=x .*⟨202E⟩y+$/).waitFor();
  await stand.check("agents-refused");
  await register(token, { agents: [{ name: "helper", version: current.slice(0, 16) }] });
  await call(url, token, `runners/${runnerId}/poll`, {
    pollId: "2",
    free: 0,
    waitMs: 0,
    process,
    agents: [{ name: "helper", version: current.slice(0, 16) }],
  });
  await page.getByRole("article", { name: "helper" }).waitFor();
  await section.waitFor({ state: "detached" });
});

test("the audit is read backwards and searched, and links to its sessions", ofCampaign, async () => {
  const { ask } = await stand.openCoordinator();
  for (let at = 0; at < 205; at++) await ask("tokens", { kind: "user", name: `user-${at}` });
  const { sessionId } = await ask("sessions", { agent: "greeter" });
  await page.keyboard.press("A");
  await page.getByText(sessionId).waitFor();
  await page.getByText("200 rows read, and there are older ones").waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("coordinator.start");
  await page.getByText("No row that was read has this text").waitFor();
  await page.getByRole("button", { name: "Search in older rows" }).press("Enter");
  await page.getByText(/which is all$/).waitFor();
  await page.getByRole("searchbox").fill("session.start");
  await page.getByText(/^1 of \d+ rows read/).waitFor();
  await stand.check("audit");
  await page.getByRole("link", { name: sessionId }).press("Enter");
  await page.getByRole("tab", { name: "timeline" }).waitFor();
});

test("secrets of this machine are shown by name, and no value reaches the page", ofCampaign, async () => {
  const { project } = stand;
  const value = "a-value-that-nobody-sees";
  writeFileSync(project.path("key"), "0123456789abcdef0123456789abcdef", { mode: 0o600 });
  const env = { HOLDFAST_SECRET_KEY_FILE: project.path("key") };
  const stored = await project.finish(["secret", "set", "DEPLOY_TOKEN", "--to", "file"], {
    env,
    stdin: value,
  });
  expect(stored.code, stored.stderr).toBe(0);
  await stand.openLocal();
  await page.keyboard.press("A");
  await page.getByText("DEPLOY_TOKEN").waitFor();
  await page.getByText("Nothing is recorded yet").waitFor();
  await stand.check("audit-local");
  const report = await page.evaluate<string>(
    `fetch("/ui/secrets", { headers: { "X-Holdfast-Page": localStorage.getItem("holdfast-page-key") } }).then((answer) => answer.text())`,
  );
  expect(report).toBe('{"secrets":[{"name":"DEPLOY_TOKEN","place":"file","used":true}]}');
  expect(await page.content()).not.toContain(value);
});

test(
  "the screen sums costs by day, model, agent and session, and an unknown price is never nothing",
  ofCampaign,
  async () => {
    const { project } = stand;
    await stand.openLocal();
    await page.keyboard.press("C");
    await page.getByText("No session has called a model yet").waitFor();
    await stand.check("costs-empty");
    writeFileSync(project.path("spender.ts"), SPENDER);
    const ran = await project.run("run", "spender.ts", "--session", "dear-one");
    expect(ran.code, ran.stderr).toBe(0);
    await expect
      .poll(() => page.getByTestId("total").textContent(), { timeout: 30_000 })
      .toBe("$1.25 + unknown");
    await page.getByText("The price of one call is unknown").waitFor();
    const model = page.getByRole("region", { name: "By model" });
    expect(await model.getByRole("row").allTextContents()).toEqual([
      "ModelCostCallsTokens",
      "dear$1.2511,050",
      "<img src=x onerror=attacked=1>unknown11,050",
    ]);
    await page.getByRole("region", { name: "By day" }).getByText("$1.25 + unknown").waitFor();
    await stand.check("costs");
    await page.getByRole("region", { name: "By session" }).getByRole("link").press("Enter");
    await page.getByRole("tab", { name: "timeline" }).waitFor();
  },
);

test("the filters find sessions that no page has loaded, and say that they search", ofCampaign, async () => {
  const { ask, url } = await stand.openCoordinator();
  const needle = await ask("sessions", { agent: "greeter", input: "needle", demands: { gpu: "a100" } });
  for (let at = 0; at < 250; at += 25)
    await Promise.all(
      Array.from({ length: 25 }, () => ask("sessions", { agent: "greeter", input: HOSTILE_TEXT })),
    );
  await page.keyboard.press("s");
  await page.getByText("200+").or(page.getByText("251")).first().waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("needle");
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: new RegExp(needle.sessionId) }).waitFor();
  await page.getByText("251 sessions were read, the newest first, which is all").waitFor();
  await stand.check("sessions-search");
  await page.goto(`${url}/ui/sessions?label=gpu%3Da100&endedFrom=2026-01-01`);
  await page.getByText("No session is like that").waitFor();
  await ask(`sessions/${needle.sessionId}/cancel`, { mode: "hard" });
  await page.getByRole("link", { name: new RegExp(needle.sessionId) }).waitFor();
});
