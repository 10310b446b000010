// The screens of one session in a real browser: its journal with the states and forks, and its workspace.
//
// They are in the page campaign (`HOLDFAST_CAMPAIGN`), because each starts several processes beside the
// browser.

import { execFileSync } from "node:child_process";
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worktrees } from "@holdfast/workspace";
import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { CHROMIUM, NO_CHROMIUM, startBrowser } from "../testing/browser.ts";
import { Project } from "../testing/holdfast-process.ts";
import { PageStand } from "../testing/page-stand.ts";

const HOSTILE = new URL("../testing/hostile-agent.ts", import.meta.url).pathname;
const TURNS = new URL("../testing/turn-agent.ts", import.meta.url).pathname;
const CHECKPOINT = 4;

let browser: Browser;
let project: Project;
/** The user's data folder, in which worktrees lie. */
let data: string;

beforeAll(async () => {
  if (CHROMIUM !== undefined) browser = await startBrowser();
});
afterAll(async () => {
  await browser?.close();
});
beforeEach(({ skip }) => {
  if (CHROMIUM === undefined) skip(NO_CHROMIUM);
  data = mkdtempSync(join(tmpdir(), "holdfast-data-"));
  project = new Project({ fromSources: true, env: { XDG_DATA_HOME: data } });
});
afterEach(async () => {
  if (CHROMIUM === undefined) return;
  await project.dispose();
  rmSync(data, { recursive: true, force: true });
});

test(
  "a record is reached by its link, shows the states around it, and is forked with another input by keyboard",
  ofCampaign,
  async () => {
    const { code } = await project.run("run", TURNS, "--session", "origin", "--input", '{"n":1}');
    expect(code).toBe(0);
    const stand = await PageStand.open(browser, project);
    await stand.openLocal();
    const { page } = stand;

    await stand.follow(`sessions/origin?tab=journal&at=${CHECKPOINT - 1}`);
    await page.getByRole("region", { name: "Record 3" }).getByText("task completed").waitFor();
    await page.getByText("file 0 <script>window.attacked = 1</script>").first().waitFor();
    expect(await stand.violations()).toEqual([]);
    await page.keyboard.press("]");
    await page.keyboard.press("]");
    await page.getByText("Before, of record 4").waitFor();
    await page.getByText('"step": 1').first().waitFor();
    await page.getByText('"step": 2').first().waitFor();
    expect(await stand.violations()).toEqual([]);

    await page.keyboard.press("[");
    await page.getByText("After, of record 4").waitFor();
    await page.keyboard.press("f");
    const input = page.getByLabel("Input, as JSON");
    await input.fill("{");
    await page.getByRole("button", { name: "Fork", exact: true }).press("Enter");
    await page.getByText("the input is no JSON").waitFor();
    await input.fill('{"n":2}');
    expect(await stand.violations()).toEqual([]);
    await page.getByRole("button", { name: "Fork", exact: true }).press("Enter");
    await page.getByText(`Their first ${CHECKPOINT + 1} records are the same.`).waitFor();
    const id = new URL(page.url()).searchParams.get("beside")!;
    await page.getByText(`holdfast resume ${id}`).waitFor();

    const resumed = await project.run("resume", id);
    expect(JSON.parse(resumed.stdout)).toEqual({ n: 2 });
    await page.getByText("(completed)").waitFor();
    await page.reload();
    await page.getByText(`Their first ${CHECKPOINT + 1} records are the same.`).waitFor();
    expect(await stand.violations()).toEqual([]);
    await page.setViewportSize({ width: 390, height: 780 });
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(390);
    expect(await stand.violations()).toEqual([]);

    await stand.follow(`sessions/${id}`);
    await page.getByRole("link", { name: "forked from another session" }).click();
    await page.getByText(`Their first ${CHECKPOINT + 1} records are the same.`).waitFor();
    expect(await page.evaluate("globalThis.attacked")).toBeUndefined();
    expect(stand.trouble).toEqual([]);
    await page.close();
  },
);

