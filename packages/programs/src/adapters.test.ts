// Every adapter passes one suite, against a program that speaks its protocol.
//
// `npm test` runs the suite for Claude Code, programs of JSON lines and remote agents. The external-agents
// campaign runs it for all programs.

import { chmodSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll } from "vitest";

import { externalAgentConformance, type ExternalAgentSubject } from "./testing/external-agent-conformance.ts";
import { startA2aServer } from "@holdfast/testkit";
import { isCampaign } from "@holdfast/testkit/campaign";
import { a2aAgent } from "./adapters/a2a/a2a-agent.ts";
import { AcpAgent } from "./adapters/acp/acp-agent.ts";
import { ACP_AGENTS } from "./adapters/acp/acp-quirks.ts";
import { ClaudeCode } from "./adapters/claude-code/claude-code.ts";
import { CODEX } from "./adapters/codex/codex-agent.ts";
import { customAgent } from "./adapters/custom/custom-agent.ts";
import { harnessAgent } from "./adapters/harness/harness-agent.ts";
import { LineAgent } from "./adapters/lines/line-agent.ts";
import { mcpToolAgent } from "./adapters/mcp-tool/mcp-tool-agent.ts";
import { PI } from "./adapters/pi/pi-agent.ts";

/** Puts a program on a PATH of its own. */
function installed(home: string, name: string, source: string): Readonly<Record<string, string>> {
  const bin = join(home, "bin");
  if (home !== "/") {
    mkdirSync(bin, { recursive: true });
    const file = fileURLToPath(new URL(`./testing/${source}`, import.meta.url));
    const version = `if [ "$1" = --version ]; then echo 9.0.0; exit; fi`;
    writeFileSync(join(bin, name), `#!/bin/sh\n${version}\nexec "${process.execPath}" "${file}" "$@"\n`);
    chmodSync(join(bin, name), 0o755);
  }
  return { HOME: home, PATH: [bin, process.env["PATH"]].join(delimiter) };
}

const prompts = {
  answer: "hello",
  callTool: "write:a.txt",
  hang: "hang",
  noAnswer: "no-answer",
  ask: "ask:a.txt",
  callSession: "session:report_progress:half",
  unknownMessages: "garbage",
};

function conformInCampaign(subject: ExternalAgentSubject): void {
  if (isCampaign) externalAgentConformance(subject);
}

/** The faults of programs with the acts of `fake-acts.mjs`. */
const faulty: Omit<ExternalAgentSubject, "make"> = {
  prompts: { ...prompts, ignoreSignals: "stubborn" },
  faults: {
    dieAfter(home, messages) {
      if (messages === undefined) rmSync(join(home, "die-at"));
      else writeFileSync(join(home, "die-at"), String(messages));
    },
    openAnother: (home) => writeFileSync(join(home, "other-session"), ""),
    repeatHistory: (home) => writeFileSync(join(home, "repeat-history"), ""),
  },
};
const stopLimits = { askMs: 300, graceMs: 300 };
const unfit = { 12: "it has no record of its usage that Holdfast reads" };

for (const facts of ACP_AGENTS)
  conformInCampaign({
    make: (home) =>
      new AcpAgent({
        facts,
        environment: installed(home, facts.program.name, "fake-acp.mjs"),
        folder: home,
        stopLimits,
      }),
    ...faulty,
    unfit,
  });

externalAgentConformance({
  make: (home) =>
    new ClaudeCode({
      environment: installed(home, "claude", "fake-claude.mjs"),
      folder: home,
      stopLimits,
    }),
  ...faulty,
});

for (const [facts, source] of [
  [CODEX, "fake-codex.mjs"],
  [PI, "fake-pi.mjs"],
] as const)
  conformInCampaign({
    make: (home) =>
      new LineAgent({
        facts,
        environment: installed(home, facts.program.name, source),
        folder: home,
        stopLimits,
      }),
    ...faulty,
  });

externalAgentConformance({
  make: (home) =>
    customAgent({
      name: "lines",
      protocol: "lines",
      command: ["lines"],
      resumes: true,
      environment: installed(home, "lines", "fake-lines.mjs"),
      folder: home,
      stopLimits,
    }),
  ...faulty,
  unfit,
});

conformInCampaign({
  make: (home) =>
    harnessAgent({
      name: "harness",
      module: fileURLToPath(new URL("./testing/fake-harness.mjs", import.meta.url)),
      environment: { ...process.env, HOME: home },
      variables: ["NODE_COMPILE_CACHE"],
      folder: home,
      stopLimits,
    }),
  ...faulty,
  unfit,
});

const { callSession: _none, ...ownPrompts } = prompts;
conformInCampaign({
  make: (home) =>
    mcpToolAgent({
      name: "mcp-tool",
      command: ["mcp-agent"],
      tool: "begin",
      reply: { tool: "reply", argument: "session", field: "session" },
      environment: installed(home, "mcp-agent", "fake-mcp-agent.mjs"),
      folder: home,
    }),
  faults: faulty.faults!,
  prompts: ownPrompts,
  unfit: {
    ...unfit,
    5: "its questions are questions of the session",
    8: "it names its session only at the end of a turn",
  },
});

const remote = await startA2aServer("canary-token");
afterAll(() => remote.close());
externalAgentConformance({
  make: () => a2aAgent({ name: "remote", url: remote.url, token: "canary-token", pollMs: 20 }),
  prompts: ownPrompts,
  unfit: {
    ...unfit,
    5: "its questions are questions of the session",
    7: "it has no process on this machine",
  },
});
