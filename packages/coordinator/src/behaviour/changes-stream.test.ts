// `GET /v1/changes`: what each caller is told of changes, over real HTTP.

import { afterEach, beforeEach, expect, test } from "vitest";
import { openFleet, type Fleet, type Person } from "../testing/fleet.ts";

let fleet: Fleet;
const streams: AbortController[] = [];
beforeEach(async () => {
  fleet = await openFleet();
});
afterEach(async () => {
  for (const stream of streams.splice(0)) stream.abort();
  await fleet.close();
});

/** The events that a person has been sent. */
async function watch({ url, token }: Person): Promise<{ count: number }> {
  const abort = new AbortController();
  streams.push(abort);
  const response = await fetch(`${url}/v1/changes`, {
    headers: { authorization: `Bearer ${token}` },
    signal: abort.signal,
  });
  expect([response.status, response.headers.get("content-type")]).toEqual([200, "text/event-stream"]);
  const received = { count: 0 };
  const read = async (): Promise<void> => {
    for await (const bytes of response.body!)
      received.count += Buffer.from(bytes).toString().split("data: {}\n\n").length - 1;
  };
  read().catch(() => {}); // It was aborted.
  await expect.poll(() => received.count).toBe(1); // The first event comes at once.
  return received;
}

test("each commit is announced to the owner of its session and to admins, and to nobody else", async () => {
  const [ada, bob] = [await fleet.user("ada"), await fleet.user("bob")];
  const [toAda, toBob, toAdmin] = [await watch(ada), await watch(bob), await watch(fleet.admin)];

  const sessionId = await ada.start();

  await expect.poll(() => [toAda.count >= 2, toAdmin.count >= 2]).toEqual([true, true]);
  const before = toAda.count;
  await ada.post(`/v1/sessions/${sessionId}/pause`);
  await expect.poll(() => toAda.count).toBeGreaterThan(before);
  // A commit of bob's own is told to him, and it is the first that he is told.
  expect(toBob.count).toBe(1);
  await bob.start();
  await expect.poll(() => toBob.count).toBeGreaterThan(1);
});

test("a runner may not watch all changes", async () => {
  const runner = await fleet.runner();
  const response = await fetch(`${fleet.url}/v1/changes`, {
    headers: { authorization: `Bearer ${runner.person.token}` },
  });
  expect(response.status).toBe(403);
});
