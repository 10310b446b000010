// The page in a real browser, over sessions that `holdfast run` made in a local database.
//
// One test is in every run, and all are in the page campaign (`HOLDFAST_CAMPAIGN`).

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import axe from "axe-core";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { CHROMIUM, NO_CHROMIUM, startBrowser } from "../testing/browser.ts";
import { call, startCoordinator, tokenIn } from "../testing/coordinator-process.ts";
import { Project } from "../testing/holdfast-process.ts";
import { BEYOND_THE_EDGE } from "../testing/page-stand.ts";

const FAMILY = new URL("../../../../examples/09-family/family.ts", import.meta.url).pathname;
const AGENTS = new URL("../testing/page-agents.ts", import.meta.url).pathname;
const PICTURES = process.env["HOLDFAST_PAGE_PICTURES"];
const HOSTILE = new URL("../testing/hostile-agent.ts", import.meta.url).pathname;

let browser: Browser;
let project: Project;
let page: Page;
/** Everything that the page asked for from elsewhere, and everything that went wrong in it. */
let trouble: string[];

beforeAll(async () => {
  if (CHROMIUM !== undefined) browser = await startBrowser();
});
afterAll(async () => {
  await browser?.close();
});

beforeEach(async ({ skip }) => {
  if (CHROMIUM === undefined) skip(NO_CHROMIUM);
  project = new Project({ fromSources: true });
  trouble = [];
  page = await browser.newPage({ viewport: { width: 1200, height: 800 } });
  page.setDefaultTimeout(15_000);
  page.on("pageerror", (error) => trouble.push(String(error)));
  page.on("request", (request) => {
    if (!request.url().startsWith("http://127.0.0.1:")) trouble.push(request.url());
  });
  page.on("console", (message) => {
    if (message.text().includes("Content Security Policy")) trouble.push(message.text());
  });
});
afterEach(async () => {
  if (CHROMIUM === undefined) return;
  await page.close();
  await project.dispose();
});

/** Starts `holdfast ui`. @returns the address that signs in. */
async function startUi(): Promise<string> {
  const ui = project.start(["ui", "--json"]);
  await ui.says('"listening"');
  return (JSON.parse(ui.stdout) as { readonly url: string }).url;
}

/** The violations of WCAG A and AA that axe finds. Looks at all sizes, as `PageStand.check` does. */
async function violations(): Promise<unknown[]> {
  await tryInSizes();
  await page.evaluate(axe.source);
  const found = await page.evaluate<{
    readonly violations: readonly {
      readonly id: string;
      readonly nodes: readonly { readonly html: string }[];
    }[];
  }>(`axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] })`);
  return found.violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html.slice(0, 200))]);
}

/** An answer counts only when the item was shown for a moment. */
async function untilEnabled(name: string): Promise<void> {
  const button = page.getByRole("button", { name });
  await button.scrollIntoViewIfNeeded();
  await expect.poll(() => button.isEnabled(), { timeout: 15_000 }).toBe(true);
}

let pictures = 0;

async function tryInSizes(): Promise<void> {
  pictures++;
  for (const [kind, colorScheme, width] of [
    ["light", "light", 1200],
    ["dark", "dark", 1200],
    ["phone", "light", 390],
  ] as const) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 800 });
    expect(await page.evaluate(BEYOND_THE_EDGE), kind).toEqual([]);
    if (PICTURES !== undefined)
      await page.screenshot({ path: join(PICTURES, `page-${pictures}-${kind}.png`) });
  }
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 1200, height: 800 });
}

