// Hooks through the real command: trust, hooks of Claude Code's settings, scripts as hooks, a kill, and bad
// input.

import { existsSync, readFileSync } from "node:fs";
import type { Conversation, Reply } from "@holdfast/testkit";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { expectError } from "../testing/expect-error.ts";
import { startCoordinator, startRunnerProcess } from "../testing/fleet-processes.ts";
import { ModelProject } from "../testing/model-project.ts";

let project: ModelProject;
const seen: string[] = [];
const GUARD = JSON.stringify({ name: "guard", description: "Guards.", script_file: "guard.sh" });

beforeEach(async () => {
  project = await ModelProject.open();
  seen.length = 0;
  project.script = script;
});
afterEach(() => project.dispose());

function script(conversation: Conversation): Reply {
  seen.push(JSON.stringify(conversation.messages));
  const replies = conversation.messages.filter(({ role }) => role === "assistant").length;
  return replies === 0
    ? { toolCalls: [{ name: "read_file", input: { path: "notes.txt" } }] }
    : { text: "Done." };
}
function writeAgent(hooks: string): void {
  const fields = hooks === "" ? "" : `holdfast:\n  hooks:\n    ${hooks}\n`;
  project.write(
    ".holdfast/agents/helper.md",
    `---\nname: helper\ndescription: Helps.\n${fields}---\nYou help.\n`,
  );
}
const start = (...args: string[]) => project.start(args, { stdin: "" });
const run = (...args: string[]) => project.run(...args);

test("hooks of a project's settings are off until it is trusted, and guard every agent then", async () => {
  project.write("notes.txt", "canary");
  writeAgent("");
  const guard = { type: "command", command: "echo notes are private >&2; exit 2" };
  project.write(
    ".claude/settings.json",
    JSON.stringify({ hooks: { PreToolUse: [{ matcher: "Read", hooks: [guard] }] } }),
  );
  const before = await run("run", ".holdfast/agents/helper.md", "Read.");
  expect(before.stderr).toContain(".claude/settings.json is not used: you have not trusted this project");
  expect(seen.at(-1)).toContain("canary");

  await run("agents", "trust");
  const checked = await run("agents", "check");
  expect(checked.stdout).toContain(
    "hooks.PreToolUse: mapped to holdfast.hooks.before_tool: read_file: echo notes",
  );
  expect((await run("run", "helper", "Read.")).code).toBe(0);
  expect(seen.at(-1)).toContain("a hook blocked it. notes are private");
  expect(seen.at(-1)).not.toContain("canary");
});

test("a guard whose program is missing blocks the call, and run, logs and check say so", async () => {
  project.write("notes.txt", "x");
  writeAgent("before_tool: { command: nosuch-guard, on_error: block }");
  const guard = { type: "command", command: '"$CLAUDE_PROJECT_DIR"/.claude/guard.sh --strict' };
  const settings = { hooks: { PreToolUse: [{ matcher: "Read", hooks: [guard] }] } };
  project.write(".claude/settings.json", JSON.stringify(settings));
  await run("agents", "trust");
  const { stdout } = await run("agents", "check");
  expect(stdout).toContain(
    `a hook at before_tool cannot run, so it blocks everything: there is no ${project.path(".claude/guard.sh")}`,
  );
  expect(stdout).toContain("so it blocks everything: there is no nosuch-guard");
  writeAgent("");
  await run("agents", "trust");
  const { code, stderr } = await run("run", "helper", "Read.", "--session", "g");
  const warned = /✗ hook #\d+.*exit code 127: .*guard\.sh/;
  expect([code, stderr]).toEqual([0, expect.stringMatching(warned)]);
  expect(seen.at(-1)).toContain("a hook blocked it");
  expect((await run("logs", "g")).stdout).toMatch(warned);
  expect((await run("chat", "helper", "Read.")).stderr).toMatch(warned);
});

