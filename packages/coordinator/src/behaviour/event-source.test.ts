// A browser's `EventSource` on a session's stream: it reconnects after every end, until it is answered with
// 204.

import { afterEach, expect, test } from "vitest";
import { openFleet, type Fleet } from "../testing/fleet.ts";

let fleet: Fleet;
afterEach(() => fleet.close());

const RECONNECTS_MAX = 10;

interface Received {
  readonly id: string | undefined;
  readonly event: string;
  readonly data: string;
}

/** Reads like an `EventSource` in HTML: it sends the last id when it reconnects, and only 204 ends it. */
async function follow(
  sessionId: string,
): Promise<{ readonly received: readonly Received[]; readonly connects: number }> {
  const received: Received[] = [];
  let lastId = "";
  for (let connects = 1; connects <= RECONNECTS_MAX; connects++) {
    const response = await fetch(`${fleet.url}/v1/sessions/${sessionId}/watch`, {
      headers: {
        authorization: `Bearer ${fleet.admin.token}`,
        ...(lastId === "" ? {} : { "last-event-id": lastId }),
      },
    });
    if (response.status === 204) return { received, connects };
    expect(response.status).toBe(200);
    for (const block of (await response.text()).split("\n\n")) {
      const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(block)?.[1];
      const [id, event, data] = [field("id"), field("event"), field("data")];
      if (event === undefined || data === undefined) continue;
      received.push({ id, event, data });
      lastId = id ?? lastId;
    }
  }
  throw new Error(`it still reconnects after ${RECONNECTS_MAX} streams`);
}

test("an EventSource that follows a session to its end sees each record once, the end, and then stops", async () => {
  fleet = await openFleet();
  const sessionId = await fleet.admin.start();
  const runner = await fleet.runner();
  const following = follow(sessionId);
  const [claim] = (await runner.poll({ free: 1 })).claims;
  await runner.complete(claim!, "done");
  const { received } = await following;
  const { nextSeq } = (await fleet.storage.reader.session(sessionId))!;
  const records = received.filter(({ event }) => event === "record");
  expect(records.map(({ id }) => id)).toEqual(Array.from({ length: nextSeq }, (_, seq) => String(seq)));
  const last = received.at(-1)!;
  expect([last.id, last.event]).toEqual([String(nextSeq), "session"]);
  expect(last.data).toContain('"status":"completed"');
});

test("an EventSource that comes after the end is told all of the session, and then stops", async () => {
  fleet = await openFleet();
  const sessionId = await fleet.admin.start();
  const runner = await fleet.runner();
  const [claim] = (await runner.poll({ free: 1 })).claims;
  await runner.complete(claim!, "done");
  const { received, connects } = await follow(sessionId);
  expect(connects).toBeLessThanOrEqual(3);
  expect(received.at(-1)!.data).toContain('"status":"completed"');
});

test("a position behind the end is refused, and one behind the journal of a session that lives", async () => {
  fleet = await openFleet();
  const sessionId = await fleet.admin.start();
  const { nextSeq } = (await fleet.storage.reader.session(sessionId))!;
  const at = (seq: number) => fleet.admin.get(`/v1/sessions/${sessionId}/watch?afterSeq=${seq}`);
  expect((await at(nextSeq)).body).toMatchObject({ code: "bad_event_id" });
  const runner = await fleet.runner();
  const [claim] = (await runner.poll({ free: 1 })).claims;
  await runner.complete(claim!, "done");
  const ended = (await fleet.storage.reader.session(sessionId))!;
  expect((await at(ended.nextSeq + 1)).body).toMatchObject({ code: "bad_event_id" });
});
