// A person answers and writes on the page: an answer is for what was read, and a message is stored once.

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { CHROMIUM, NO_CHROMIUM, startBrowser } from "../testing/browser.ts";
import { call } from "../testing/coordinator-process.ts";
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

  const receipt = (text: RegExp) => page.getByRole("status").filter({ hasText: text });

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
  // The receipt has the person, the time and the call, also when the card is gone.
  await expect.poll(() => card("ls -la").count(), TIMEOUT).toBe(0);
  await receipt(/Approved by you \(first\), .*\d:\d\d/)
    .getByText("Run ls -la")
    .waitFor();
  await hasFocus("rm -rf");
  await isReady("rm -rf");
  for (let times = 0; times < 3; times++) await keyboard.down("a");
  await keyboard.up("a");
  const long = await ask(`echo ${"safe ".repeat(5_000)}; rm -rf /srv # THE END`);
  await card("echo safe").waitFor();
  await waits(came);

  // Enter is the focused button's own, and an item of which the end was not shown is not approved.
  await isReady("rm -rf");
  const deny = card("rm -rf").getByRole("button", { name: "Deny" });
  await expect
    .poll(async () => {
      // The card takes no answer while the long one beside it finds its place. A second Enter after the
      // answer would reach the next card and open its session.
      if (await deny.isEnabled({ timeout: 500 }).catch(() => false)) await deny.press("Enter");
      return (await coordinator.ask(`sessions/${came}`)).output;
    }, TIMEOUT)
    .toEqual({ approved: false });
  expect(new URL(page.url()).pathname).toBe("/ui/inbox");
  await receipt(/Denied by you/)
    .getByText("Run rm -rf /srv/app")
    .waitFor();
  expect(await receipt(/Approved by you/).count()).toBe(0); // One receipt at a time.
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
  await receipt(/Approved by you/).waitFor();
  await page.getByRole("heading", { name: "Nothing waits for you" }).waitFor();
  await stand.check("inbox-receipt");
  expect(stand.trouble).toEqual([]);
});

test("a person whose answer comes second is told which answer counts and whose, and the audit has both", async ({
  skip,
}) => {
  if (CHROMIUM === undefined) skip(NO_CHROMIUM);
  const { page } = stand;
  const { ask, url } = coordinator;
  const { secret } = await ask("tokens", { kind: "user", name: "ada" });
  const command = "git push --force";
  const { sessionId } = await call(url, secret, "sessions", { agent: "asker", input: { command } });
  await stand.follow("inbox");
  const deny = page.getByRole("article").filter({ hasText: command }).getByRole("button", { name: "Deny" });
  await expect.poll(() => deny.isEnabled(), TIMEOUT).toBe(true);
  // Ada answers while the page is on its way to the server.
  await page.route("**/answer", async (route) => {
    await call(url, secret, `sessions/${sessionId}/answer`, { answer: { approved: true } });
    await route.continue();
  });
  await deny.click();
  const notice = page
    .getByRole("status")
    .filter({ hasText: "the question was answered before: yes by user:ada" });
  await notice.getByText("yours was not stored").waitFor();
  await page.unroute("**/answer");
  await expect
    .poll(async () => (await ask(`sessions/${sessionId}`)).output, TIMEOUT)
    .toEqual({ approved: true });
  await expect.poll(() => page.getByRole("article").filter({ hasText: command }).count(), TIMEOUT).toBe(0);
  expect(await notice.count()).toBe(1);
  await stand.check("lost-race");

  await stand.follow(`audit?text=${encodeURIComponent(command)}`);
  const rows = page.getByRole("list", { name: "Rows" }).getByRole("listitem");
  await expect.poll(() => rows.count(), TIMEOUT).toBeGreaterThan(0);
  const counted = rows.filter({ hasText: "user:ada" });
  await counted.getByText("answered yes to Allow shell?").click();
  await counted.getByText(command).last().waitFor();
  await stand.check("audit-answer");
  expect(stand.trouble).toEqual([]);
});

