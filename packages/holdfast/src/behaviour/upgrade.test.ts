// `holdfast upgrade --check`: what would become of the sessions that wait, said beforehand and without a change.

import { createHash } from "node:crypto";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { BEHAVIOUR_FLAGS, JOURNAL_FORMAT } from "@holdfast/core";
import { openSqliteStorage } from "@holdfast/storage/sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { startSession } from "../testing/coordinator-client.ts";
import { expectError } from "../testing/expect-error.ts";
import { sessionBecomes } from "../testing/fleet-sessions.ts";
import { openFleet } from "../testing/fleet.ts";
import { Project } from "../testing/holdfast-process.ts";
import { defineAgent } from "../index.ts";

let project: Project;
beforeEach(() => void (project = new Project()));
afterEach(() => project.dispose());

/** An agent that waits for a person behind a step. */
function write(name: string, step = "load", fields = ""): void {
  project.write(
    `${name}.ts`,
    `import { defineAgent } from "holdfast";
export default defineAgent({ name: "${name}", ${fields} run: async (ctx) => {
  await ctx.run("${step}", () => 1);
  return ctx.requestInput("Which?", { answer: "any" });
} });\n`,
  );
}

async function park(name: string): Promise<void> {
  const { code, stderr } = await project.run("run", `${name}.ts`, "--session", name, "--park");
  expect(code, stderr).toBe(0);
}

/**
 * Every file of the project's folder of Holdfast that says something, with its content. SQLite leaves an empty log
 * and an index of it beside each database that is read.
 */
function content(): readonly string[] {
  const folder = project.path(".holdfast");
  return readdirSync(folder)
    .map((name) => ({ name, bytes: readFileSync(`${folder}/${name}`) }))
    .filter(({ name, bytes }) => bytes.length > 0 && !name.endsWith("-shm"))
    .map(({ name, bytes }) => `${name} ${createHash("sha256").update(bytes).digest("hex")}`)
    .toSorted();
}

interface Checked {
  readonly version: string;
  readonly sessions: readonly {
    readonly sessionId: string;
    readonly outcome: string;
    readonly why?: string;
    readonly error?: { readonly code: string; readonly got?: string; readonly expected?: string };
  }[];
}

const outcomes = ({ sessions }: Checked) =>
  Object.fromEntries(sessions.map(({ sessionId, outcome, error }) => [sessionId, error?.code ?? outcome]));

describe("upgrade --check", () => {
  test("names for each session whether it continues, or why it is refused, and changes no byte", async () => {
    for (const name of ["same", "changed", "gone", "older"]) {
      write(name);
      await park(name);
    }
    const before = content();
    const all = await project.run("upgrade", "--check");
    expect(all.code, all.stderr).toBe(0);
    expect(all.stdout).toContain("4 of 4 unfinished sessions would continue with Holdfast");

    write("changed", "fetch");
    write("older", "load", 'version: "2",');
    rmSync(project.path("gone.ts"));
    const { code, stdout } = await project.run("upgrade", "--check");
    expect(code).toBe(11); // The newest session has an agent of another version.
    expect(stdout).toMatch(/same +input_required +same +\S+ continues/);
    expect(stdout).toContain(
      "the code of its agent was changed, and does not fit what the session has done so far",
    );
    expect(stdout).toContain("the file of its agent is gone");
    expect(stdout).toContain("its agent has another version than the one it began with");
    expect(stdout).toContain("1 of 4 unfinished sessions would continue");
    const checked = await project.json<Checked & Record<string, unknown>>("upgrade", "--check");
    expect(outcomes(checked)).toEqual({
      same: "continues",
      changed: "nondeterminism",
      gone: "file_not_found",
      older: "agent_version",
    });
    const { error } = checked.sessions.find(({ sessionId }) => sessionId === "changed")!;
    expect([error?.expected, error?.got]).toEqual([
      expect.stringContaining("load"),
      expect.stringContaining("fetch"),
    ]);
    expect(content()).toEqual(before);
    // A resume then does what was said.
    expect((await project.run("resume", "changed", "--park")).stderr).toContain("diverged from its journal");
    expect((await project.run("resume", "same", "--park")).code).toBe(0);
  });

  test("a session of a newer Holdfast is refused, and one that has ended is not looked at", async () => {
    project.write("ends.ts", `export default async function ends() { return 1; }\n`);
    expect((await project.run("run", "ends.ts", "--session", "ended")).code).toBe(0);
    const storage = await openSqliteStorage({ path: project.path(".holdfast/holdfast.db") });
    const agent = { name: "ends", version: "1", file: project.path("ends.ts") };
    const creation = { type: "create_session", agent, seed: 1, input: "1", format: JOURNAL_FORMAT } as const;
    await storage.commit([{ ...creation, sessionId: "newer", flags: BEHAVIOUR_FLAGS + 1 }], 0);
    await storage.close();
    const { code, stdout } = await project.run("upgrade", "--check");
    expect([code, stdout]).toEqual([11, expect.stringContaining("a newer Holdfast began it")]);
    expect(stdout).toContain("0 of 1 unfinished session would continue");
  });

  test("sessions of a coordinator are checked with the agents of the files that are named", async () => {
    const fleet = await openFleet();
    try {
      const writer = defineAgent({
        name: "writer",
        run: async (ctx) => {
          await ctx.run("load", () => 1);
          return ctx.requestInput("Which?", { answer: "any" });
        },
      });
      await fleet.runner({ agents: [writer] });
      const id = await startSession(fleet, { agent: "writer" });
      const session = await sessionBecomes(fleet, id, { status: "input_required" });
      const env = { HOLDFAST_TOKEN: fleet.adminToken };
      const check = (...args: readonly string[]) =>
        project.finish(["upgrade", "--check", "--url", fleet.url, ...args], { env });
      write("writer");
      const good = await check("--agents", "writer.ts");
      expect(good.code, good.stdout + good.stderr).toBe(0);
      expect((await check()).stdout).toContain("holdfast upgrade --check --agents FILE");
      write("writer", "fetch");
      const changed = await check("--agents", "writer.ts", "--json");
      expect([changed.code, outcomes(JSON.parse(changed.stdout) as Checked)]).toEqual([
        1,
        { [id]: "nondeterminism" },
      ]);
      expect(await fleet.storage.reader.session(id)).toEqual(session);
    } finally {
      await fleet.close();
    }
  });

  test("nothing has to continue where no session waits, and without --check the command is wrong", async () => {
    const { code, stdout } = await project.run("upgrade", "--check");
    expect([code, stdout]).toEqual([0, expect.stringContaining("there is no unfinished session")]);
    expectError(await project.run("upgrade"), 2, "E_USAGE", ["upgrade needs --check"]);
  });
});
