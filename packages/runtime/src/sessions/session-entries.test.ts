// SessionEntries: the entry of a session over its activation and its driver.

import { gate } from "@holdfast/testkit/test-runtime";
import { expect, test } from "vitest";
import type { SessionDriver } from "../session/session-driver.ts";
import { SessionEntries, type Live } from "./session-entries.ts";

const live = { type: "live", driver: {} as SessionDriver } as Live;

test("session-entries-1: the entry of a session that does not get a driver goes with its activation", async () => {
  const entries = new SessionEntries();
  const step = gate();
  const activation = entries.activate("s", () => {
    expect(entries.state("s")).toEqual({ type: "activating" });
    return step.opened;
  });
  expect([entries.has("s"), entries.ids(), entries.live("s")]).toEqual([true, ["s"], undefined]);
  step.open();
  await activation;
  expect([entries.has("s"), entries.size]).toEqual([false, 0]);
});

test("session-entries-1: a live session keeps its entry until it leaves", async () => {
  const entries = new SessionEntries();
  await entries.activate("s", async () => entries.set("s", live));
  expect([entries.live("s"), entries.activation("s"), entries.allLive()]).toEqual([live, undefined, [live]]);
  entries.leave("s");
  expect(entries.has("s")).toBe(false);
});

test("session-entries-1: a session that leaves during its activation keeps its entry until that is done", async () => {
  const entries = new SessionEntries();
  const step = gate();
  const activation = entries.activate("s", () => {
    entries.set("s", live);
    return step.opened;
  });
  entries.leave("s");
  expect([entries.state("s"), entries.activation("s")]).toEqual([{ type: "activating" }, activation]);
  step.open();
  await activation;
  expect(entries.has("s")).toBe(false);
});

test("session-entries-1: an earlier activation that ends leaves the entry of a later one", async () => {
  const entries = new SessionEntries();
  const [first, second] = [gate(), gate()];
  const earlier = entries.activate("s", () => first.opened);
  const later = entries.activate("s", () => second.opened);
  first.open();
  await earlier;
  expect(entries.activation("s")).toBe(later);
  second.open();
  await later;
  expect(entries.has("s")).toBe(false);
});