test("a person signs in, sees what waits, answers it by keyboard, and nothing hostile happens", async () => {
  const url = await startUi();
  await page.goto(url);
  await page.getByText("Nothing waits for you").waitFor();
  expect(page.url()).toMatch(/\/ui\/$/); // The code is gone from the address.
  expect(await page.evaluate("document.cookie")).toBe("");
  expect(await violations()).toEqual([]);
  await page.keyboard.press("i");

  // Live: a session that begins after the page was opened appears without a reload.
  const streams = await page.evaluate<number>(
    `performance.getEntriesByType("resource").filter(({ name }) => name.endsWith("/v1/sessions?status=paused&limit=500")).length`,
  );
  expect(streams).toBeLessThan(5); // Nothing has changed, so nothing was read again and again.
  const running = project.start(["run", HOSTILE, "--title", "Ship \u202ethe build"]);
  const id = await running.sessionId();
  await page.getByRole("article").getByText("Ship the build").waitFor();
  await expect.poll(() => page.title(), { timeout: 15_000 }).toBe("(1) Holdfast");
  const action = (await page.getByTestId("action").textContent())!;
  expect(action).toMatch(/^git push origin main && echo x{3000} && rm -rf .\/build # \\u\{202e\}exe.txt$/);
  expect(await violations()).toEqual([]);

  await page.keyboard.press("j"); // An item that comes in is not selected.
  await page.keyboard.press("Enter");
  await page.getByRole("tab", { name: "timeline" }).waitFor();
  expect(page.url()).toContain(`/ui/sessions/${id}`);
  await page.locator("header").getByText("Ship the build").waitFor();
  await page.getByRole("heading", { name: "Plan" }).waitFor(); // A session with messages opens on them.
  await page.keyboard.press("t");
  await page.getByText("2 attempts", { exact: true }).waitFor();
  expect(await violations()).toEqual([]);
  await page.reload();
  await page.getByText("2 attempts", { exact: true }).waitFor();
  await page.keyboard.press("c");
  await page.getByRole("heading", { name: "Plan" }).waitFor();
  expect(await page.locator(".prose a").count()).toBe(0);
  expect(await page.locator("img, iframe, .prose script").count()).toBe(0);
  expect(await violations()).toEqual([]);

  await page.keyboard.press("i");
  await untilEnabled("Approve");
  await page.keyboard.press("a");
  const { code, stdout } = await running.finished;
  expect([code, JSON.parse(stdout)]).toEqual([0, { pushed: true }]);
  await expect.poll(() => page.title(), { timeout: 15_000 }).toBe("Holdfast");

  await page.keyboard.press("s");
  await page.getByRole("link", { name: /completed hostile/ }).waitFor();
  expect(await violations()).toEqual([]);
  expect(await page.evaluate("globalThis.attacked")).toBeUndefined();
  expect(trouble).toEqual([]);
});

test(
  "a session that no process runs is answered on the page, and takes the answer when it resumes",
  ofCampaign,
  async () => {
    await page.goto(await startUi());
    await page.getByText("Nothing waits for you.").waitFor();
    await page.keyboard.press("i");
    const { stdout } = await project.run("run", HOSTILE, "--park");
    const id = stdout.trim();
    await untilEnabled("Deny");
    for (const key of ["j", "e"]) await page.keyboard.press(key);
    await page.getByRole("textbox", { name: "Reason" }).fill("not on a Friday");
    await page.keyboard.press("Escape");
    await page.keyboard.press("k"); // The focus goes back to the item.
    await untilEnabled("Deny");
    await page.keyboard.press("d");
    const command = page.locator("code", { hasText: `holdfast resume ${id}` });
    for (const screen of ["", "?", `sessions/${id}`]) {
      if (screen !== "") await page.goto(new URL(screen, page.url()).href);
      const taken = page.getByText(/the session takes it when it runs|which the session takes/i);
      await taken.first().waitFor();
      await command.first().waitFor();
      expect(await page.getByRole("button", { name: "Deny" }).count()).toBe(0);
    }
    expect(await violations()).toEqual([]);

    const [, ...typed] = (await command.first().innerText()).split(" ");
    const resumed = await project.run(...typed);

    expect([resumed.code, JSON.parse(resumed.stdout)]).toEqual([0, { pushed: false }]);
  },
);

test("the link of a session leads to its question in the inbox", ofCampaign, async () => {
  await page.goto(await startUi());
  const parked: string[] = [];
  for (let n = 0; n < 2; n++) parked.push((await project.run("run", HOSTILE, "--park")).stdout.trim());
  for (const id of parked) {
    await page.goto(new URL(`/ui/sessions/${id}`, page.url()).href);
    await page.getByRole("link", { name: "answer in the inbox" }).click();
    await page.locator("article[aria-current]").filter({ hasText: id }).waitFor();
  }
});

test("a code that was used signs nobody in, and the page says what to do", ofCampaign, async () => {
  const url = await startUi();
  await page.goto(url);
  await page.getByText("Nothing waits for you").waitFor();
  const other = await browser.newPage();
  await other.goto(url);
  await other.getByText("run `holdfast ui` again").waitFor();
  expect(new URL(other.url()).hash).toBe("");
  await other.close();
});

test("a tree is shown with its budgets, and is found through the palette", ofCampaign, async () => {
  const { stdout } = await project.run("run", FAMILY, "--budget", "5.00usd", "--json");
  const id = /ses_[0-9a-f-]{36}/.exec(stdout)![0];
  await page.goto(await startUi());
  await page.getByText("Nothing waits for you").waitFor();
  await page.keyboard.press("Control+k");
  await page.keyboard.type(id);
  await page.keyboard.press("Enter");
  await page.getByRole("tab", { name: "timeline" }).waitFor();
  await page.keyboard.press("b");
  await page.getByText(`${id}-2`).waitFor();
  await page.getByRole("region", { name: "Tree" }).getByText("$0.03 of $5.00").waitFor();
  expect(await violations()).toEqual([]);
  expect(trouble).toEqual([]);
});

test(
  "a user of a coordinator sees only their own sessions, and a revoked token signs them out",
  ofCampaign,
  async () => {
    const coordinator = await startCoordinator(project);
    const { url } = coordinator;
    const admin = tokenIn(coordinator);
    const [ada, bob] = await Promise.all(
      ["ada", "bob"].map((name) => call(url, admin, "tokens", { kind: "user", name })),
    );
    const { sessionId } = await call(url, ada.secret, "sessions", { agent: "greeter" });
    const signIn = async (token: string): Promise<void> => {
      await page.getByLabel("Token").fill(token);
      await page.keyboard.press("Enter");
    };

    await page.goto(`${url}/ui/sessions/${sessionId}`);
    await signIn(bob.secret);
    await page.getByText(`there is no session ${sessionId}`).waitFor();
    await page.keyboard.press("s");
    await page.getByText("There is no session yet").waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await signIn(ada.secret);
    await page.getByRole("link", { name: /submitted greeter/ }).waitFor();
    expect(await violations()).toEqual([]);

    await fetch(`${url}/v1/tokens/${ada.token.tokenId}`, {
      method: "DELETE",
      headers: { authorization: `Bearer ${admin}` },
    });

    await page.getByLabel("Token").waitFor();
    expect(await page.getByText("greeter").count()).toBe(0);
    expect(trouble).toEqual([]);
  },
);

test("a page that is open on a session says when the session was deleted", ofCampaign, async () => {
  const { stdout } = await project.run("run", FAMILY, "--json");
  const id = /ses_[0-9a-f-]{36}/.exec(stdout)![0];
  const url = new URL(await startUi());
  await page.goto(url.href);
  await page.getByText("Nothing waits for you").waitFor();
  await page.goto(`${url.origin}/ui/sessions/${id}`);
  await page.getByRole("tab", { name: "timeline" }).waitFor();
  expect((await project.run("delete", id, "--subtree")).code).toBe(0);
  await page.reload();
  await page.getByText(`there is no session ${id}`).waitFor();
  await page.keyboard.press("s");
  await page.getByText("There is no session yet").waitFor();
});

/** A coordinator with a runner of the agents of this test, and the page signed in to it. */
async function openCoordinator(): Promise<{
  readonly url: string;
  readonly get: (path: string) => Promise<any>; // oxlint-disable-line typescript/no-explicit-any -- a test says its type.
}> {
  const coordinator = await startCoordinator(project);
  const admin = tokenIn(coordinator);
  const { url } = coordinator;
  const { secret } = await call(url, admin, "tokens", { kind: "registration", name: "box" });
  const runner = project.start(["runner", "-c", url, "--name", "box", "--agents", AGENTS], {
    env: { HOLDFAST_TOKEN: secret },
  });
  await runner.says("waiting for runs");
  await page.goto(`${url}/ui/`);
  await page.getByLabel("Token").fill(admin);
  await page.keyboard.press("Enter");
  await page.getByText("Nothing waits for you.").waitFor();
  await page.keyboard.press("i");
  return { url, get: (path) => call(url, admin, path) };
}

test("a session is started by a form that shows mistakes at their fields", ofCampaign, async () => {
  const { get } = await openCoordinator();
  await page.keyboard.press("g");
  await page.getByRole("article", { name: "reviewer" }).waitFor();
  expect(await violations()).toEqual([]);
  await page.getByRole("article", { name: "reviewer" }).getByRole("link", { name: "start" }).click();
  await page.getByRole("button", { name: "Start" }).click();
  expect(await page.getByText("is required").count()).toBe(2);
  await expect.poll(() => page.evaluate("document.activeElement.id")).toBe("field-repo");
  expect(await violations()).toEqual([]);
  await page.keyboard.type("a/b");
  await page.getByLabel("mode").selectOption("thorough");
  await page.getByRole("button", { name: "Start" }).click();
  await page
    .getByText(/"reviewed": "a\/b"/)
    .first()
    .waitFor();
  const { sessions } = await get("sessions");
  expect(sessions.map(({ input }: { readonly input: unknown }) => input)).toEqual([
    { repo: "a/b", depth: 2, mode: "thorough" },
  ]);
  expect(await page.evaluate("globalThis.attacked")).toBeUndefined();
  expect(trouble).toEqual([]);
});

test("a person talks with a conversational agent until it ends", ofCampaign, async () => {
  const { url } = await openCoordinator();
  await page.goto(`${url}/ui/start?agent=talker`);
  await page.getByLabel("Request").fill("hello");
  await page.getByRole("button", { name: "Start" }).click();
  await page.getByText("You said: hello").waitFor();
  await page.getByPlaceholder("Your next message").fill("bye");
  await page.keyboard.press("Enter");
  await page.getByText("You said: bye").waitFor();
  await page.getByText("completed").first().waitFor();
  expect(await violations()).toEqual([]);
  expect(trouble).toEqual([]);
});

test("a request that a person writes stays when the agents cannot be read again", ofCampaign, async () => {
  const { url } = await openCoordinator();
  await page.goto(`${url}/ui/start?agent=talker`);
  await page.getByLabel("Request").fill("hello");
  await page.route("**/v1/agents", (route) =>
    route.fulfill({ status: 503, contentType: "application/json", body: '{"title":"away","status":503}' }),
  );
  const refused = page.waitForResponse((response) => response.status() === 503);
  // A session that another person starts makes the page read again.
  await page.evaluate(
    `fetch("/v1/sessions", { method: "POST", headers: { "X-Holdfast-Page": localStorage.getItem("holdfast-page-key"), "Content-Type": "application/json" },
     body: JSON.stringify({ agent: "talker", input: "hi" }) })`,
  );
  await refused;
  await page.evaluate(
    "new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))",
  );
  expect(await page.getByLabel("Request").inputValue()).toBe("hello");
});

test(
  "an answer is kept as the rule that is shown, and several items are answered at once",
  ofCampaign,
  async () => {
    const { url, get } = await openCoordinator();
    const start = async (): Promise<string> =>
      (
        await page.evaluate<{ readonly sessionId: string }>(
          `fetch("/v1/sessions", { method: "POST", headers: { "X-Holdfast-Page": localStorage.getItem("holdfast-page-key"), "Content-Type": "application/json" },
           body: JSON.stringify({ agent: "pusher", budget: { maxCostMicroUsd: 1000000 } }) }).then((answer) => answer.json())`,
        )
      ).sessionId;
    const first = await start();
    await page.getByRole("article").waitFor();
    await page.getByLabel("The answer holds").selectOption("session");
    await page.getByText("shell(git push:*)").waitFor();
    expect(await violations()).toEqual([]);
    await page.getByRole("button", { name: "Approve" }).click();
    await expect
      .poll(async () => (await get(`sessions/${first}`)).output, { timeout: 15_000 })
      .toEqual({ approved: true, remember: { scope: "session" } });

    await page.getByText("Nothing waits for you").waitFor(); // The answered item is gone.
    const others = [await start(), await start()];
    await expect.poll(() => page.getByRole("article").count(), { timeout: 15_000 }).toBe(2);
    for (const key of ["j", "x", "j", "x"]) await page.keyboard.press(key);
    await page.getByRole("button", { name: "Approve…" }).click();
    expect(await page.getByRole("dialog").getByText("git push origin main").count()).toBe(2);
    await page.getByRole("button", { name: "Approve all 2" }).click();
    for (const id of others)
      await expect
        .poll(async () => (await get(`sessions/${id}`)).output, { timeout: 15_000 })
        .toEqual({ approved: true });
    await page.getByText("Nothing waits for you").waitFor();

    const last = await start();
    await page.goto(`${url}/ui/sessions?text=${last}`);
    await page.getByRole("checkbox", { name: "Select pusher" }).click();
    await page.getByRole("button", { name: "Raise…" }).click();
    await page.getByLabel("Limit in dollars").fill("5");
    await page.getByRole("button", { name: "Raise", exact: true }).click();
    await expect
      .poll(async () => (await get(`sessions/${last}`)).account.limits.maxCostMicroUsd, { timeout: 15_000 })
      .toBe(5_000_000);
    expect(await violations()).toEqual([]);
    await page.getByRole("checkbox", { name: "Select pusher" }).click();
    await page.getByRole("button", { name: "Cancel…" }).click();
    await page.getByRole("button", { name: "Cancel one session" }).click();
    await page.getByRole("link", { name: /cancelled pusher/ }).waitFor();
    expect(trouble).toEqual([]);
  },
);

test(
  "the agents screen of a local page reports on each field of the project's agent files",
  ofCampaign,
  async () => {
    mkdirSync(project.path(".holdfast/agents"), { recursive: true });
    writeFileSync(
      project.path(".holdfast/agents/reviewer.md"),
      "---\nname: reviewer\ndescription: <b>Reviews</b>\nnonsense: 1\n---\nReview it.\n",
    );
    await page.goto(await startUi());
    await page.getByText("Nothing waits for you").waitFor();
    await page.keyboard.press("g");
    await page.getByRole("heading", { name: "Agents", exact: true }).last().waitFor();
    await page
      .getByText(/^\d+ fields$/)
      .first()
      .click();
    await page.getByText("nonsense", { exact: true }).waitFor();
    expect(await violations()).toEqual([]);
    expect(trouble).toEqual([]);
  },
);
