// Every command that an error, a note or a question advises is one that the command takes, and that a test
// carries out.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { COMMANDS } from "../packages/holdfast/src/commands/index.ts";
import { readWords } from "../packages/terminal/src/frame/arguments.ts";
import type { Command } from "../packages/terminal/src/frame/command.ts";
import { knownOptions, ownOptions } from "../packages/terminal/src/frame/help.ts";
import { actionOf, advisedCommands, takesArguments, type Advice } from "./advised-commands.ts";
import { LATER } from "./printed-texts.ts";
import { readTree } from "./tidy/tree.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const TESTS = "packages/holdfast/src";

/** The test that carries each advised command out, below the folder `TESTS` or, with its end, below the root. */
const CARRIED_OUT: Readonly<Record<string, string>> = {
  "agents activate": "fleet/pushed-agents",
  "agents check": "behaviour/agent-files",
  "agents import": "behaviour/project-links",
  "agents install": "behaviour/install-agent",
  "agents install --registry": "behaviour/install-agent",
  "agents list": "behaviour/hooks",
  "agents list --tag": "behaviour/agent-cases",
  "agents new": "behaviour/agent-files",
  "agents trust": "behaviour/hooks",
  "agents trust --sessions": "behaviour/planted-database",
  "agents trust --sessions --yes": "behaviour/planted-database",
  "agents uninstall": "behaviour/install-agent",
  attach: "behaviour/background",
  answer: "behaviour/commands",
  approve: "behaviour/commands",
  "approve --for": "behaviour/agent-file-runs",
  "approve --no --reason": "behaviour/commands",
  budget: "behaviour/families",
  "budget --grant": "behaviour/budget-advice",
  "budget --raise": "behaviour/families",
  "budget --release-lost": "behaviour/lost-attempts",
  cancel: "behaviour/after-kills",
  "cancel --hard": "behaviour/after-kills",
  chat: "behaviour/chat",
  "chat --session": "behaviour/chat",
  completion: "behaviour/completion",
  "config export": "behaviour/config-transfer",
  "config list": "behaviour/commands",
  coordinator: "behaviour/coordinator",
  "coordinator --config": "behaviour/coordinator",
  delete: "behaviour/deleting",
  "delete --subtree": "behaviour/deleting",
  diff: "behaviour/worktrees",
  docs: "behaviour/docs",
  doctor: "behaviour/commands",
  "env delete": "behaviour/environments",
  "env list": "behaviour/environments",
  "env list --url": "behaviour/coordinator-environments",
  "env set": "behaviour/environments",
  "env set --secret --url": "behaviour/coordinator-environments",
  "env set --url": "behaviour/coordinator-environments",
  "env show": "behaviour/environments",
  export: "behaviour/session-file",
  fork: "behaviour/fork",
  "fork --agent": "behaviour/external-worktree",
  "fork --at": "behaviour/fork",
  "fork --agent --input": "behaviour/external-worktree",
  "inbox --db": "behaviour/run-agent-file",
  import: "behaviour/session-file",
  "import --session": "behaviour/session-file",
  inbox: "behaviour/inbox",
  "inbox --after": "behaviour/inbox",
  list: "behaviour/commands",
  "list --unfinished": "behaviour/advice",
  local: "behaviour/local-stack",
  "local logs": "behaviour/local-stack",
  "local logs --component": "behaviour/local-stack",
  "local logs --follow": "behaviour/local-stack",
  "local disable": "behaviour/local-service",
  "local enable": "behaviour/local-service",
  "local start": "behaviour/given-keys",
  "local start --agents": "behaviour/given-keys",
  "local start --agents --port": "behaviour/given-keys",
  "local status": "behaviour/local-stack-options",
  "local stop": "behaviour/local-stack",
  logs: "behaviour/local-stack",
  "logs --follow": "behaviour/ipc",
  "mcp --allow-delete": "fleet/orchestrator-tools",
  "mcp --parent": "scripts/agents/real-clients.test.ts",
  "mcp add": "behaviour/hooks",
  "mcp add --url --user": "behaviour/mcp-sign-in",
  "mcp list": "behaviour/hooks",
  "mcp login": "behaviour/mcp-sign-in",
  "mcp remove": "behaviour/mcp-command",
  merge: "behaviour/worktrees",
  "merge --commit": "behaviour/external-worktree",
  models: "behaviour/doctor",
  pause: "behaviour/families",
  push: "behaviour/coordinator-place",
  replay: "behaviour/tracing",
  result: "behaviour/commands",
  resume: "behaviour/families",
  "resume --agent": "behaviour/families",
  "resume --scripted": "behaviour/scripted-model",
  rules: "behaviour/agent-file-runs",
  "rules list": "behaviour/agent-file-runs",
  run: "behaviour/bad-input",
  "run --agent": "behaviour/bad-input",
  "run --budget": "behaviour/external-agents",
  "run --conversation": "behaviour/external-worktree",
  "run --input": "behaviour/bad-input",
  "run --scripted": "behaviour/scripted-model",
  "run --worktree": "behaviour/external-worktree",
  runner: "behaviour/local-stack",
  "runner --agents": "behaviour/local-stack",
  "runner disable": "behaviour/local-service",
  "runner enable": "behaviour/local-service",
  "runner --executor": "fleet/runner-command",
  "runner --name": "fleet/pushed-agents",
  "runner --tasks": "fleet/processes",
  runners: "behaviour/coordinator",
  "runners drain": "behaviour/coordinator",
  "schedule add": "behaviour/schedule",
  "schedule list": "behaviour/schedule",
  "schedule remove": "behaviour/schedule",
  "schedule run": "behaviour/schedule",
  "schedule unpause": "behaviour/page-system",
  "script activate": "fleet/pushed-agents",
  "script history": "behaviour/scripts",
  "script history --catalogue --json": "fleet/pushed-agents",
  "script list": "behaviour/scripts",
  "script new": "behaviour/scripts",
  "script push": "behaviour/scripts",
  "script run": "behaviour/scripts",
  "script show": "behaviour/scripts",
  "script tag": "behaviour/scripts",
  "secret list": "behaviour/secrets",
  "secret set": "behaviour/secrets",
  show: "behaviour/commands",
  signal: "behaviour/running",
  "skill activate": "fleet/pushed-agents",
  "skill approve": "behaviour/skills",
  "skill history": "behaviour/skills",
  "skill list": "behaviour/skills",
  "skill show": "behaviour/skills",
  "token create": "behaviour/coordinator",
  "token create --kind": "behaviour/coordinator",
  top: "behaviour/background",
  trace: "behaviour/tracing",
  ui: "behaviour/local-stack",
  "ui --db": "behaviour/local-stack",
  unpause: "behaviour/families",
  "up --agents": "behaviour/external-worktree",
  "upgrade --agents --check": "behaviour/upgrade",
  "upgrade --check": "behaviour/upgrade",
  "worktrees list": "behaviour/worktrees",
};

