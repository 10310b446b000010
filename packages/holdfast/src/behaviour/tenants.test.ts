// Requests of 64 tenants in one server: no agent and no step sees the asynchronous context of a request.
//
// Each case is a process of its own, because the neutral context is captured when Holdfast is first loaded.

import { execFile } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { newSchema, sharedServerUrl } from "@holdfast/storage/postgres-testing";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { describe, expect, test } from "vitest";

const PROGRAM = fileURLToPath(new URL("../testing/tenants-program.ts", import.meta.url));

/** How often each place sees a context: at least so often, as an agent is called again after each wake. */
const WANTED = {
  agent: { none: 64 },
  "step under enterWith": { own: 64 },
  "agent after enterWith": { own: 64 },
  step: { none: 64 },
  "step after its await": { none: 64 },
  "step within run": { own: 64 },
  "parallel step": { own: 192 },
  "attempts of a step": { own: 192 },
  "registered task": { none: 64 },
  "registered task after its await": { none: 64 },
  "agent after a task": { none: 64 },
  "agent after a timer": { none: 64 },
  "schema of a signal": { none: 64 },
  "agent after a signal": { none: 64 },
  child: { none: 64 },
  "handler of a child's request": { none: 64 },
  "child after its request": { none: 64 },
  "step of a child": { none: 64 },
  "agent after a child": { none: 64 },
  "agent at its end": { none: 64 },
  "listener of an abort": { none: 64 },
  "step after an abort": { none: 64 },
};

type Counts = Record<string, Record<string, number>>;

/** The counts, each no larger than the wanted one. */
async function play(...args: readonly string[]): Promise<Counts> {
  const { stdout } = await promisify(execFile)(process.execPath, ["--no-warnings", PROGRAM, ...args]);
  const seen = JSON.parse(stdout) as Counts;
  const capped = (place: string, counts: Record<string, number>): Record<string, number> =>
    Object.fromEntries(
      Object.entries(counts).map(([what, count]) => [
        what,
        Math.min(count, (WANTED as Counts)[place]?.[what] ?? count),
      ]),
    );
  return Object.fromEntries(Object.entries(seen).map(([place, counts]) => [place, capped(place, counts)]));
}

describe("C1: 64 tenants see no context of a request", () => {
  test("Holdfast is first imported, made and started inside a request", async () => {
    expect(await play("inside", "memory")).toEqual(WANTED);
  });

  test("a file of SQLite is the storage", ofCampaign, async () => {
    const path = join(mkdtempSync(join(tmpdir(), "holdfast-tenants-")), "tenants.db");
    expect(await play("outside", "sqlite", path)).toEqual(WANTED);
  });

  test("PostgreSQL is the storage", ofCampaign, async () => {
    expect(await play("outside", "postgres", await sharedServerUrl(), newSchema())).toEqual(WANTED);
  });

  test("a coordinator and its runner are in the server's process", ofCampaign, async () => {
    expect(await play("inside", "fleet")).toEqual(WANTED);
  });
});
