import { expect, test } from "vitest";
import { type Head, Heads, nextVersion } from "./heads.ts";

function head(sessionId: string, { status = "waiting", parent = false, version = 1 } = {}): Head {
  const family = parent ? { parent: { sessionId: "above" } } : {};
  return { sessionId, version, session: { status, ...family }, flight: undefined } as unknown as Head;
}

test("the head of a session that has ended is dropped, unless it is a child", () => {
  const heads = new Heads(8);
  const [waiting, ended] = [head("waiting"), head("ended", { status: "completed" })];
  const child = head("child", { status: "completed", parent: true });
  for (const each of [waiting, ended, child]) heads.put(each);
  for (const each of [waiting, ended, child]) heads.settled(each);
  expect(heads.get("ended")).toBe(undefined);
  expect(heads.get("waiting")).toBe(waiting);
  expect(heads.get("child")).toBe(child);
});

test("heads that are used stay, and of the others as many as there is room for", () => {
  const heads = new Heads(8);
  const used = head("used");
  heads.put(used);
  for (let i = 0; i < 100; i++) {
    heads.put(head(`s${i}`));
    expect(heads.get("used")).toBe(used);
  }
  const kept = Array.from({ length: 100 }, (_, i) => heads.get(`s${i}`)).filter((each) => each !== undefined);
  expect(kept.length).toBeLessThanOrEqual(8);
  expect(heads.get("s99")).toBeDefined();
});

test("postgres-heads-3: a head in use stays, and no other takes its place", () => {
  const heads = new Heads(4);
  const used = { ...head("used"), flight: Promise.resolve() };
  heads.put(used);
  for (let i = 0; i < 100; i++) heads.put(head(`s${i}`));
  heads.put(head("used", { version: 9 }));
  expect(heads.get("used")).toBe(used);
});

test("a head that is forgotten is gone, however long ago it was used", () => {
  for (let others = 0; others < 8; others++) {
    const heads = new Heads(8);
    const forgotten = head("forgotten");
    heads.put(forgotten);
    for (let i = 0; i < others; i++) heads.put(head(`s${i}`));
    heads.forget(forgotten);
    expect(heads.get("forgotten")).toBe(undefined);
  }
});

test("postgres-heads-4: a change makes the version of its own number, and never one that is below the last", () => {
  expect(nextVersion({ version: 5 }, 1_000)).toBe(1_000);
  expect(nextVersion({ version: 2_000 }, 1_000)).toBeGreaterThan(2_000);
  expect(nextVersion({ version: 2_000 }, 1_001)).not.toBe(nextVersion({ version: 2_000 }, 1_000));
});