function git(folder: string, ...args: readonly string[]): void {
  const name = ["-c", "user.name=Test", "-c", "user.email=test@example.invalid"];
  execFileSync("git", [...name, ...args], { cwd: folder, stdio: "ignore" });
}

/** The owner that a session gives to its worktree. */
async function ownerOf(id: string): Promise<string> {
  return String((await project.json<{ readonly createdAt: number }>("show", id)).createdAt);
}

test(
  "the workspace of a session shows its difference, its commits and what is nowhere else, and a session without one says why",
  ofCampaign,
  async () => {
    writeFileSync(project.path("value.txt"), "one\ntwo\n");
    writeFileSync(project.path(".gitignore"), ".holdfast/\n");
    git(project.folder, "init", "--quiet", "--initial-branch=main");
    git(project.folder, "add", "--all");
    git(project.folder, "commit", "--quiet", "-m", "base");
    for (const id of ["here", "none"])
      expect((await project.run("run", TURNS, "--session", id, "--input", "1")).code).toBe(0);
    const worktrees = new Worktrees({ folder: join(data, "holdfast", "worktrees") });
    const owner = await ownerOf("here");
    const { path } = await worktrees.open({ project: project.folder, session: "here", owner });
    writeFileSync(join(path, "value.txt"), "one\n<script>window.attacked = 1</script> \u202egnp.exe\n");
    git(path, "commit", "--quiet", "--all", "-m", "<b>bold</b> subject");
    appendFileSync(join(path, "value.txt"), "x".repeat(50_000));
    writeFileSync(join(path, "new file.txt"), "new\n");
    writeFileSync(join(path, "code.ts"), 'const name = "<b>"; // ↑\n');
    git(path, "add", "code.ts");
    const stand = await PageStand.open(browser, project);
    await stand.openLocal();
    const { page } = stand;

    await stand.follow("sessions/here");
    await page.getByRole("tab", { name: "timeline" }).waitFor();
    await page.keyboard.press("w");
    await page.getByText("2 changed, 1 untracked, 1 commit nowhere else").waitFor();
    await page.getByRole("region", { name: "Commits" }).getByText("<b>bold</b> subject").waitFor();
    await page.getByText("<script>window.attacked = 1</script> ⟨202E⟩gnp.exe").waitFor();
    await page.getByText("(50,000 characters)").waitFor();
    await page.getByText("3 files differ from the base").waitFor();
    await page.locator("td .code-keyword", { hasText: "const" }).waitFor();
    await page.locator("td .code-string", { hasText: '"<b>"' }).waitFor();
    expect(await stand.violations()).toEqual([]);
    await page.setViewportSize({ width: 390, height: 780 });
    await page.emulateMedia({ colorScheme: "dark" });
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(390);
    expect(await stand.violations()).toEqual([]);

    await page.setViewportSize({ width: 1200, height: 800 });
    await page.route("**/ui/workspaces/here", async (route) => {
      const answer = (await (await route.fetch()).json()) as object;
      await route.fulfill({ json: { ...answer, isDiffCut: true } });
    });
    await page.getByRole("button", { name: "Read again" }).click();
    await page.getByText("The difference is too long for this page.").waitFor();
    await page.getByRole("button", { name: "Merge into the project…" }).press("Enter");
    const sure = page.getByRole("dialog", { name: "Merge into the project" });
    await sure.getByText("A part of the difference is not shown here.").waitFor();
    // The command that it names shows also the files that git does not know.
    const whole = (await sure.locator("code", { hasText: "diff" }).innerText()).split(" ");
    expect(execFileSync(whole[0] ?? "", whole.slice(1), { encoding: "utf8" })).toContain("b/new file.txt");
    await sure.getByText("3 files are not committed, and will be committed first.").waitFor();
    await sure.getByRole("button", { name: "Merge into the project" }).click();
    await page.getByText("is merged into main.").waitFor();
    expect(readFileSync(project.path("new file.txt"), "utf8")).toBe("new\n");
    await stand.follow("audit");
    await expect.poll(() => page.getByText("session.merge").count()).toBe(2);

    await stand.follow("sessions/none?tab=workspace");
    await page.getByText("This session has no worktree of its own").waitFor();
    expect(await stand.violations()).toEqual([]);
    expect(await page.evaluate("globalThis.attacked")).toBeUndefined();
    expect(stand.trouble).toEqual([]);
    await page.close();
  },
);