test("a guard whose answer has a text before it blocks the call, and run says why", async () => {
  project.write("notes.txt", "canary");
  project.write(".holdfast/scripts/guard/script.json", GUARD);
  project.write(".holdfast/scripts/guard/guard.sh", `echo Shell ready; echo '{"action":"block"}'\n`);
  const guards = ["script: guard", `command: "echo Shell ready; echo '{\\"action\\":\\"block\\"}'"`];
  for (const guard of guards) {
    writeAgent(`before_tool: { ${guard} }`);
    await run("agents", "trust");
    const { stderr } = await run("run", "helper", "Read.");
    expect(stderr).toMatch(/✗ hook #\d+.*the hook failed, which blocks: its output is no JSON/);
    expect(seen.at(-1)).toContain("a hook blocked it. the hook failed: its output is no JSON");
    expect(seen.at(-1)).not.toContain("canary");
  }
});

test("a guard of Claude Code with args guards, beside events that only observe", async () => {
  project.write("notes.txt", "canary");
  project.write("guard.sh", "echo notes are private >&2; exit 2\n");
  writeAgent("");
  const guard = { type: "command", command: "sh", args: ["guard.sh"], statusMessage: "Looking" };
  const sound = [{ hooks: [{ type: "command", command: "beep" }] }];
  const hooks = { PreToolUse: [{ hooks: [guard] }], Notification: sound, SessionEnd: sound };
  project.write(".claude/settings.json", JSON.stringify({ hooks }));
  await run("agents", "trust");
  const { stdout } = await run("agents", "check");
  expect(stdout).toContain("hooks.PreToolUse.statusMessage: ignored because it is for display only");
  expect(stdout).toContain("hooks.Notification: ignored because Holdfast has no such event");
  expect((await run("run", "helper", "Read.")).code).toBe(0);
  expect(seen.at(-1)).toContain("a hook blocked it. notes are private");
  expect(seen.at(-1)).not.toContain("canary");
});

test("X9: hooks, servers and a folder agent that a command has changed in a trusted project are not used until it is trusted again", async () => {
  const settings = (event: string) =>
    JSON.stringify({ hooks: { [event]: HOOKED }, permissions: { allow: [] } });
  const HOOKED = [{ hooks: [{ type: "command", command: "echo x >> hooked.txt" }] }];
  const servers = JSON.stringify({ mcpServers: { evil: { command: "true" } } });
  const evil = JSON.stringify({ name: "evil", description: "Evil.", type: "autonomous" });
  const line = `mkdir -p .claude agents/evil; echo '${settings("SessionStart")}' > .claude/settings.json; echo '${servers}' > .mcp.json; echo '${evil}' > agents/evil/agent.json; echo You help. > agents/evil/agent.system-prompt.md`;
  project.script = ({ messages }) =>
    messages.some(({ role }) => role === "assistant")
      ? { text: "Done." }
      : { toolCalls: [{ name: "shell", input: { command: line } }] };
  project.write(
    ".holdfast/agents/helper.md",
    "---\nname: helper\ndescription: Helps.\ntools: Bash\nholdfast: { approvals: { allow: [Bash] } }\n---\nYou help.\n",
  );
  await run("agents", "trust");
  const first = await run("run", "helper", "Write.");
  expect(first.code, first.stderr).toBe(0);
  project.script = script;
  const second = await run("run", "helper", "Read.");
  expect(second.stderr).toContain(
    ".claude/settings.json is not used: its hooks have changed since you trusted",
  );
  expect(existsSync(project.path("hooked.txt"))).toBe(false);
  expect((await run("agents", "check")).stdout).toMatch(
    /settings.json: .*unapproved\n.*have not approved: read it, and then `holdfast agents trust`/,
  );
  expect((await run("mcp", "list")).stdout).toMatch(/unapproved .*have changed since you trusted/);

  expectError(await run("run", "evil", "Read."), 12, "E_POLICY_DENIED", [
    "is new or has changed since you trusted",
  ]);
  expect((await run("agents", "list")).stdout).toMatch(/evil +unapproved/);

  await run("agents", "trust");
  expect((await run("agents", "list")).stdout).toMatch(/evil +loaded/);
  // Other programs keep their own settings in the file. They change no hook.
  project.write(".claude/settings.json", settings("SessionStart").replace("[]", '["Bash(ls)"]'));
  expect((await run("run", "helper", "Read.")).stderr).not.toContain("is not used");
  expect(readFileSync(project.path("hooked.txt"), "utf8")).toBe("x\n");
  // A server that the user adds by a command is the user's own.
  await run("mcp", "add", "own", "--", "true");
  expect((await run("mcp", "list")).stdout).toMatch(/evil +usable[^]*own +usable/);
});

test("a script blocks a run as a hook, by the version that was pushed", ofCampaign, async () => {
  project.write("notes.txt", "x");
  project.write(".holdfast/scripts/guard/script.json", GUARD);
  project.write(
    ".holdfast/scripts/guard/guard.sh",
    "grep -q forbidden && { echo frozen >&2; exit 2; }; exit 0\n",
  );
  writeAgent("on_run_start: { script: guard }");
  await run("agents", "trust");
  project.write(".holdfast/scripts/guard/guard.sh", "exit 0\n");
  const blocked = await run("run", "helper", "Do the forbidden.", "--session", "b");
  expect(blocked.code).toBe(12);
  expect(blocked.stderr).toContain("Blocked by on_run_start hook: frozen");
  expect(seen).toEqual([]);
  expect((await run("run", "helper", "Do it.")).code).toBe(0);
});

test("a hook that a kill cut off is run again, and the session completes", ofCampaign, async () => {
  project.write("notes.txt", "x");
  writeAgent("before_tool: { command: 'echo x >> hooked.txt; while [ ! -e go ]; do sleep 0.05; done' }");
  await run("agents", "trust");
  const hooked = (): string =>
    existsSync(project.path("hooked.txt")) ? readFileSync(project.path("hooked.txt"), "utf8") : "";
  const until = async (lines: string): Promise<void> => {
    while (hooked() !== lines) await new Promise((resolve) => setTimeout(resolve, 10));
  };
  const first = start("run", "helper", "Read.", "--session", "k");
  await until("x\n");
  first.kill("SIGKILL");
  await first.finished;
  const second = start("resume", "k");
  await until("x\nx\n");
  project.write("go", "");
  const { code, stderr } = await second.finished;
  expect(code, stderr).toBe(0);
  expect(project.server.requests).toHaveLength(2);
});

// A hook that is an agent is a session of its own, and the only place of the runner has its parent.
test(
  "one runner with one place runs a session whose hooks are an agent, a script and a command",
  ofCampaign,
  async () => {
    project.write("notes.txt", "x");
    project.write(".holdfast/scripts/guard/script.json", GUARD);
    project.write(".holdfast/scripts/guard/guard.sh", "echo script >> hooked.txt\n");
    project.write(".holdfast/agents/judge.md", "---\nname: judge\ndescription: Judges.\n---\nYou judge.\n");
    writeAgent(
      "on_run_start: { script: guard }\n    before_tool: { agent: judge }\n    on_run_finish: { command: 'echo command >> hooked.txt' }",
    );
    await run("agents", "trust");
    project.script = (conversation) =>
      conversation.system.includes("You judge.")
        ? { text: '{"action": "block", "reason": "the judge says no"}' }
        : script(conversation);
    const coordinator = await startCoordinator(project, { leaseMs: 6_000 });
    const agent = ".holdfast/agents/helper.md";
    await startRunnerProcess(project, coordinator, "only", ["-p", ".", "--agents", agent, "--max-runs", "1"]);
    const env = { HOLDFAST_URL: coordinator.url, HOLDFAST_TOKEN: coordinator.adminToken };
    const person = project.start(["run", "--agent", "helper", "--input", '"Read."', "--session", "one"], {
      env,
    });
    const { code, stdout, stderr } = await person.finished;
    expect(code, stderr).toBe(0);
    expect(stdout).toContain("Done.");
    expect(seen.at(-1)).toContain("a hook blocked it. the judge says no");
    expect(readFileSync(project.path("hooked.txt"), "utf8")).toBe("script\ncommand\n");
  },
);

test("hooks that cannot be run refuse the run before a session or a model call", async () => {
  writeAgent("on_run_start: { command: 'true' }");
  expectError(await run("run", ".holdfast/agents/helper.md", "x"), 12, "E_POLICY_DENIED", ["has hooks"]);
  await run("agents", "trust");
  const cases: readonly (readonly [string, string, string])[] = [
    ["on_run_start: { script: guard }", "{}", 'the script "guard", which is not there'],
    ["on_run_start: { agent: judge }", "{}", '"judge", and no agent file has this name'],
    ["on_run_start: { agent: helper }", "{}", "start each other without end: helper → helper"],
    ["on_run_strat: { command: x }", "{}", "on_run_strat"],
    ["before_tool: { command: x, script: y }", "{}", "either `command`, `script` or `agent`"],
    ["", "{", "settings.json is not JSON"],
    ["", '{"hooks": []}', "hooks: it is no object"],
    ["", '{"hooks": {"PreToolUse": [{"hooks": [{"type": "prompt", "prompt": "x"}]}]}}', "type command"],
    [
      "",
      '{"hooks": {"ElicitationResult": [{"hooks": [{"type": "command", "command": "x"}]}]}}',
      "no such event",
    ],
    [
      "",
      '{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "x", "if": "Bash(git; ls)"}]}]}}',
      "hooks.PreToolUse: if: ",
    ],
  ];
  for (const [hooks, settings, says] of cases) {
    writeAgent(hooks);
    project.write(".claude/settings.json", settings);
    await run("agents", "trust");
    expectError(await run("run", "helper", "x"), 3, "E_AGENT_INVALID", [says]);
  }
  expect(project.server.requests).toHaveLength(0);
  expect(existsSync(project.path(".holdfast/holdfast.db"))).toBe(false);
});