/** The advice whose command is known when it is printed: then it is one of `push` and `pull`. */
const advice = advisedCommands(readTree(root)).filter(({ words: [name] }) => name !== LATER);

test("there is advice in errors, in notes and in questions", () =>
  expect(advice.length).toBeGreaterThan(300));

test("each advised command, its action, its options and its arguments are taken by the command line", async () => {
  const refused: string[] = [];
  for (const one of advice) {
    const problem = await problemOf(one);
    if (problem !== undefined) refused.push(`${one.at}: holdfast ${one.words.join(" ")}: ${problem}`);
  }
  expect(refused).toEqual([]);
});

test("a test carries each advised command out, and the table names no other", async () => {
  const advised = new Set(await Promise.all(advice.map(async ({ words }) => (await shapeOf(words)).shape)));
  expect([...advised].filter((shape) => CARRIED_OUT[shape] === undefined)).toEqual([]);
  expect(Object.keys(CARRIED_OUT).filter((shape) => !advised.has(shape))).toEqual([]);
});

test("each test of the table calls its command with these options", async () => {
  const absent: string[] = [];
  for (const [shape, name] of Object.entries(CARRIED_OUT)) {
    const file = name.endsWith(".test.ts") ? name : `${TESTS}/${name}.test.ts`;
    const text = existsSync(join(root, file)) ? readFileSync(join(root, file), "utf8") : "";
    const words = shape.split(" ");
    const options = knownOptions(await COMMANDS[words[0]!]!.load());
    for (const word of words) {
      const short = word.startsWith("--") ? options[word.slice(2)]?.short : undefined;
      const isThere = new RegExp(`["\\s]${word}["\\s(]|\\b${word}\\(`).test(text);
      if (!isThere && (short === undefined || !text.includes(`"-${short}"`)))
        absent.push(`${file}: ${shape}: ${word}`);
    }
  }
  expect(absent).toEqual([]);
});

test.each([
  [["lst"], "no command"],
  [["list", "--stat", "x"], "there is no option --stat"],
  [["token", "mak", "NAME"], "no such action, or an argument too many"],
  [["cancel", "a", "b"], "no such action, or an argument too many"],
  [["local", "stop", "--port", "5"], "--port is of another action"],
])("a wrong advice (%j) would be found", async (words, problem) => {
  expect(await problemOf({ at: "", words })).toContain(problem);
});

/** Why the command line would refuse it. */
async function problemOf({ words }: Advice): Promise<string | undefined> {
  const [name = ""] = words;
  if (!Object.hasOwn(COMMANDS, name)) return "no command of this name";
  try {
    const { command, action, given, options } = await shapeOf(words);
    if (!takesArguments(command, given)) return "no such action, or an argument too many";
    const own = ownOptions(command, action);
    const foreign = options.find(
      (option) => Object.hasOwn(command.options, option) && !Object.hasOwn(own, option),
    );
    return foreign === undefined ? undefined : `--${foreign} is of another action`;
  } catch (error) {
    return (error as Error).message;
  }
}

/** The command with its action and its options: what two pieces of advice with other values have in common. */
async function shapeOf([name = "", ...rest]: readonly string[]) {
  const command: Command = await COMMANDS[name]!.load();
  const args = readWords(rest, command);
  const given = [...(args.action === undefined ? [] : [args.action]), ...args.positionals];
  const action = actionOf(command, given);
  const options = Object.keys(knownOptions(command))
    .filter((option) => args.has(option))
    .toSorted();
  const shape = [
    name,
    ...(action === undefined ? [] : [action]),
    ...options.map((option) => `--${option}`),
  ].join(" ");
  return { command, action, given, options, shape };
}
