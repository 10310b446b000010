// The key of a real external agent: its program works with it, and no command of its model finds it.
// `npm run campaign -- real-keys` installs the programs, and names their folder in `HOLDFAST_REAL_PROGRAMS`.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { CanaryScan, startScriptedModelServer, type ScriptedModelServer } from "@holdfast/testkit";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ExternalProject } from "../../packages/holdfast/src/testing/external-project.ts";
import type { Finished, HoldfastProcess } from "../../packages/holdfast/src/testing/holdfast-process.ts";
import { codexSettings, type WITH_HELD_KEYS } from "./real-agents.ts";
import { shellCall } from "./scripted-reply.ts";

const PROGRAMS = process.env["HOLDFAST_REAL_PROGRAMS"];

/** Writes the variables of all processes that know the home folder of the test: those of the agent, and ours. */
const LOOK = `env > seen
for p in /proc/[0-9]*; do
  grep -qa "HOME=$HOME" $p/environ 2>/dev/null && { tr '\\0' ' ' <$p/cmdline; tr '\\0' '\\n' <$p/environ; } >> seen
done
echo looked >> seen
echo "the look is done"
`;

interface Given {
  readonly name: (typeof WITH_HELD_KEYS)[number];
  readonly what: string;
  readonly key: string;
  readonly model?: string;
  readonly sandbox?: string;
  settings(home: string, server: ScriptedModelServer): Readonly<Record<string, string>>;
}

const GIVEN: readonly Given[] = [
  {
    name: "claude-code",
    what: "Claude Code with an API key",
    key: "ANTHROPIC_API_KEY",
    model: "claude-sonnet-4-5",
    settings: claude,
  },
  {
    name: "claude-code",
    what: "Claude Code in bubblewrap",
    key: "ANTHROPIC_API_KEY",
    model: "claude-sonnet-4-5",
    sandbox: "bubblewrap",
    settings: claude,
  },
  {
    name: "claude-code",
    what: "Claude Code with a token for a server of the user's own",
    key: "ANTHROPIC_AUTH_TOKEN",
    model: "claude-sonnet-4-5",
    settings: claude,
  },
  {
    name: "codex",
    what: "Codex with its built-in provider",
    key: "OPENAI_API_KEY",
    model: "gpt-5.1",
    settings: (home, { openaiBaseUrl }) => {
      mkdirSync(join(home, ".codex"), { recursive: true });
      return { CODEX_HOME: join(home, ".codex"), OPENAI_BASE_URL: openaiBaseUrl };
    },
  },
  {
    name: "codex",
    what: "Codex with a provider of its config.toml",
    key: "OPENAI_API_KEY",
    settings: codexSettings,
  },
  {
    name: "pi",
    what: "Pi",
    key: "ANTHROPIC_API_KEY",
    model: "anthropic/claude-sonnet-4-5",
    settings: (home, { url }) => ({
      ANTHROPIC_BASE_URL: url,
      PI_CODING_AGENT_DIR: join(home, ".pi"),
      PI_OFFLINE: "1",
    }),
  },
  {
    name: "opencode",
    what: "OpenCode",
    key: "ANTHROPIC_API_KEY",
    model: "anthropic/claude-sonnet-4-5",
    settings(home, { url }) {
      const file = join(home, "opencode.json");
      writeFileSync(
        file,
        JSON.stringify({ model: "anthropic/claude-sonnet-4-5", small_model: "anthropic/claude-sonnet-4-5" }),
      );
      return { ANTHROPIC_BASE_URL: url, OPENCODE_CONFIG: file, OPENCODE_DISABLE_MODELS_FETCH: "1" };
    },
  },
  {
    name: "gemini",
    what: "Gemini CLI",
    key: "GEMINI_API_KEY",
    settings(home, { url }) {
      mkdirSync(join(home, ".gemini"), { recursive: true });
      writeFileSync(
        join(home, ".gemini/settings.json"),
        JSON.stringify({ model: { name: "scripted-model" } }),
      );
      return { GOOGLE_GEMINI_BASE_URL: url };
    },
  },
];

function claude(home: string, { url }: ScriptedModelServer): Readonly<Record<string, string>> {
  return {
    ANTHROPIC_BASE_URL: url,
    CLAUDE_CONFIG_DIR: join(home, ".claude"),
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
  };
}

let project: ExternalProject;
let home: string;
let server: ScriptedModelServer;
beforeEach(async () => {
  project = new ExternalProject();
  home = mkdtempSync(join(tmpdir(), "holdfast-real-home-"));
  writeFileSync(project.path("look.sh"), LOOK);
  server = await startScriptedModelServer({
    script: ({ messages, tools }) =>
      JSON.stringify(messages).includes("the look is done")
        ? { text: "I have looked." }
        : (shellCall(tools, "sh look.sh") ?? { text: "A title" }),
  });
});
afterEach(async () => {
  await project.dispose();
  await server.close();
  rmSync(home, { recursive: true, force: true });
});

/** Waits for the end of the run, and allows its command where it asks. */
async function ended(run: HoldfastProcess, env: Readonly<Record<string, string>>): Promise<Finished> {
  const asked = run.says("approve s").then(() => project.finishHere(["approve", "s"], env));
  asked.catch(() => {}); // It has ended without a question.
  return run.finished;
}

// The programs have some gigabytes.
test.runIf(PROGRAMS !== undefined).for(GIVEN)(
  "$what answers, and no command of its model finds its key",
  { timeout: 180_000 },
  async ({ name, key, model, sandbox, settings }) => {
    const scan = new CanaryScan(`sk-canary-${Math.random().toString(36).slice(2)}0123456789`);
    const bin = join(PROGRAMS!, name, "node_modules/.bin");
    const path = [bin, dirname(process.execPath), project.environment()["PATH"]].join(delimiter);
    const env = {
      ANTHROPIC_API_KEY: "",
      ...settings(home, server),
      HOME: home,
      PATH: path,
      [key]: scan.secret,
    };
    const input = { text: "Look for the key.", ...(model && { model }), ...(sandbox && { sandbox }) };
    const run = project.startHere(["run", name, "--input", JSON.stringify(input), "--session", "s"], env);
    const { code, stdout, stderr } = await ended(run, env);
    expect([code, stdout.trim()], stderr).toEqual([0, "I have looked."]);
    const keys = server.requests
      .filter(({ conversation }) => conversation !== undefined)
      .map(({ headers }) => headers["x-api-key"] ?? headers["x-goog-api-key"] ?? headers["authorization"]);
    expect(new Set(keys)).toEqual(new Set([keys[0]]));
    expect(keys[0]).toContain(scan.secret);
    const seen = readFileSync(project.path("seen"), "utf8");
    expect(seen).toContain("looked");
    scan.search("what the commands of the agent see", seen);
    scan.searchFolder(project.folder);
    scan.searchFolder(home);
    expect(scan.found).toEqual([]);
  },
);
