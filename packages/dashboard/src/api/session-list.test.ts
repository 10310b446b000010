import { expect, test } from "vitest";
import { ApiError } from "./client.ts";
import { SessionList } from "./session-list.ts";
import type { Session, SessionPage } from "./types.ts";

/** A server with these sessions, the newest first, whose list changes under the reader. */
function server(count: number) {
  let all = Array.from({ length: count }, (_, at) => session(count - at));
  const read = ({
    limit,
    cursor,
  }: {
    readonly limit: number;
    readonly cursor?: string;
  }): Promise<SessionPage> => {
    const start = cursor === undefined ? 0 : all.findIndex(({ sessionId }) => sessionId === cursor) + 1;
    if (cursor !== undefined && start === 0)
      return Promise.reject(
        new ApiError(422, { errors: [{ pointer: "/cursor", message: "is not the cursor of a page" }] }),
      );
    const sessions = all.slice(start, start + limit);
    const last = sessions.length < limit ? undefined : sessions.at(-1)!.sessionId;
    return Promise.resolve({ sessions, ...(last === undefined ? {} : { nextCursor: last }) });
  };
  return {
    read,
    set: (change: (rows: readonly Session[]) => readonly Session[]) => (all = [...change(all)]),
    get ids() {
      return all.map(({ sessionId }) => sessionId);
    },
  };
}

function session(number: number, status: Session["status"] = "working"): Session {
  return { sessionId: `s${number}`, status } as Session;
}

const ids = (list: SessionList): readonly string[] => list.rows.map(({ sessionId }) => sessionId);

test("all rows are read in their order, without a gap, although some are new and some are gone", async () => {
  const from = server(1_000);
  const list = new SessionList(from.read, {});
  await list.loadMore();
  await list.loadMore();
  from.set((rows) => [
    session(1_002),
    session(1_001),
    ...rows.filter(({ sessionId }) => sessionId !== "s990"),
  ]);
  await list.refresh(0, 50);
  while (list.hasMore) await list.loadMore();
  expect(ids(list)).toEqual(from.ids);
});

test("rows in the middle are read again, and a row that did not change stays the same object", async () => {
  const from = server(300);
  const list = new SessionList(from.read, {});
  await list.loadMore();
  const [first] = list.rows;
  from.set((rows) => rows.map((row) => (row.sessionId === "s250" ? session(250, "completed") : row)));
  await list.refresh(40, 30);
  expect(list.rows[50]).toEqual(session(250, "completed"));
  expect(list.rows[0]).toBe(first);
  let changes = 0;
  list.subscribe(() => changes++);
  await list.refresh(40, 30);
  expect(changes).toBe(0);
});

test("more new rows than are read again leave no gap", async () => {
  const from = server(100);
  const list = new SessionList(from.read, {});
  await list.loadMore();
  from.set((rows) => [...Array.from({ length: 500 }, (_, at) => session(600 - at)), ...rows]);
  await list.refresh(0, 20);
  while (list.hasMore) await list.loadMore();
  expect(ids(list)).toEqual(from.ids);
});

test("a list whose database was replaced under it becomes the list of the new one", async () => {
  const from = server(500);
  const list = new SessionList(from.read, {});
  await list.loadMore();
  from.set(() => Array.from({ length: 300 }, (_, at) => session(9_300 - at)));
  await list.refresh(100, 30);
  while (list.hasMore) await list.loadMore();
  expect(ids(list)).toEqual(from.ids);
});

test("rows behind a session that was deleted are read all the same", async () => {
  const from = server(400);
  const list = new SessionList(from.read, {});
  await list.loadMore();
  const last = list.rows.at(-1)!.sessionId;
  from.set((rows) => rows.filter(({ sessionId }) => sessionId !== last));
  while (list.hasMore) await list.loadMore();
  expect(ids(list)).toEqual(from.ids);
});

test("session-list-4: a search goes on behind a part without a match, and asks a bounded number of times", async () => {
  const asked: (string | undefined)[] = [];
  const list = new SessionList(
    ({ cursor }) => {
      asked.push(cursor);
      const part = asked.length;
      return Promise.resolve({
        sessions: part === 3 ? [session(7)] : [],
        searched: 2_000,
        ...(part === 25 ? {} : { nextCursor: `part-${part}` }),
      });
    },
    { text: "needle" },
  );
  await list.loadMore();
  expect(asked).toHaveLength(10);
  expect(asked.slice(0, 2)).toEqual([undefined, "part-1"]);
  expect(list.rows.map(({ sessionId }) => sessionId)).toEqual(["s7"]);
  expect([list.searched, list.hasMore]).toEqual([20_000, true]);
  await list.loadMore();
  await list.loadMore();
  expect([asked.length, list.searched, list.hasMore]).toEqual([25, 50_000, false]);
});

test("a changed session is shown in its row without a read, and other changes ask for one", async () => {
  const list = new SessionList(server(300).read, {});
  await list.loadMore();
  expect(list.show([session(250, "paused")])).toBe(true);
  expect(list.rows[50]).toEqual(session(250, "paused"));
  expect(list.show([session(250, "completed")])).toBe(false); // It may have been deleted.
  expect(list.show([session(301)])).toBe(false);

  const filtered = new SessionList(server(3).read, { status: "working" });
  await filtered.loadMore();
  expect(filtered.show([session(2)])).toBe(true);
  expect(filtered.show([session(2, "paused")])).toBe(false);
  const found = new SessionList(server(3).read, { text: "s" });
  await found.loadMore();
  expect(found.show([session(2)])).toBe(false);
});

test("a page that was asked for before a change does not undo what the change has shown", async () => {
  const from = server(3);
  const { promise, resolve } = Promise.withResolvers<void>();
  const list = new SessionList(async (query) => {
    const page = await from.read(query);
    await promise;
    return page;
  }, {});
  const reading = list.loadMore();
  list.show([session(2, "paused")]);
  resolve();
  await reading;
  expect(list.rows[1]).toEqual(session(2, "paused"));
  from.set((rows) => rows.map((row) => (row.sessionId === "s2" ? session(2, "waiting") : row)));
  await list.refresh(0, 3);
  expect(list.rows[1]).toEqual(session(2, "waiting"));
});