test("a message of a person is stored once, however often its answer is lost", async ({ skip }) => {
  if (CHROMIUM === undefined) skip(NO_CHROMIUM);
  const { page } = stand;
  const { ask } = coordinator;
  const { sessionId } = await ask("sessions", {
    agent: "talker",
    input: { text: "hello", conversation: true },
  });
  await stand.follow(`sessions/${sessionId}?tab=conversation`);
  await page.getByText("You said: hello").waitFor();
  const box = page.getByLabel("Message to the agent");
  const outgoing = page.getByRole("status", { name: "Sent messages" });
  const said = async (): Promise<readonly unknown[]> =>
    (await ask(`sessions/${sessionId}/entries?from=0&limit=50`)).entries
      .filter(({ role }: { readonly role: string }) => role === "user")
      .map(({ content }: { readonly content: unknown }) => content);

  // The page sends a message again without a press, also when the agent has taken it meanwhile.
  await loseAnswers(page, "**/signals", 2);
  await box.fill("pay 100 once");
  await box.press("Enter");
  await outgoing.getByText("No answer yet").waitFor();
  await outgoing.getByText("The agent has taken it.").waitFor();
  expect(await said()).toEqual(["hello", "pay 100 once"]);
  await page.unroute("**/signals");

  // A message that was taken back and is sent again from the box is the same message.
  await loseAnswers(page, "**/signals", 1);
  await box.fill("ship it once");
  await box.press("Enter");
  await outgoing.getByRole("button", { name: "Take back" }).click();
  expect(await box.inputValue()).toBe("ship it once");
  await box.press("Enter");
  await outgoing.getByText("The agent has taken it.").waitFor();
  expect(await said()).toEqual(["hello", "pay 100 once", "ship it once"]);

  // The same text is another message once the first one is known to be stored.
  await box.fill("ship it once");
  await box.press("Enter");
  await expect.poll(said).toEqual(["hello", "pay 100 once", "ship it once", "ship it once"]);
  await page.unroute("**/signals");

  // A refused message waits for the person, with the messages behind it.
  await page.route("**/signals", (route) =>
    route.fulfill({ status: 422, contentType: "application/json", body: '{"detail":"it is too long"}' }),
  );
  for (const text of ["first", "second"]) {
    await box.fill(text);
    await box.press("Enter");
  }
  await outgoing.getByText("it is too long").waitFor();
  await outgoing.getByText("Waits for the message before it.").waitFor();
  await page.unroute("**/signals");
  await outgoing.getByRole("button", { name: "Send again" }).click();
  await expect.poll(async () => (await said()).slice(4)).toEqual(["first", "second"]);
  expect(stand.trouble).toEqual([]);
});

test("a receipt speaks of its own message, and not of an earlier one with the same signal", async ({
  skip,
}) => {
  if (CHROMIUM === undefined) skip(NO_CHROMIUM);
  const { page } = stand;
  const { ask } = coordinator;
  const input = { text: "hello", conversation: true };
  const { sessionId } = await ask("sessions", { agent: "talker", input });
  await stand.follow(`sessions/${sessionId}?tab=conversation`);
  await page.getByText("You said: hello").waitFor();
  const box = page.getByLabel("Message to the agent");
  const outgoing = page.getByRole("status", { name: "Sent messages" });
  const receipt = (text: string) => outgoing.getByRole("listitem").filter({ hasText: text });
  await box.fill("the first");
  await box.press("Enter");
  await receipt("the first").getByText("The agent has taken it.").waitFor();

  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByRole("button", { name: "Unpause" }).waitFor();
  for (const text of ["the second", "the third"]) {
    await box.fill(text);
    await box.press("Enter");
    await receipt(text).getByText("Stored. The agent takes it when it next looks.").waitFor();
  }
  expect(await outgoing.getByText("The agent has taken it.").count()).toBe(0);
  expect(await stand.violations()).toEqual([]);

  await page.getByRole("button", { name: "Unpause" }).click();
  await receipt("the third").getByText("The agent has taken it.").waitFor();
  await page.getByText("You said: the third").waitFor();
  expect(stand.trouble).toEqual([]);
});

