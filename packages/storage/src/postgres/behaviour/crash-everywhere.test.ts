// H9 over PostgreSQL: a fault at every commit and task boundary. A dead process leaves its rows behind, and
// claims that nobody renews any more.
//
// A few scenarios in every run; all of them in the PostgreSQL campaign (`HOLDFAST_CAMPAIGN`).

import type { AgentStorage } from "@holdfast/core";
import { crashEverywhere, crashScenarios, type CrashSubject } from "@holdfast/testkit";
import { describe, expect, test } from "vitest";
import { isCampaign, ofCampaign } from "@holdfast/testkit/campaign";
import { EmptiedSchema } from "../testing/emptied.ts";
import { runSql, sharedServerUrl } from "../testing/shared-server.ts";

const ALWAYS: ReadonlySet<string> = new Set(["a fan-out that joins", "a graceful cancel of a tree"]);
const scenarios = crashScenarios.filter(({ name }) => isCampaign || ALWAYS.has(name));

function postgresSubject(): CrashSubject {
  const emptied = new EmptiedSchema();
  // Parts of a process that has ended in the simulation may still be reading.
  const former: AgentStorage[] = [];
  return {
    name: "postgres",
    async open() {
      await Promise.all(former.splice(0).map((storage) => storage.close()));
      const storage = await emptied.open();
      former.push(storage);
      return storage;
    },
    async reopen() {
      const { schema } = emptied;
      await runSql(
        await sharedServerUrl(),
        `INSERT INTO ${schema}.instance VALUES ('dead', '-infinity') ON CONFLICT DO NOTHING;
         UPDATE ${schema}.state SET instance = 'dead' WHERE instance IS NOT NULL`,
      );
      const storage = await emptied.reopen();
      former.push(storage);
      return storage;
    },
  };
}

describe("H9: a crash at any point, and a resume, is the same as no crash (PostgreSQL)", () => {
  test.each(scenarios)("$name", { ...ofCampaign, timeout: 300_000 }, async (scenario) => {
    const report = await crashEverywhere(scenario, postgresSubject());
    expect(report.failures).toEqual([]);
    expect(report.commits).toBeGreaterThan(1);
  });
});
