// L4b: a session that ends its process again and again, without a coordinator, in real processes.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { newSchema, sharedServerUrl } from "@holdfast/storage/postgres-testing";
import { copyFileSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { isCampaign, ofCampaign } from "@holdfast/testkit/campaign";
import { openSqliteReader } from "../index.ts";
import { PACKAGES, Project } from "../testing/holdfast-process.ts";

/** The program, beside the bundled packages: from their sources each of its starts would take twice as long. */
const beside = mkdtempSync(join(tmpdir(), "holdfast-deadly-"));
const PROGRAM = join(beside, "deadly-process.ts");
beforeAll(() => {
  copyFileSync(fileURLToPath(new URL("../testing/deadly-process.ts", import.meta.url)), PROGRAM);
  symlinkSync(PACKAGES, join(beside, "node_modules"));
});
afterAll(() => rmSync(beside, { recursive: true, force: true }));

async function newDatabase(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "holdfast-deaths-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return join(folder, "test.db");
}

async function newPostgresSchema(): Promise<string> {
  return `${await sharedServerUrl()}#${newSchema()}`;
}

/** The deaths after which a session over SQLite is parked as poison. */
const DEATHS = 8;

interface End {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly output: string;
}

/** @param onReady called when the program says that it has recovered its sessions. */
async function runOnce(args: readonly string[], onReady?: (pid: number) => void): Promise<End> {
  const child = spawn(process.execPath, ["--no-warnings", PROGRAM, ...args], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (piece: string) => {
    output += piece;
    if (output === "ready\n") onReady?.(child.pid!);
  });
  const [code, signal] = (await once(child, "close")) as [number | null, NodeJS.Signals | null];
  return { code, signal, output };
}

// `npm test` leaves these tests out. A run of this file alone plays a kill over PostgreSQL and an exception
// over SQLite. A kill over SQLite is in the test of `resume --last`. The kills campaign plays every end over
// both (`HOLDFAST_CAMPAIGN`).
const KINDS = [
  // The first death over SQLite is not counted, two make a suspect, and five happen on trial.
  ["SQLite", "kill", newDatabase, DEATHS],
  ["SQLite", "exit", newDatabase, DEATHS],
  ["SQLite", "throw", newDatabase, DEATHS],
  ["PostgreSQL", "kill", newPostgresSchema, 7],
  ["PostgreSQL", "exit", newPostgresSchema, 7],
] as const;

for (const [storage, kind, newPlace, expected] of KINDS.filter(
  ([place, end]) => isCampaign || (place === "SQLite" ? end === "throw" : end === "kill"),
))
  test(
    `L4b: over ${storage} a session whose task ends its process (${kind}) is parked as poison, and the sessions beside it complete`,
    { ...ofCampaign, timeout: 120_000 },
    async () => {
      const path = await newPlace();
      let deaths = 0;
      let end = await runOnce([path, kind]);
      for (; end.code !== 0 && deaths < 15; deaths++) end = await runOnce([path, kind]);
      const [statuses, row] = end.output.split("\n");
      expect(JSON.parse(statuses!)).toEqual(["completed", "paused", "completed"]);
      expect(JSON.parse(row!)).toEqual(["poison", expect.stringContaining("died 5 times in a row")]);
      expect(deaths).toBe(expected);
    },
  );

test.each(isCampaign ? (["SIGINT", "SIGTERM"] as const) : (["SIGTERM"] as const))(
  "L4b: a session is not parked when %s ends its program each time",
  { ...ofCampaign, timeout: 120_000 },
  async (signal) => {
    const path = await newDatabase();
    for (let i = 0; i <= DEATHS; i++) {
      const end = await runOnce([path, "waits", "signal"], (pid) => process.kill(pid, signal));
      expect(end.signal).toBe(signal);
    }
    const reader = openSqliteReader({ path });
    expect((await reader.session("deadly"))?.status).toBe("working");
    reader.close();
  },
);

test("L4b: a session is not parked when its program fails for a reason of its own", async () => {
  const path = await newDatabase();
  for (let i = 0; i <= DEATHS; i++) expect((await runOnce([path, "waits", "main"])).code).toBe(1);
  const reader = openSqliteReader({ path });
  expect((await reader.session("deadly"))?.status).toBe("working");
  reader.close();
}, 120_000);

test(
  "resume --last refuses a session that was parked as poison, and its id tries it again",
  { ...ofCampaign, timeout: 120_000 },
  async () => {
    const project = new Project();
    onTestFinished(() => project.dispose());
    writeFileSync(
      project.path("deadly.ts"),
      `import { defineAgent } from "holdfast";
export default defineAgent({ name: "deadly", run: (ctx) => ctx.run("die", () => process.kill(process.pid, "SIGKILL")) });
`,
    );
    let ended = await project.run("run", "deadly.ts", "--session", "d");
    for (let deaths = 0; ended.signal === "SIGKILL" && deaths < 12; deaths++)
      ended = await project.run("resume", "--last");
    for (let tries = 0; tries < 2; tries++) {
      const refused = await project.run("resume", "--last");
      expect(refused).toMatchObject({ code: ended.code, signal: null });
      for (const text of ["E_SESSION_PAUSED", "paused (poison)", "holdfast resume d"])
        expect(refused.stderr).toContain(text);
    }
    expect(await project.run("resume", "d")).toMatchObject({ signal: "SIGKILL" });
  },
);