test("a comment on a line of the work is sent to the agent as a message", ofCampaign, async () => {
  writeFileSync(project.path("value.txt"), "one\ntwo\n");
  writeFileSync(project.path(".gitignore"), ".holdfast/\n");
  git(project.folder, "init", "--quiet", "--initial-branch=main");
  git(project.folder, "add", "--all");
  git(project.folder, "commit", "--quiet", "-m", "base");
  const stand = await PageStand.open(browser, project);
  await stand.openLocal();
  const { page } = stand;
  await project.run("run", HOSTILE, "--park", "--session", "live");
  const worktrees = new Worktrees({ folder: join(data, "holdfast", "worktrees") });
  const owner = await ownerOf("live");
  const { path } = await worktrees.open({ project: project.folder, session: "live", owner });
  writeFileSync(join(path, "value.txt"), "one\nthree\n");
  await stand.follow("sessions/live?tab=workspace");
  await page.getByRole("button", { name: "Comment on a line" }).press("Enter");
  const box = page.getByLabel("Comment on value.txt");
  await expect.poll(() => box.evaluate((one) => one.matches(":focus"))).toBe(true);
  await box.fill("why not four?");
  await page.getByRole("cell", { name: "three" }).click();
  await page.keyboard.press("Control+Enter");
  await page.getByRole("link", { name: "See what becomes of it" }).click();
  await page.getByText("About value.txt, line 2: > three why not four?").waitFor();
  await page.getByText("Stored. The agent takes it when it next looks.").waitFor();
  await page.close();
});

test(
  "a workspace whose read is cut off is an error that a person repeats, and not a session without one",
  ofCampaign,
  async () => {
    await project.dispose();
    const bin = join(data, "bin");
    const stop = join(data, "stop");
    const path = process.env["PATH"]!;
    mkdirSync(bin);
    const script = `#!/bin/sh\n[ -e '${stop}' ] && kill -TERM $$\nPATH='${path}' exec git "$@"\n`;
    writeFileSync(join(bin, "git"), script, { mode: 0o755 });
    project = new Project({ fromSources: true, env: { XDG_DATA_HOME: data, PATH: `${bin}:${path}` } });
    writeFileSync(project.path("value.txt"), "one\n");
    git(project.folder, "init", "--quiet", "--initial-branch=main");
    git(project.folder, "add", "--all");
    git(project.folder, "commit", "--quiet", "-m", "base");
    const stand = await PageStand.open(browser, project);
    await stand.openLocal();
    const { page } = stand;
    await project.run("run", HOSTILE, "--park", "--session", "live");
    const worktrees = new Worktrees({ folder: join(data, "holdfast", "worktrees") });
    await worktrees.open({ project: project.folder, session: "live", owner: await ownerOf("live") });

    // Ctrl-C in the terminal of the server ends the git that it has just asked.
    writeFileSync(stop, "");
    await stand.follow("sessions/live?tab=workspace");
    await page.getByRole("alert").getByText("was ended by SIGTERM before it had an answer").waitFor();
    expect(await page.getByText("has no worktree of its own").count()).toBe(0);
    await stand.check("workspace-cut-off");
    rmSync(stop);
    await page.getByRole("button", { name: "Read again" }).press("Enter");
    await page.getByText("It has changed no file").waitFor();

    // An answer without content, as a proxy gives it, is none.
    for (const answer of [{ status: 204 }, { status: 200, contentType: "application/json", body: '{"sta' }]) {
      await page.route("**/ui/workspaces/**", (route) => route.fulfill(answer));
      await page.reload();
      await page.getByRole("alert").getByText("The server's answer was cut off").waitFor();
      await page.unroute("**/ui/workspaces/**");
      await page.getByText("It has changed no file").waitFor();
    }
    await page.close();
  },
);
