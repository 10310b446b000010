// Real kills of the real command: at any moment, again and again, with the outside world going on meanwhile.
//
// HOLDFAST_KILLS sets how many: 500 in the kills campaign. Without it, the daemon is killed 6 times here, and
// the coding agent 3 times beside its example. `npm test` leaves both to the campaign.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { isNote, type JournalRecord } from "@holdfast/core";
import { openSqliteReader } from "@holdfast/storage/sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { Project } from "../testing/holdfast-process.ts";

const KILLS = Number(process.env["HOLDFAST_KILLS"] ?? 6);
const DESK = fileURLToPath(new URL("../../../../examples/05-daemon/orders.ts", import.meta.url));

describe("KILL", () => {
  let project: Project;
  beforeEach(() => void (project = new Project({ eachAsProcess: true })));
  afterEach(() => project.dispose());

  test(
    `${KILLS} kills of a daemon: nothing acknowledged is lost, no committed task runs again, entries are exact`,
    { ...ofCampaign, timeout: 60_000 + KILLS * 10_000 },
    async () => {
      const ledger = project.path("ledger.txt");
      const acknowledged: number[] = [];

      // Another terminal, for the whole time: what its command says was stored must be shipped in the end.
      const killing = new AbortController();
      const orders = (async () => {
        for (let n = 1; !killing.signal.aborted; n++) {
          const order = JSON.stringify({ id: `A-${n}`, cents: n });
          const { code, stderr } = await project.run("signal", "desk", "order", order, "--key", `A-${n}`);
          if (code === 0) acknowledged.push(n);
          else
            expect(
              stderr,
              "a signal is refused only while there is no session, or its owner was just killed",
            ).toMatch(/E_(FILE_NOT_FOUND|SESSION_NOT_FOUND|LOCKED|STORAGE_UNAVAILABLE)/);
        }
      })();

      const first = project.start(["run", DESK, "--session", "desk", "--input", JSON.stringify({ ledger })]);
      await first.says("waits for signal");
      first.kill("SIGKILL");
      await first.finished;
      // More of them where the machine is too busy for many orders meanwhile.
      for (let kills = 1; kills < KILLS || acknowledged.length <= KILLS / 10; kills++) {
        const desk = project.start(["resume", "desk"]);
        await new Promise((resolve) => setTimeout(resolve, 100 + Math.random() * 500));
        desk.kill("SIGKILL");
        await desk.finished;
      }
      killing.abort();
      await orders;

      const desk = project.start(["resume", "desk"]);
      expect(await project.run("signal", "desk", "close")).toMatchObject({ code: 0 });
      const { code, stdout } = await desk.finished;
      expect(code).toBe(0);

      expect(acknowledged.length).toBeGreaterThan(KILLS / 10);
      const { shipped, cents } = JSON.parse(stdout) as { shipped: number; cents: number };
      const { entries } = await project.json<{ entries: { content: string }[] }>("show", "desk");
      const ids = entries.map(({ content }) => content.replace("shipped ", ""));
      expect(new Set(ids).size, "an order was shipped twice").toBe(ids.length);
      expect(ids).toEqual(expect.arrayContaining(acknowledged.map((n) => `A-${n}`)));
      expect(shipped).toBe(ids.length);
      expect(cents).toBe(ids.reduce((sum, id) => sum + Number(id.slice(2)), 0));

      // One line per attempt: as many as the journal knows of, and always under the same key.
      const lost = lostAttempts(await journalOf(project.path(".holdfast/holdfast.db"), "desk"));
      const runs = new Map<string, number>();
      for (const line of readFileSync(ledger, "utf8").trimEnd().split("\n"))
        runs.set(line, (runs.get(line) ?? 0) + 1);
      expect(runs.size, "an order has two keys").toBe(ids.length);
      for (const [line, count] of runs) {
        const task = Number(/-(\d+) A-/.exec(line)?.[1]);
        expect(count, line).toBeLessThanOrEqual(1 + (lost.get(task) ?? 0));
      }
    },
  );
});

async function journalOf(path: string, sessionId: string): Promise<JournalRecord[]> {
  const reader = openSqliteReader({ path });
  const records: JournalRecord[] = [];
  for (;;) {
    const page = await reader.journal(sessionId, records.length, 10_000);
    if (page.length === 0) break;
    records.push(...page);
  }
  reader.close();
  return records;
}

/** How many attempts of each task the journal says were lost. */
function lostAttempts(journal: readonly JournalRecord[]): Map<number, number> {
  const lost = new Map<number, number>();
  for (const record of journal) {
    if (isNote(record) && record.type === "attempt_lost")
      lost.set(record.task, (lost.get(record.task) ?? 0) + 1);
  }
  return lost;
}
