// Messages to an external agent at work: they join its turn, interrupt it, or wait for its answer, as its
// program can.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";

import { ExternalSession } from "../testing/external-session.ts";

let session: ExternalSession;
afterEach(() => session.dispose());

async function steered(text: string): Promise<void> {
  await session.begin("write:a.txt hang");
  while (session.lines("pids").length < 2) await delay(20);
  await session.handle.signal("steer", text);
}

const prompts = async (): Promise<readonly unknown[]> =>
  (await session.entries()).filter(({ role }) => role === "user").map(({ content }) => content);

test("a program that takes no message is interrupted, and resumed with the message and the calls that were cut off", async () => {
  session = new ExternalSession("opencode");
  await steered("hurry");
  expect((await session.rest()).status).toBe("waiting");
  expect(await session.receipts()).toEqual(["restarted"]);
  const [request, message, next] = await prompts();
  expect([request, message]).toEqual(["write:a.txt hang", "hurry"]);
  expect(next).toMatch(
    /was interrupted, because the user has sent a message[^]*sleep 1000[^]*in between: hurry/,
  );
  // The turn with the whole request again is the second process.
  expect(session.lines("acp.log")).toHaveLength(2);
  await session.processesEnded();
});

test("a program with the extension for messages takes them in its turn", ofCampaign, async () => {
  session = new ExternalSession("opencode");
  writeFileSync(join(session.home, "steering"), "");
  await steered("hurry");
  while ((await session.receipts()).length === 0) await delay(20);
  expect(await session.receipts()).toEqual(["injected"]);
  await session.handle.signal("interrupt");
  await session.rest();
  expect(JSON.stringify(await session.entries())).toContain("You say: hurry");
  expect(session.lines("acp.log")).toHaveLength(1);
});

test("a message to a program that cannot resume waits for the end of the turn", ofCampaign, async () => {
  session = new ExternalSession("gemini");
  await session.begin("gate:1");
  while ((await session.entries()).length === 0 || session.lines("project/gates").length === 0)
    await delay(20);
  await session.handle.signal("steer", "write:b.txt");
  while ((await session.receipts()).length === 0) await delay(20);
  expect(await session.receipts()).toEqual(["queued"]);
  writeFileSync(join(session.folder, "open-1"), "");
  await session.rest();
  expect(await prompts()).toEqual(["gate:1", "write:b.txt"]);
});

const said = (text: string): unknown => ({ text, delivery: "queue" });

async function followedUp(name: "claude-code" | "gemini", text: string): Promise<void> {
  session = new ExternalSession(name);
  await session.begin(text);
  while (session.lines("project/gates").length === 0) await delay(20);
  await session.handle.signal("follow_up", "write:b.txt");
  await session.handle.signal("follow_up", "write:c.txt");
  while ((await session.receipts()).length < 2) await delay(20);
  expect(await session.receipts()).toEqual(["queued", "queued"]);
  writeFileSync(join(session.folder, "open-1"), "");
}

test("messages for after the answer are begun in their order by the same process", async () => {
  await followedUp("gemini", "gate:1");
  expect((await session.rest()).status).toBe("waiting");
  expect(await prompts()).toEqual(["gate:1", said("write:b.txt"), said("write:c.txt")]);
  const entries = await session.entries();
  const of = (text: string): number => entries.findIndex((one) => JSON.stringify(one).includes(text));
  expect(of("Done: gate:1")).toBeLessThan(of("write:b.txt"));
  expect(session.lines("acp.log")).toHaveLength(1); // Gemini could not resume.
});

test("messages for after the answer outlive the program that has them", async () => {
  await followedUp("claude-code", "gate:1 die");
  expect((await session.rest()).status).toBe("waiting");
  const [request, next, ...kept] = await prompts();
  expect(request).toBe("gate:1 die");
  expect(next).toMatch(/was cut off[^]*make deploy[^]*The request was:\n\ngate:1 die$/);
  expect(kept).toEqual([said("write:b.txt"), said("write:c.txt")]);
  // The program that was killed, the one that answered, and one for each message.
  expect(session.lines("claude.log")).toHaveLength(4);
});

test("a command that arrives while the program works is begun after the answer, and no text after it is one", async () => {
  session = new ExternalSession("claude-code");
  await session.begin("gate:1");
  while (session.lines("project/gates").length === 0) await delay(20);
  await session.handle.signal("follow_up", { command: "/hi" });
  await session.handle.signal("follow_up", "write:b.txt");
  await session.handle.signal("follow_up", { command: "write:c.txt" });
  writeFileSync(join(session.folder, "open-1"), "");
  expect((await session.rest()).status).toBe("waiting");
  await session.handle.signal("next_input", "/hi");
  const answered = async (): Promise<readonly string[]> =>
    (await session.entries())
      .filter(({ role }) => role === "assistant")
      .map(({ content }) => (content as { readonly text: string }).text)
      .filter((text) => text.startsWith("Done: "));
  while ((await answered()).length < 5) await delay(20);
  const answers = await answered();
  expect(answers.slice(1, 3)).toEqual(["Done: command /hi", "Done: write:b.txt"]);
  expect(answers.filter((text) => text.includes("command "))).toEqual(["Done: command /hi"]);
  expect(answers.at(-1)).toBe("Done: /hi");
});
