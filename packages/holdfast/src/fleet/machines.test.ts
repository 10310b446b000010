// A child that is asked for on a machine by name runs there and nowhere else.

import { defineAgent, local, remote } from "@holdfast/runtime";
import { afterEach, expect, test, vi } from "vitest";
import { startSession } from "../testing/coordinator-client.ts";
import { outputOf, PATIENCE, signal, sessionBecomes } from "../testing/fleet-sessions.ts";
import { openFleet, type Fleet } from "../testing/fleet.ts";

let fleet: Fleet | undefined;
afterEach(async () => {
  await fleet?.close();
  fleet = undefined;
});

/** Says where it began and where it ended. */
const where = (machine: string) =>
  defineAgent({
    name: "where",
    run: async (ctx) => {
      const began = await ctx.run("begin", () => machine);
      await ctx.waitForSignal("go");
      return [began, await ctx.run("end", () => machine)];
    },
  });

/** Why nobody has this session, as `GET /v1/runs` says. */
async function blockedReason({ url, adminToken }: Fleet, sessionId: string): Promise<string | undefined> {
  const headers = { authorization: `Bearer ${adminToken}` };
  const answer = await fetch(`${url}/v1/runs`, { headers });
  const { runs = [] } = (await answer.json()) as {
    readonly runs?: readonly { readonly sessionId: string; readonly blocked?: string }[];
  };
  return runs.find((run) => run.sessionId === sessionId)?.blocked;
}

test.each([
  ["remote", remote("where")],
  ["local", local("where")],
])(
  "a %s child waits for its machine, which is named, before it begins and when it is lost",
  async (_, mode) => {
    fleet = await openFleet();
    const asks = defineAgent({
      name: "asks",
      run: async (ctx) => ctx.waitForChild(ctx.spawnAgent(mode, undefined, { machine: "there" })),
    });
    await fleet.runner({ agents: [asks, where("here")], hostname: "here" });
    const sessionId = await startSession(fleet, { agent: "asks" });
    const child = `${sessionId}-0`;
    const opened = fleet;
    const isNamed = () =>
      vi.waitFor(
        async () => expect(await blockedReason(opened, child)).toBe("no registered runner has machine=there"),
        PATIENCE,
      );
    await isNamed();

    const there = await fleet.runner({ agents: [where("there")], hostname: "there" });
    await sessionBecomes(fleet, child, { status: "waiting" });
    await there.stop();
    await signal(fleet, child, "go");
    await isNamed();

    await fleet.runner({ agents: [where("there")], hostname: "there" });
    expect(await outputOf(fleet, sessionId)).toEqual(["there", "there"]);
    expect((await fleet.storage.reader.session(child))?.placement?.demands).toEqual({ machine: "there" });
  },
);