test("a fork and a start by a schedule's button are made once, although the first answer is lost", async ({
  skip,
}) => {
  if (CHROMIUM === undefined) skip(NO_CHROMIUM);
  const { page } = stand;
  const { ask, url, admin } = coordinator;
  const input = { repo: "acme/app", mode: "fast" };
  const count = async (): Promise<number> => (await ask("sessions?agent=reviewer")).sessions.length;
  const { sessionId } = await ask("sessions", { agent: "reviewer", input });
  await expect.poll(async () => (await ask(`sessions/${sessionId}`)).status, TIMEOUT).toBe("completed");
  await stand.follow(`sessions/${sessionId}?tab=journal&at=0`);
  await page.getByRole("button", { name: "Fork from here" }).click();
  await loseAnswers(page, "**/fork", 1);
  const fork = page.getByRole("button", { name: "Fork", exact: true });
  await fork.click();
  await page.getByText("The server does not answer").waitFor();
  expect(await count()).toBe(2);
  await fork.click();
  await expect.poll(() => new URL(page.url()).searchParams.has("beside"), TIMEOUT).toBe(true);
  expect(await count()).toBe(2);

  await fetch(`${url}/v1/schedules/nightly`, {
    method: "PUT",
    headers: { authorization: `Bearer ${admin}`, "content-type": "application/json" },
    body: JSON.stringify({ cron: "0 3 * * *", timeZone: "UTC", start: { agent: "reviewer", input } }),
  });
  await stand.follow("schedules");
  await loseAnswers(page, "**/v1/sessions", 1);
  const startNow = page.getByRole("button", { name: "Start now" });
  await startNow.click();
  await page.getByText("The server does not answer").waitFor();
  await startNow.click();
  await page.getByText("started as").waitFor();
  expect(await count()).toBe(3);
  await startNow.click();
  await expect.poll(count, TIMEOUT).toBe(4);
  expect(stand.trouble).toEqual([]);
});

test("a text that a person types stays until it is used, whatever the page reads or shows meanwhile", async ({
  skip,
}) => {
  if (CHROMIUM === undefined) skip(NO_CHROMIUM);
  const { page } = stand;
  const { ask } = coordinator;
  const input = { text: "hello", conversation: true };
  const { sessionId } = await ask("sessions", { agent: "talker", input });
  await stand.follow(`sessions/${sessionId}?tab=conversation`);
  await page.getByText("You said: hello").waitFor();

  // A message is under way for long, and the person writes on.
  const held = Promise.withResolvers<void>();
  await page.route("**/signals", async (route) => {
    await held.promise;
    await route.continue();
  });
  const box = page.getByLabel("Message to the agent");
  await box.focus();
  await page.keyboard.type("third");
  await page.keyboard.press("Enter");
  await page.getByText("Being sent").waitFor();
  await page.keyboard.type("fourth");
  await page.keyboard.press("Enter");
  await page.keyboard.type("half a tho");
  held.resolve();
  await page.getByText("You said: third").waitFor();
  await page.getByText("You said: fourth").waitFor();
  expect(await box.inputValue()).toBe("half a tho");

  // Another view, another screen and a reload.
  await page.getByRole("tab", { name: "timeline" }).click();
  await page.getByRole("tab", { name: "conversation" }).click();
  expect(await box.inputValue()).toBe("half a tho");
  await page.reload();
  await expect.poll(() => box.inputValue(), TIMEOUT).toBe("half a tho");
  await ask(`sessions/${sessionId}/cancel`, { mode: "hard" });
  await page.getByText("The session has ended and takes no message").waitFor();
  expect(await box.inputValue()).toBe("half a tho");

  // A reason in the inbox.
  await ask("sessions", { agent: "pusher" });
  await stand.follow("inbox");
  await page.getByRole("button", { name: "With a reason" }).click();
  await page.getByLabel("Reason").fill("not on a Friday");
  await page.getByRole("link", { name: "Sessions", exact: true }).click();
  await page.getByRole("link", { name: /^Inbox/ }).click();
  await expect.poll(() => page.getByLabel("Reason").inputValue(), TIMEOUT).toBe("not on a Friday");

  // The runner of the agent is away for a moment, and another agent is the first of the list.
  await stand.follow("start");
  await page.getByLabel("Agent").selectOption("talker");
  await page.getByLabel("Request").fill("write a poem");
  await page.route("**/v1/agents", (route) =>
    route.fulfill({ json: { agents: [{ name: "another", runners: 1, versions: [] }] } }),
  );
  await ask("sessions", { agent: "talker", input: "a change that makes the page read again" });
  await page.getByText("No runner offers talker now").waitFor();
  expect(await page.getByLabel("Request").inputValue()).toBe("write a poem");
  await page.unroute("**/v1/agents");
  await page.reload();
  await page.getByRole("button", { name: "Start", exact: true }).waitFor();
  expect(await page.getByLabel("Request").inputValue()).toBe("write a poem");
  await page.getByRole("button", { name: "Start", exact: true }).click();
  await page.getByText("You said: write a poem").waitFor();
  await stand.follow("start?agent=talker");
  expect(await page.getByLabel("Request").inputValue()).toBe("");
  expect(stand.trouble).toEqual([]);
});

