// Texts that models are writing: from a runner to readers of its sessions, and nowhere else.

import { afterEach, beforeEach, expect, test } from "vitest";
import { openFleet, type FakeRunner, type Fleet, type Person } from "../testing/fleet.ts";

let fleet: Fleet;
let ada: Person;
beforeEach(async () => {
  fleet = await openFleet({ config: { leaseMs: 600_000 } }); // These runners renew nothing.
  ada = await fleet.user("ada");
});
afterEach(() => fleet.close());

/** Reads the stream of a session as a browser does. */
function watch(sessionId: string, query: string): { readonly events: string[]; readonly end: () => void } {
  const over = new AbortController();
  const events: string[] = [];
  const read = async (): Promise<void> => {
    const { body } = await fetch(`${fleet.url}/v1/sessions/${sessionId}/watch${query}`, {
      headers: { authorization: `Bearer ${ada.token}`, accept: "text/event-stream" },
      signal: over.signal,
    });
    let text = "";
    for await (const chunk of body!.pipeThrough(new TextDecoderStream())) {
      const parts = (text + chunk).split("\n\n");
      text = parts.pop() ?? "";
      events.push(...parts.filter((part) => part.includes("event: ")));
    }
  };
  void read().catch(() => {});
  return { events, end: () => over.abort() };
}

const show = async (runner: FakeRunner, drafts: readonly object[]) =>
  (await runner.person.post(`/v1/runners/${runner.runnerId}/drafts`, { drafts })).body;

test("a draft reaches the readers that ask for drafts of its session, without a position, and nothing is stored", async () => {
  const runner = await fleet.runner();
  const sessionId = await ada.start();
  await runner.poll();
  const draft = { task: 3, text: "The first <half>" };
  expect(await show(runner, [{ sessionId, draft }])).toEqual({ watched: [] });

  const [with_, without] = [watch(sessionId, "?drafts=true"), watch(sessionId, "")];
  await expect.poll(() => [with_.events.length, without.events.length]).toEqual([1, 1]);
  expect(await show(runner, [{ sessionId }])).toEqual({ watched: [sessionId] });
  expect(await show(runner, [{ sessionId, draft }])).toEqual({ watched: [sessionId] });
  await expect
    .poll(() => with_.events.at(-1))
    .toContain('event: draft\ndata: {"draft":{"task":3,"text":"The first <half>"}}');
  expect(with_.events.at(-1)).not.toContain("id: ");
  expect(without.events).toHaveLength(1);
  expect((await fleet.storage.reader.journal(sessionId, 0, 10)).length).toBe(0);

  with_.end();
  without.end();
  await expect.poll(() => show(runner, [{ sessionId }])).toEqual({ watched: [] });
  const later = watch(sessionId, "?drafts=true"); // The runner has not lost the session meanwhile.
  await expect.poll(() => show(runner, [{ sessionId }])).toEqual({ watched: [sessionId] });
  later.end();
});

test("a runner shows drafts of its own sessions alone, and learns of no other whether it is watched", async () => {
  const [holder, other] = [await fleet.runner(), await fleet.runner()];
  const sessionId = await ada.start();
  await holder.poll();
  const { events, end } = watch(sessionId, "?drafts=true");
  await expect.poll(() => events.length).toBe(1);
  const draft = { task: 3, text: "forged" };
  expect(await show(other, [{ sessionId, draft }])).toEqual({ watched: [] });
  expect((await other.person.post(`/v1/runners/${holder.runnerId}/drafts`, { drafts: [] })).status).toBe(404);
  expect((await ada.post(`/v1/runners/${holder.runnerId}/drafts`, { drafts: [] })).status).toBe(403);
  expect(await show(holder, [{ sessionId, draft: { ...draft, text: "true" } }])).toEqual({
    watched: [sessionId],
  });
  await expect.poll(() => events.length).toBe(2);
  expect(events[1]).toContain("true");
  end();
});
