// `holdfast top`, and `holdfast inbox` answered by keys, on a real terminal.

import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { call, startCoordinator, tokenIn } from "../testing/coordinator-process.ts";
import { LAUNCHER, Project } from "../testing/holdfast-process.ts";

const ASKS = `
import { defineAgent } from "holdfast";
export default defineAgent({ name: "asks", run: async (ctx) => {
  const { approved, reason } = await ctx.requestInput({ prompt: "Allow shell?", details: {
    tool: "shell", input: { command: "rm -rf build \\u001b[2K && echo done" }, folder: "/srv/app" } });
  return { approved, reason };
} });
`;

let project: Project;

beforeEach(() => {
  project = new Project();
  writeFileSync(project.path("asks.ts"), ASKS);
});
afterEach(() => project.dispose());

/** Runs the command on a terminal. Each key is pressed once its text is on the screen. */
async function onTerminal(
  command: string,
  keys: readonly (readonly [wait: string, key: string])[],
  columns = 100,
) {
  const line = `stty cols ${columns} rows 30; '${process.execPath}' '${LAUNCHER}' ${command}; echo "code $?"; stty -a`;
  const child = spawn("script", ["-qefc", line, "/dev/null"], {
    cwd: project.folder,
    env: {
      PATH: process.env["PATH"],
      HOME: project.folder,
      TERM: "xterm",
      LANG: "C.UTF-8",
      SHELL: "/bin/sh",
    },
  });
  const left = [...keys];
  let since = "";
  child.stdout.on("data", (chunk: Buffer) => {
    since += chunk.toString();
    const [next] = left;
    if (next === undefined || !since.includes(next[0])) return;
    left.shift();
    since = "";
    child.stdin.write(next[1]);
  });
  const shown = await text(child.stdout);
  expect(left, shown).toEqual([]);
  expect(shown).toMatch(/(?<!-)\bicanon\b/);
  expect(shown).toMatch(/(?<!-)\becho\b/);
  return shown;
}

test(
  "top shows live sessions with the reason of their waits, and once where it is piped",
  { ...ofCampaign, timeout: 90_000 },
  async () => {
    expect((await project.run("run", "asks.ts", "--session", "one", "--park")).code).toBe(0);
    const once = await project.run("top");
    expect(once.code, once.stderr).toBe(0);
    expect(once.stdout).toMatch(/input_required +asks +one .*Allow shell\?/);
    expect(once.stderr).toContain("1 live session: 1 input_required");
    expect(await project.json("top")).toMatchObject({
      sessions: [{ sessionId: "one", status: "input_required", why: "Allow shell?", cost: { calls: 0 } }],
      isCut: false,
    });

    // Each width has the status, the agent, the cost and a reason. Only the id is cut, with a sign.
    const id = `one-${"x".repeat(90)}`;
    expect((await project.run("run", "asks.ts", "--session", id, "--park")).code).toBe(0);
    for (const columns of [80, 120]) {
      const onScreen = await onTerminal("top", [["q leaves", "q"]], columns);
      expect(onScreen).toMatch(
        columns === 80 ? /asks\S* +asks .* Allow shell\?/ : /asks +one-\S*…\S* .* Allow shell\?/,
      );
      const listed = await onTerminal("list", [], columns);
      expect(listed).toMatch(
        columns === 80
          ? /one-\S*…\S* +asks +asks .* Allow shell\?/
          : /one-\S*…\S* +input_required +asks +\S.* ago +an answer to question \d+: Allow shell\?/,
      );
    }

    const shown = await onTerminal("top", [["q leaves", "q"]]);
    expect(shown).toContain("Allow shell?");
    expect(shown).toContain("\u001b[?1049l");
    expect(shown).toContain("code 0");
  },
);

test(
  "a list of 80 columns has short ids and titles, and each command takes the short id",
  { ...ofCampaign, timeout: 90_000 },
  async () => {
    // A minted id is short on a terminal, and each command takes the short one.
    const input = JSON.stringify({ prompt: "Clean the build\u001b[2K folder\nand no other" });
    const { stdout } = await project.run("run", "asks.ts", "--input", input, "--park");
    const whole = stdout.trim();
    const short = whole.slice(-12).slice(0, 8);
    expect(whole).toMatch(/^ses_.*[0-9a-f]{12}$/);
    const listed = await onTerminal("list", [], 80);
    expect(listed).toMatch(
      new RegExp(`^${short} +asks +asks +Clean the build folder +\\d+ s +Allow shell`, "m"),
    );
    for (const line of listed.split("\n").slice(0, 4)) expect(line.trimEnd().length).toBeLessThanOrEqual(80);
    expect(await onTerminal("top", [["q leaves", "q"]], 80)).toMatch(
      /asks +Clean the build folder +\d+ s +Allow shell/,
    );
    expect((await project.run("list")).stdout).toContain(`${whole} `);
    expect(await onTerminal(`show ${short}`, [], 80)).toContain("Clean the build folder");
  },
);

test(
  "a key in the inbox denies with a reason, and the inbox closes when nothing waits any more",
  { ...ofCampaign, timeout: 90_000 },
  async () => {
    expect((await project.run("run", "asks.ts", "--session", "one", "--park")).code).toBe(0);
    expect(await onTerminal("inbox", [["1 waits for a person", "\u0003"]])).toContain("code 130");
    const shown = await onTerminal("inbox", [
      ["q leaves", "d"],
      ["deny, with a reason", "no\r"],
    ]);
    expect(shown).toContain("denied: Allow shell?");
    expect(shown).toContain("nothing waits for a person in");
    expect(shown).toContain("rm -rf build");
    expect(shown).not.toContain("\u001b[2K");
    expect(shown).toContain("code 0");
    expect(await onTerminal("inbox", [])).toContain("nothing waits for a person in"); // It is answered, and nobody took the answer yet.
    const resumed = await project.run("resume", "one", "--json");
    expect(resumed.code, resumed.stderr).toBe(0);
    expect(resumed.stdout).toContain('{"approved":false,"reason":"no"}');
  },
);

test(
  "top names the reason why a coordinator's session is not taken",
  { ...ofCampaign, timeout: 90_000 },
  async () => {
    const coordinator = await startCoordinator(project);
    await call(coordinator.url, tokenIn(coordinator), "sessions", { agent: "nobody-offers-it" });
    const where = ["--url", coordinator.url, "--token-file", coordinator.adminTokenFile];
    expect(await project.json("top", ...where)).toMatchObject({
      sessions: [{ status: "submitted", why: 'no registered runner offers the agent "nobody-offers-it"' }],
    });
  },
);

test.each([
  ["an argument", ["one"], "is one argument too many"],
  ["a limit of none", ["--limit", "0"], "--limit is not a number of sessions"],
])("top refuses %s", async (_name, args, message) => {
  const { code, stderr } = await project.run("top", ...args);
  expect(stderr).toContain(message);
  expect(code).toBe(2);
});
