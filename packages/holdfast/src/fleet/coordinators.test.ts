// Two coordinators on one PostgreSQL: which of them is asked, and which of them is left, makes no difference.

import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { randomUUID } from "node:crypto";
import type { RenewInThread } from "@holdfast/core";
import { defineAgent } from "@holdfast/runtime";
import { openRemoteStorage } from "@holdfast/storage/remote";
import { openPostgresStorage, type PostgresStorage } from "@holdfast/storage/postgres";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { createClient, type HoldfastClient } from "@holdfast/client";
import { openFleet, type Fleet } from "../testing/fleet.ts";

const greeter = defineAgent({
  name: "greeter",
  run: async (ctx, name: string) => ctx.run("say", () => `hello ${name}`),
});
const waits = defineAgent({ name: "waits", run: async (ctx) => ctx.waitForSignal("go") });

const schema = `test_${randomUUID().replaceAll("-", "")}`;
const storages: PostgresStorage[] = [];
const fleets: Fleet[] = [];
const clients: HoldfastClient[] = [];
let one: Fleet;
let two: Fleet;

beforeEach(async () => {
  const url = await serverUrl();
  for (let i = 0; i < 2; i++) {
    const storage = await openPostgresStorage({ url, schema, clock: "database" });
    storages.push(storage);
    fleets.push(await openFleet({ storage }));
  }
  [one, two] = [fleets[0]!, fleets[1]!];
});
afterEach(async () => {
  for (const client of clients.splice(0)) client.close();
  await Promise.all(fleets.splice(0).map((fleet) => fleet.close()));
  await Promise.all(storages.splice(0).map((storage) => storage.close()));
});

function open(fleet: Fleet, token: string): HoldfastClient {
  const client = createClient({ url: fleet.url, token });
  clients.push(client);
  return client;
}

test(
  "O14: each session runs once, on a runner of either coordinator, whichever one started or reads it",
  ofCampaign,
  async () => {
    await one.runner({ agents: [greeter], maxRuns: 4 });
    await two.runner({ agents: [greeter], maxRuns: 4 });
    const token = await one.token("user", "ada");
    const [here, there] = [open(one, token), open(two, token)];
    const names = Array.from({ length: 24 }, (_, i) => `n${i}`);
    const started = await Promise.all(
      names.map((name, i) => (i % 2 === 0 ? here : there).sessions.start(greeter, name)),
    );
    const results = await Promise.all(
      started.map(({ sessionId }, i) => (i % 3 === 0 ? here : there).sessions.get(sessionId).result()),
    );
    expect(results).toEqual(names.map((name) => `hello ${name}`));
    for (const { sessionId } of started) {
      const journal = await one.storage.reader.journal(sessionId, 0, 100);
      expect(journal.filter(({ type }) => type === "task_completed")).toHaveLength(1);
    }
  },
);

test("S2, V1: a signal to one coordinator reaches the runner and the watcher at the other", async () => {
  await one.runner({ agents: [waits] });
  const token = await one.token("user", "ada");
  const session = await open(one, token).sessions.start("waits");
  const watching = (async (): Promise<readonly number[]> => {
    const seqs: number[] = [];
    for await (const event of open(two, token).sessions.get(session.sessionId).events())
      if (event.type === "record") seqs.push(event.seq);
    return seqs;
  })();
  await open(two, token).sessions.get(session.sessionId).signal("go", 7);
  expect(await session.result()).toBe(7);
  const seqs = await watching;
  expect(seqs).toEqual(seqs.map((_, i) => i));
  expect(seqs.length).toBeGreaterThan(2);
});

test("the sessions of a coordinator that is gone continue at the other, with runners there", async () => {
  await one.runner({ agents: [waits] });
  const token = await one.token("user", "ada");
  const session = await open(one, token).sessions.start("waits");
  await one.close();
  fleets.splice(0, 1);
  await two.runner({ agents: [waits] });
  const there = open(two, token).sessions.get(session.sessionId);
  await there.signal("go", "still");
  expect(await there.result()).toBe("still");
});

test("a runner and a client that know both coordinators go on at the other when one ends", async () => {
  const url = [one.url, two.url];
  const runner = await two.runner({ agents: [greeter, waits], url });
  const client = createClient({ url, token: await one.token("user", "ada") });
  clients.push(client);
  const session = await client.sessions.start("waits");
  const watching = (async (): Promise<number> => {
    let records = 0;
    for await (const event of session.events()) if (event.type === "record") records = event.seq + 1;
    return records;
  })();
  await vi.waitFor(async () => expect((await session.status()).status).toBe("waiting"), 10_000);
  await one.close();
  fleets.splice(0, 1);
  expect(await (await client.sessions.start(greeter, "ada")).result()).toBe("hello ada");
  await session.signal("go", "on");
  expect(await session.result()).toBe("on");
  const { length } = await two.storage.reader.journal(session.sessionId, 0, 100);
  expect(await watching).toBe(length);
  expect(runner.events.filter(({ type }) => type === "registered")).toHaveLength(1);
});

test("a thread that renews takes a refusal of its own deployment alone", async () => {
  const remote = openRemoteStorage({ url: one.url, token: "hf_usr_of-nobody" });
  const { module, data } = remote.renewal!();
  await remote.close();
  const { renew } = (await import(module)) as { renew: RenewInThread };
  const { signal } = new AbortController();
  const renewal = { owner: "me", sessionIds: ["s"], leaseMs: 5_000, blockedBy: "a step", signal };
  expect(await renew(data, renewal)).toBe(false);
  const moved = { ...(data as object), deployment: "another" };
  await expect(renew(moved, renewal)).rejects.toThrow("another deployment answered");
});

/** The server of this test run: `vitest.config.ts` keeps a door to it. */
async function serverUrl(): Promise<string> {
  const given = process.env["HOLDFAST_TEST_POSTGRES_URL"];
  return given ?? text(connect(process.env["HOLDFAST_TEST_POSTGRES_DOOR"]!));
}
