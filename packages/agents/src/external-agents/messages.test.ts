// Messages to an external agent at work: they join its turn, interrupt it, or wait, as its program can.

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
  expect(await session.receipts()).toEqual(["rejected"]);
  writeFileSync(join(session.folder, "open-1"), "");
  await session.rest();
  expect(await prompts()).toEqual(["gate:1", "write:b.txt"]);
});
