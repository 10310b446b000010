// Plans of PostgreSQL for pages of sessions (session-page-1, session-page-2). The tables are empty, or not
// analysed, or known to hold a single value.

import type { StorageReader } from "@holdfast/core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Database } from "../database/database.ts";
import { openPostgresStorage } from "../open.ts";
import { countsOf, pageOf } from "./session-page.ts";
import { newSchema, runSql, sharedServerUrl } from "../testing/shared-server.ts";

type Query = Omit<Parameters<StorageReader["sessions"]>[0], "limit">;

const OTHERS = 3_000;
const schema = newSchema();
let url: string;
let db: Database;

beforeAll(async () => {
  url = await sharedServerUrl();
  const storage = await openPostgresStorage({ url, schema });
  await storage.close();
});

afterAll(() => db.close());

/** Rows that only lists look at: all of one agent, one status and one owner. */
const FILL = `
  INSERT INTO ${schema}.session SELECT 'ses-' || n, n % 8, n, 'writer', 'ben', 'root', '{}', 0
    FROM generate_series(1, ${OTHERS}) AS n;
  INSERT INTO ${schema}.state SELECT n % 8, 'ses-' || n, 1, 'completed', 1, 'writer', '{}', 0, NULL, NULL, NULL, NULL,
    0, NULL, 0, 0, 0, NULL, n FROM generate_series(1, ${OTHERS}) AS n;`;

interface Plan {
  readonly "Node Type": string;
  readonly "Index Name"?: string;
  readonly "Index Cond"?: string;
  readonly Filter?: string;
  readonly Plans?: readonly Plan[];
}

/** The scan that walks, apart from look-ups by key, and every kind of node there is. */
async function planOf(
  query: Query,
  [statement, values] = pageOf({ limit: 5, ...query }),
): Promise<{ readonly walk: string; readonly nodes: readonly string[] }> {
  // A connection of its own: nothing that was planned before counts.
  await db?.close();
  db = new Database({ url, schema, connectionsMax: 1, connectTimeoutMs: 10_000 });
  await db.run({ text: `PREPARE page AS ${statement.text}` });
  const texts = values.map((value) => (Array.isArray(value) ? `{${value.join(",")}}` : value));
  const given = texts.map((value) => (typeof value === "number" ? value : `'${String(value)}'`)).join(", ");
  const [row] = await db.run({ text: `EXPLAIN (FORMAT JSON) EXECUTE page (${given})` });
  const [{ Plan: top }] = row!["QUERY PLAN"] as [{ readonly Plan: Plan }];
  const all = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(all)];
  const scans = all(top).filter((plan) => plan["Node Type"].includes("Scan"));
  const walks = scans.filter(({ "Index Name": index }) => index?.endsWith("_pkey") !== true);
  const walk = walks.map((plan) => `${plan["Index Name"]} ${plan["Index Cond"] ?? ""} ${plan.Filter ?? ""}`);
  return { walk: walk.join("; ").trim(), nodes: all(top).map((plan) => plan["Node Type"]) };
}

const SITUATIONS: readonly (readonly [string, () => Promise<unknown>])[] = [
  ["are empty", () => Promise.resolve()],
  ["were filled and not analysed", () => runSql(url, FILL)],
  ["were analysed", () => runSql(url, `ANALYZE ${schema}.session; ANALYZE ${schema}.state`)],
];

for (const [situation, bringAbout] of SITUATIONS) {
  test(`a page by one filter is a range of its index when tables ${situation}`, async () => {
    await bringAbout();
    const before = { before: "ses-9" };
    for (const [query, index, column] of [
      [{ status: "failed" }, "state_status", "status"],
      [{ agent: "reviewer" }, "session_agent", "agent"],
      [{ owner: "anna" }, "session_owner", "owner"],
      [{ parent: "ses-1" }, "session_parent", "parent"],
    ] as const) {
      const oldest = { oldestFirst: true } as const;
      for (const asked of [query, { ...query, ...before }, { ...query, ...oldest, ...before }]) {
        const { walk, nodes } = await planOf(asked);
        const range = `^${index} \\(+${column} >= \\$2\\) AND \\(${column} <= \\$2\\)`;
        expect(walk).toMatch(
          new RegExp(`${range}${"before" in asked ? " AND \\(ROW\\(born, session_id\\)|.*" : "\\)$"}`),
        );
        expect(nodes).not.toContain("Sort");
        expect(nodes).not.toContain("Seq Scan");
      }
    }
    for (const query of [
      {},
      before,
      { agent: "reviewer", status: "failed" },
      { owner: "anna", agent: "x" },
    ] as const) {
      const { nodes, walk } = await planOf(query);
      expect(nodes).not.toContain("Sort");
      expect(nodes).not.toContain("Seq Scan");
      expect(walk).toMatch(/^session_(born|agent|owner) .* >= /);
    }
    for (const [query, index] of [
      [{}, /state_status/],
      [{ agent: "reviewer" }, /session_agent .* >= /],
      [{ owner: "anna", agent: "x" }, /session_owner .* >= /],
    ] as const) {
      const { nodes, walk } = await planOf({}, countsOf({ limit: 5, ...query }));
      expect(nodes).not.toContain("Seq Scan");
      expect(walk).toMatch(index);
    }
  });
}
