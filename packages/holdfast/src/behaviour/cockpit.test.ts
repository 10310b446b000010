// `holdfast top` on a real terminal: many sessions, and a key for each thing that a person wants of one.

import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { stripVTControlCharacters } from "node:util";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { ExternalProject } from "../testing/external-project.ts";
import type { HoldfastProcess } from "../testing/holdfast-process.ts";

const ASKS = `import { defineAgent } from "holdfast";
export default defineAgent({ name: "asks", run: (ctx) => ctx.requestInput({ prompt: "Allow shell?", details: {
  tool: "shell", input: { command: "rm -rf build" }, folder: "/srv/app" } }) });
`;

let project: ExternalProject;
/** Programs on the terminal, to be ended. */
let shown: HoldfastProcess[];
beforeEach(() => {
  project = new ExternalProject();
  shown = [];
  project.write("asks.ts", ASKS);
});
afterEach(async () => {
  for (const one of shown) one.kill("SIGKILL");
  await project.dispose();
});

/** A line of a shell on a terminal of this size. */
function onTerminal(line: string, columns = 120, rows = 40): HoldfastProcess {
  const { PATH } = project.environment();
  const started = project.shellOnTerminal(`PATH='${PATH}'; stty cols ${columns} rows ${rows}; ${line}`);
  shown.push(started);
  return started;
}

/** Presses each key once its text has come after the key before. */
async function press(on: HoldfastProcess, keys: readonly (readonly [wait: string, key: string])[]) {
  let from = 0;
  for (const [wait, key] of keys) {
    await vi.waitFor(() => expect(on.stdout.slice(from)).toContain(wait), { timeout: 60_000, interval: 50 });
    from = on.stdout.length;
    on.child.stdin.write(key);
  }
}

/** The pictures that were drawn, each as its lines. */
function pictures({ stdout }: HoldfastProcess): readonly (readonly string[])[] {
  return stdout
    .split("\u001b[H")
    .slice(1)
    .map((text) => stripVTControlCharacters(text).split(/\r+\n/));
}

test.each([80, 120, 200])(
  "many sessions are one picture of %i columns, and no line is longer",
  async (columns) => {
    for (const [id, title] of [
      ["one", "Clean the build folder of the shop before the release"],
      ["two", "Mend the login"],
    ] as const)
      expect((await project.run("run", "asks.ts", "--session", id, "--title", title, "--park")).code).toBe(0);
    const top = onTerminal("holdfast top; echo code $?", columns, 24);
    await press(top, [["q leaves", "jq"]]);
    const { stdout } = await top.finished;
    expect(stdout).toContain("code 0");
    const [first = []] = pictures(top);
    for (const line of first.slice(0, 24)) expect(line.length).toBeLessThanOrEqual(columns);
    const text = first.join("\n");
    expect(text).toContain("2 live sessions: 2 input_required");
    expect(text).toMatch(
      columns < 110
        ? /asks +asks +Mend the login +\d+ s +.*Allow shell/
        : /input_required +asks +Mend the login +two +\d+ s/,
    );
    expect(text).toContain("rm -rf build");
    expect(text).toContain("a approve");
  },
);

test("the picture follows a terminal that shrinks", async () => {
  expect((await project.run("run", "asks.ts", "--session", "one", "--park")).code).toBe(0);
  const top = onTerminal("holdfast top", 120, 40);
  await top.says("q leaves");
  const [tty = ""] = execFileSync("ps", ["-o", "tty=", "--ppid", String(top.child.pid)], { encoding: "utf8" })
    .trim()
    .split("\n");
  execFileSync("sh", ["-c", `stty cols 60 rows 14 < /dev/${tty}`]);
  await vi.waitFor(() => expect(pictures(top).at(-1)?.length).toBeLessThanOrEqual(14), { timeout: 60_000 });
  const last = pictures(top).at(-1)!;
  for (const line of last) expect(line.length).toBeLessThanOrEqual(60);
  expect(last.join(" ")).toContain("q leaves");
  top.child.stdin.write("q");
  await top.finished;
});

