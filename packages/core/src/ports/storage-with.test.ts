// `storageWith` passes on every member that the wrapper does not change.

import { expect, test, vi } from "vitest";
import type { AgentStorage, StorageReader } from "./storage.ts";
import { storageWith } from "./storage-with.ts";

/** All members, also optional ones. */
function everything() {
  return {
    name: "whole",
    durable: true,
    groupsMax: 3,
    now: vi.fn(() => 7),
    commit: vi.fn(),
    claim: vi.fn(),
    renew: vi.fn(),
    renewal: vi.fn(),
    heldClaims: vi.fn(),
    load: vi.fn(),
    arrivals: vi.fn(),
    conversation: vi.fn(),
    due: vi.fn(),
    subscribe: vi.fn(),
    follow: vi.fn(),
    lost: new Promise<never>(() => {}),
    drafts: { show: vi.fn(), watch: vi.fn() },
    reader: {} as StorageReader,
    close: vi.fn(),
  } satisfies Required<AgentStorage>;
}

test("a member that the wrapper does not change is passed on as it is at the time of the call", () => {
  const storage = everything();
  const wrapped = storageWith(storage, {});
  expect(Object.keys(wrapped).sort()).toEqual(Object.keys(storage).sort());
  for (const [name, member] of Object.entries(storage)) {
    const own = wrapped[name as keyof AgentStorage] as unknown;
    if (typeof member !== "function" || typeof own !== "function") {
      expect(own).toBe(member);
      continue;
    }
    const later = vi.fn();
    Object.assign(storage, { [name]: later });
    const args = ["first", "second"].slice(0, own.length);
    own.apply(undefined, args);
    expect(later.mock.calls).toEqual([args]);
    expect(later.mock.contexts).toEqual([storage]);
  }
});

test("a member that the storage leaves out is left out, and a changed member is changed", () => {
  const { groupsMax: _groupsMax, now: _now, follow: _follow, lost: _lost, ...rest } = everything();
  const commit = vi.fn();
  const wrapped = storageWith(rest, { commit, name: "other" });
  expect(Object.keys(wrapped).sort()).toEqual(Object.keys(rest).sort());
  expect(wrapped.commit).toBe(commit);
  expect(wrapped.name).toBe("other");
});
