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

interface Event {
  readonly sessions: readonly { readonly sessionId: string; readonly status: string }[];
  readonly hasOthers: boolean;
}

/** The events that a person has been sent. */
async function watch({ url, token }: Person): Promise<readonly Event[]> {
  const abort = new AbortController();
  streams.push(abort);
  const response = await fetch(`${url}/v1/changes`, {
    headers: { authorization: `Bearer ${token}` },
    signal: abort.signal,
  });
  expect([response.status, response.headers.get("content-type")]).toEqual([200, "text/event-stream"]);
  expect(response.headers.get("x-accel-buffering")).toBe("no"); // A proxy must not collect the events.
  const received: Event[] = [];
  const read = async (): Promise<void> => {
    let text = "";
    for await (const bytes of response.body!) {
      const parts = (text + Buffer.from(bytes).toString()).split("\n\n");
      text = parts.pop()!;
      const lines = parts.flatMap((part) => part.split("\n")).filter((line) => line.startsWith("data: "));
      received.push(...lines.map((line) => JSON.parse(line.slice("data: ".length)) as Event));
    }
  };
  read().catch(() => {}); // It was aborted.
  // The first event comes at once. Everything may be new to its reader.
  await expect.poll(() => received).toEqual([{ sessions: [], hasOthers: true }]);
  return received;
}

test("each commit is announced to the owner of its session and to admins with the session, and to nobody else", async () => {
  const [ada, bob] = [await fleet.user("ada"), await fleet.user("bob")];
  const [toAda, toBob, toAdmin] = [await watch(ada), await watch(bob), await watch(fleet.admin)];

  const sessionId = await ada.start();

  const shown = (events: readonly Event[], status: string): boolean =>
    events.some(({ sessions }) =>
      sessions.some((session) => session.sessionId === sessionId && session.status === status),
    );
  await expect.poll(() => [shown(toAda, "submitted"), shown(toAdmin, "submitted")]).toEqual([true, true]);
  await ada.post(`/v1/sessions/${sessionId}/pause`);
  await expect.poll(() => shown(toAda, "paused")).toBe(true);
  expect(toAda.slice(1).every(({ hasOthers }) => !hasOthers)).toBe(true);
  // A commit of bob's own is told to him, and it is the first that he is told.
  expect(toBob).toHaveLength(1);
  await bob.start();
  await expect.poll(() => toBob.length).toBeGreaterThan(1);
  expect(JSON.stringify(toBob)).not.toContain(sessionId);
});

test("a large session is announced without being sent", async () => {
  const received = await watch(fleet.admin);
  await fleet.admin.start({ input: "x".repeat(10_000) });
  await expect.poll(() => received.length).toBeGreaterThan(1);
  expect(received.slice(1)).toEqual(received.slice(1).map(() => ({ sessions: [], hasOthers: true })));
});

test("a runner may not watch all changes", async () => {
  const runner = await fleet.runner();
  const response = await fetch(`${fleet.url}/v1/changes`, {
    headers: { authorization: `Bearer ${runner.person.token}` },
  });
  expect(response.status).toBe(403);
});
