// Kills of the local stack: coordinator, runner and supervisor, in any order and at any moment.
//
// `npm test` kills 5 times, and the kills campaign 100 times.

import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Project } from "../testing/holdfast-process.ts";
import { LocalStack, textOf } from "../testing/local-stack.ts";

const KILLS = process.env["HOLDFAST_CAMPAIGN"] === undefined ? 5 : 100;
const COMPONENTS = ["runner", "coordinator", "supervisor"] as const;
const STEPS = 3;

let project: Project;
let stack: LocalStack;
beforeEach(() => {
  project = new Project();
  stack = new LocalStack(project);
});
afterEach(() => stack.dispose());

test(
  `the stack heals after ${KILLS} kills, loses no acknowledged session and leaves no process behind`,
  { timeout: KILLS * 30_000 },
  async () => {
    expect(await stack.start()).toMatchObject({ code: 0 });
    const { url } = await stack.ready();
    const { port } = new URL(url!);
    const data = project.path(".local/share/holdfast");
    const headers = {
      authorization: `Bearer ${readFileSync(`${data}/admin-token`, "utf8").trim()}`,
      "content-type": "application/json",
    };
    const call = (path: string, body?: object): Promise<Response | undefined> =>
      fetch(`${url}/v1/sessions${path}`, {
        headers,
        ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
      }).catch(() => undefined);

    const acknowledged: string[] = [];
    const killing = new AbortController();
    const clients = (async () => {
      for (let n = 0; !killing.signal.aborted; n++) {
        const sessionId = `kill-${n}`;
        const input = { count: STEPS, ms: 30 };
        if ((await call("", { sessionId, agent: "steps", input }))?.status === 201)
          acknowledged.push(sessionId);
        await delay(100);
      }
    })();

    for (let kills = 0; kills < KILLS || acknowledged.length < KILLS; kills++) {
      await delay(Math.random() * 1_500);
      // The first ones are each of the three. A process that is just not there is killed another time.
      const component = COMPONENTS[kills < 3 ? kills : Math.floor(Math.random() * 3)]!;
      await stack.killIfThere(component);
      if (component !== "supervisor") continue;
      const again = await project.run("up", "--agents", "agents.ts", "--port", port);
      expect(again).toMatchObject({ code: 0 });
    }
    killing.abort();
    await clients;
    await stack.ready();

    for (const sessionId of acknowledged) {
      for (;;) {
        const answer = await call(`/${sessionId}`);
        const session =
          answer?.ok === true ? ((await answer.json()) as { status: string; output: unknown }) : undefined;
        if (session?.status === "completed") {
          expect(session.output).toBe(STEPS);
          break;
        }
        expect([sessionId, session?.status]).not.toEqual([
          sessionId,
          expect.stringMatching(/failed|paused|cancelled/),
        ]);
        expect(answer?.status).not.toBe(404);
        await delay(50);
      }
    }
    const done = textOf(project.path("ledger")).trim().split("\n");
    const steps = new Set(done.map((line) => line.split(" ").slice(0, 2).join(" ")));
    for (const sessionId of acknowledged)
      for (let step = 0; step < STEPS; step++) expect(steps).toContain(`${sessionId} ${step}`);

    expect(await project.run("local", "stop")).toMatchObject({ code: 0 });
    expect(stack.processes()).toEqual([]);
    for (const name of readdirSync(`${data}/local`))
      expect([name, readFileSync(`${data}/local/${name}`, "latin1")]).not.toEqual([
        name,
        expect.stringMatching(/hf_(adm|usr|reg|rnr|job)_[0-9a-f]{16}/),
      ]);
  },
);
