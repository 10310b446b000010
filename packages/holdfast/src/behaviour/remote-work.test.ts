// The work of a session of a fleet, for the page of its coordinator: the runner of the session is asked.

import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worktrees } from "@holdfast/workspace";
import { afterEach, beforeEach, expect, test } from "vitest";
import { startSession, userToken } from "../testing/coordinator-client.ts";
import { startCoordinator, startRunnerProcess, type CoordinatorProcess } from "../testing/fleet-processes.ts";
import { Project } from "../testing/holdfast-process.ts";

const TURNS = new URL("../testing/turn-agent.ts", import.meta.url).pathname;
const LEASE_MS = 6_000;
/** A runner that was killed counts as there for its lease, and a question to it then takes half a minute. */
const TIMEOUT_MS = 180_000;

let data: string;
let project: Project;
let coordinator: CoordinatorProcess;

beforeEach(async () => {
  data = mkdtempSync(join(tmpdir(), "holdfast-data-"));
  project = new Project({ fromSources: true, env: { XDG_DATA_HOME: data } });
  project.write("value.txt", "one\n");
  project.write(".gitignore", ".holdfast/\nfleet.db*\ncoordinator.json\n");
  git(project.folder, "init", "--quiet", "--initial-branch=main");
  git(project.folder, "add", "--all");
  git(project.folder, "commit", "--quiet", "-m", "base");
  coordinator = await startCoordinator(project, { leaseMs: LEASE_MS });
});
afterEach(async () => {
  await project.dispose();
  rmSync(data, { recursive: true, force: true });
});

function git(folder: string, ...args: readonly string[]): void {
  const name = ["-c", "user.name=Test", "-c", "user.email=test@example.invalid"];
  execFileSync("git", [...name, ...args], { cwd: folder, stdio: "ignore" });
}

interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

async function ask(path: string, body?: object, token = coordinator.adminToken): Promise<Answer> {
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
  const post = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  const response = await fetch(`${coordinator.url}/${path}`, { headers, ...post });
  return { status: response.status, body: (await response.json()) as Answer["body"] };
}

/** A session that a runner has ended, with a file in a worktree of its own. */
async function workedOn(): Promise<string> {
  const sessionId = await startSession(coordinator, { agent: "turns", input: 1 });
  const read = async () => (await ask(`v1/sessions/${sessionId}`)).body;
  await expect.poll(async () => (await read())["status"], { timeout: 60_000 }).toBe("completed");
  const owner = String((await read())["createdAt"]);
  const { path } = await worktreesOf().open({ project: project.folder, session: sessionId, owner });
  writeFileSync(join(path, "made.txt"), "made\n");
  return sessionId;
}

const worktreesOf = () => new Worktrees({ folder: join(data, "holdfast", "worktrees") });

const startRunner = (...args: string[]) =>
  startRunnerProcess(project, coordinator, "box", ["-p", ".", "--agents", TURNS, ...args]);

test(
  "an admin reads the work through the runner, and merges it where the policy of its machine says so",
  { timeout: TIMEOUT_MS },
  async () => {
    const first = await startRunner();
    const sessionId = await workedOn();
    expect((await ask("ui/about")).body).toMatchObject({ hasWorkspaces: true });
    const read = await ask(`ui/workspaces/${sessionId}`);
    expect(read.body).toMatchObject({ status: "there", untracked: ["made.txt"] });
    const { revision } = read.body;

    const refused = await ask(`ui/workspaces/${sessionId}/merge`, { commit: true, revision });
    expect([refused.status, refused.body]).toEqual([
      403,
      expect.objectContaining({
        code: "policy_denied",
        detail: expect.stringContaining("says: the policy of the runner's machine"),
        fix: `the runner says: run \`holdfast merge ${sessionId}\` in the project on that machine, or set "mergeWork": true in its policy`,
      }),
    ]);
    expect(existsSync(project.path("made.txt"))).toBe(false);

    first.kill("SIGTERM");
    await first.finished;
    const policy = join(data, "policy.json"); // Outside of the project, where agents write.
    writeFileSync(policy, '{"mergeWork": true}', { mode: 0o600 });
    await startRunner("--policy", policy);
    const { path } = (await worktreesOf().list(project.folder))[0]!;
    writeFileSync(join(path, "late.txt"), "late\n");
    const late = await ask(`ui/workspaces/${sessionId}/merge`, { commit: true, revision });
    expect([late.status, late.body["code"]]).toEqual([409, "conflict"]);
    const now = (await ask(`ui/workspaces/${sessionId}`)).body["revision"];
    const merged = await ask(`ui/workspaces/${sessionId}/merge`, { commit: true, revision: now });
    expect(merged.body).toMatchObject({ into: "main", isNew: true });
    expect(existsSync(project.path("made.txt"))).toBe(true);
    const { rows } = (await ask("v1/audit")).body as { rows: readonly Answer["body"][] };
    const merges = rows
      .filter(({ action }) => action === "session.merge")
      .map(({ object, actor, outcome }) => [object, actor, outcome]);
    const row = (outcome: string) => [`session:${sessionId}`, expect.stringMatching(/^admin:/), outcome];
    const outcomes = ["asked", "policy_denied", "asked", "conflict", "asked", "done"];
    expect(merges).toEqual(expect.arrayContaining(outcomes.map(row)));
    expect(merges).toHaveLength(outcomes.length);
  },
);

test(
  "a user does not see it, and without its runner the answer names the commands",
  { timeout: TIMEOUT_MS },
  async () => {
    const runner = await startRunner();
    const sessionId = await workedOn();
    const user = await userToken(coordinator, "ada");
    expect((await ask("ui/about", undefined, user)).body).toMatchObject({ hasWorkspaces: false });
    expect((await ask(`ui/workspaces/${sessionId}`, undefined, user)).status).toBe(404);
    expect((await ask("ui/workspaces/ses_none")).status).toBe(404);
    const waiting = await startSession(coordinator, { agent: "nobody" });
    expect((await ask(`ui/workspaces/${waiting}`)).body).toEqual({ status: "none" });

    runner.kill("SIGKILL");
    await runner.finished;
    await expect
      .poll(async () => (await ask(`ui/workspaces/${sessionId}`)).status, {
        timeout: 90_000,
        interval: 1_000,
      })
      .toBe(503);
    const { body } = await ask(`ui/workspaces/${sessionId}`);
    expect(body["fix"]).toContain("`holdfast diff` and `holdfast merge` in the project on its machine");
  },
);