test("Enter opens a session on the whole screen, and q and Escape go back to the list", async () => {
  for (const id of ["one", "two"])
    expect((await project.run("run", "asks.ts", "--session", id, "--park")).code).toBe(0);
  const top = onTerminal("holdfast top; echo code $?");
  await press(top, [
    ["q leaves", "\r"],
    ["back to the list", "q"],
    ["q leaves", "\r"],
    ["back to the list", "\u001b"],
    ["q leaves", "q"],
  ]);
  expect((await top.finished).stdout).toContain("code 0");
  const opened = pictures(top)
    .find((lines) => lines.join("\n").includes("back to the list"))!
    .join("\n");
  expect(opened.match(/Allow shell\?/g)?.length).toBeGreaterThan(1); // Its work, and its question.
  expect(opened).toContain("a approve");
  expect(opened.match(/input_required +asks/g)).toHaveLength(1);
});

test("an approval, a denial and a stop need Enter, and reach the session that was shown", async () => {
  expect((await project.run("run", "asks.ts", "--session", "one", "--park")).code).toBe(0);
  const top = onTerminal("holdfast top");
  await press(top, [
    ["a approve", "a"],
    ["approve, with a reason", "\u001b"],
    ["not answered", "d"],
    ["deny, with a reason", "not today\r"],
    ["denied: Allow shell?", "n"],
    ["agent of the new session", "\u007f\u007f\u007f\u007fasks.ts\r"],
    ["what should asks.ts do", "go\r"],
    ["2 live sessions", "k"],
    ["a approve", "x"],
    ["stop", "wrong one\r"],
    ["session ses_", "q"],
  ]);
  await top.finished;
  expect((await project.json<{ status: string }>("show", "one")).status).not.toBe("cancelled");
  const { stdout } = await project.run("resume", "one", "--json");
  expect(stdout).toContain('{"approved":false,"reason":"not today"}');
});

test("the work of a coding agent is seen, merged and followed by another one", ofCampaign, async () => {
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@example.org", ...args], {
      cwd: project.folder,
    });
  project.write(".gitignore", "*\n!kept.txt\n!a.txt\n");
  project.write("kept.txt", "kept\n");
  git("init", "-q", "-b", "main");
  git("config", "user.name", "t");
  git("config", "user.email", "t@example.org");
  git("add", "kept.txt");
  git("commit", "-qm", "first");
  const ran = await project.finishHere(["run", "claude-code", "write:a.txt", "--worktree", "--session", "s"]);
  expect(ran.code, ran.stderr).toBe(0);
  const top = onTerminal("holdfast top");
  await press(top, [
    ["M merge", "c"],
    ["+x", "M"],
    ["with this message", ": by key\r"],
    ["is merged into main", "n"],
    ["agent of the new session", "\r"],
    ["what should claude-code do", "gate\r"],
    ["1 live session", "q"],
  ]);
  await top.finished;
  expect(existsSync(project.path("a.txt"))).toBe(true);
  expect(String(git("log", "-1", "--format=%s"))).toBe("write:a.txt: by key\n");
  const [listed] = await project.json<readonly { sessionId: string; agent: { name: string } }[]>(
    "list",
    "--unfinished",
  );
  const worktrees = async () => (await project.finishHere(["worktrees", "list"])).stdout;
  await vi.waitFor(async () => expect(await worktrees()).toContain(listed?.sessionId), { timeout: 60_000 });
  expect((await project.finishHere(["cancel", listed!.sessionId, "--hard"])).code).toBe(0);
});

test("a terminal that a killed command has left is given back by the next command", async () => {
  expect((await project.run("run", "asks.ts", "--session", "one", "--park")).code).toBe(0);
  const shell = onTerminal("holdfast top; stty -a; echo; echo killed; holdfast list; stty -a; echo over");
  await shell.says("q leaves");
  const folder = project.path(".local/share/holdfast/terminals");
  const [name = ""] = await vi.waitFor(() => readdirSync(folder));
  const { pid } = JSON.parse(readFileSync(`${folder}/${name}`, "utf8")) as { pid: number };
  process.kill(pid, "SIGKILL");
  await shell.finished;
  const [, before = "", after = ""] =
    /([^]*)killed\r\n([^]*)/.exec(shell.stdout.split("q leaves").at(-1)!) ?? [];
  expect(before).toContain("-icanon");
  expect(after).toContain("\u001b[?1049l");
  expect(after).not.toContain("-icanon");
  expect(readdirSync(folder)).toEqual([]);
});