test(
  "the page repeats what it reads until the server answers, and leaves what a person asked for to the person",
  ofCampaign,
  async ({ skip }) => {
    if (CHROMIUM === undefined) skip(NO_CHROMIUM);
    const { page } = stand;
    const { sessionId } = await coordinator.ask("sessions", { agent: "pusher" });
    await stand.follow(`sessions/${sessionId}`);
    await page.getByRole("button", { name: "Pause" }).waitFor();
    await page.route("**/v1/**", (route) => route.abort("connectionrefused"));
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByText("Press again once the server answers: it counts once.").waitFor();
    expect(await page.getByText("The page tries again").count()).toBe(0);
    await page.getByRole("link", { name: "Costs" }).click();
    await page.getByText("The page tries again until it does.").waitFor();
    await page.unroute("**/v1/**");
    await page.getByText("No session has called a model yet").waitFor();
    expect(await page.getByText("The server does not answer").count()).toBe(0);
  },
);

test("the palette finds sessions by agent, input and id, and words need no digit", async ({ skip }) => {
  if (CHROMIUM === undefined) skip(NO_CHROMIUM);
  const { page } = stand;
  const input = { repo: "acme/palette", mode: "fast" };
  const { sessionId } = await coordinator.ask("sessions", { agent: "reviewer", input });
  const options = page.getByRole("dialog", { name: "Go to" }).getByRole("option");
  const isOpen = (): Promise<void> =>
    expect.poll(() => new URL(page.url()).pathname).toBe(`/ui/sessions/${sessionId}`);
  const find = async (text: string): Promise<void> => {
    await page.getByRole("link", { name: "Costs" }).waitFor();
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Go to" }).fill(text);
    await options.filter({ hasText: sessionId }).first().waitFor();
  };
  for (const text of ["review", "acme/palette", sessionId.slice(0, -3)]) {
    await stand.follow("inbox");
    await find(text);
    await options.filter({ hasText: sessionId }).click();
    await isOpen();
  }
  await stand.follow("inbox");
  await find(sessionId);
  await page.keyboard.press("Enter");
  await isOpen();
  await find("review");
  expect(await stand.violations()).toEqual([]);
  await options.filter({ hasText: "Sessions of agent reviewer" }).click();
  await expect.poll(() => new URL(page.url()).search).toBe("?agent=reviewer");
  await find("acme/palette");
  await page.keyboard.press("Enter");
  await expect.poll(() => new URL(page.url()).searchParams.get("text")).toBe("acme/palette");
  await page.getByRole("link", { name: new RegExp(sessionId) }).waitFor();
  expect(stand.trouble).toEqual([]);
});

/** The server gets the first requests of a path, and the page no answer to them. */
async function loseAnswers(page: Page, path: string, times: number): Promise<void> {
  let left = times;
  await page.route(path, async (route) => {
    if (left-- <= 0) return route.continue();
    await route.fetch();
    return route.abort("connectionreset");
  });
}
