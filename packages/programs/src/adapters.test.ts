// Every adapter passes one suite, against a program that speaks its protocol.
//
// `npm test` runs the suite for Claude Code, programs of JSON lines and remote agents. The external-agents
// campaign runs it for all programs.

import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";

import { externalAgentConformance, type ExternalAgentSubject } from "./testing/external-agent-conformance.ts";
import { startA2aServer } from "@holdfast/testkit";
import { isCampaign } from "@holdfast/testkit/campaign";
import { a2aAgent } from "./adapters/a2a/a2a-agent.ts";
import { customAgent } from "./adapters/custom/custom-agent.ts";
import { harnessAgent } from "./adapters/harness/harness-agent.ts";
import { LineAgent } from "./adapters/lines/line-agent.ts";
import { mcpToolAgent } from "./adapters/mcp-tool/mcp-tool-agent.ts";
import { includedFacts } from "./external.ts";
import { INCLUDED_NAMES, type IncludedName } from "./included-programs.ts";
import { OLD_ANSWER } from "./testing/fake-acts.mjs";
import { fakeNamed, fakeOf, installFake, type FakeProgram } from "./testing/fake-program.ts";

/** A suite asks an adapter without a home for its name. */
function installed(home: string, fake: FakeProgram): Readonly<Record<string, string>> {
  return home === "/" ? {} : installFake(home, fake, "9.0.0");
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
  unknownLine: "no JSON",
  faults: {
    dieAfter(home, messages) {
      if (messages === undefined) rmSync(join(home, "die-at"));
      else writeFileSync(join(home, "die-at"), String(messages));
    },
    openAnother: (home) => writeFileSync(join(home, "other-session"), ""),
    repeatHistory: {
      begin: (home) => writeFileSync(join(home, "repeat-history"), ""),
      text: OLD_ANSWER,
    },
  },
};
const { repeatHistory: _none, ...faultsAlone } = faulty.faults!;
const withoutHistory = { ...faulty, faults: faultsAlone };
/** The programs that repeat no history of their session to the host, by their protocol. */
const WITHOUT_HISTORY: readonly IncludedName[] = ["pi"];
const stopLimits = { askMs: 300, graceMs: 300 };
const unfit = { 12: "it has no record of its usage that Holdfast reads" };

for (const name of INCLUDED_NAMES) {
  const facts = includedFacts(name);
  const conform = name === "claude-code" ? externalAgentConformance : conformInCampaign;
  conform({
    make: (home) =>
      new LineAgent({ facts, environment: installed(home, fakeOf(name)), folder: home, stopLimits }),
    ...(WITHOUT_HISTORY.includes(name) ? withoutHistory : faulty),
    ...(facts.recordedCalls === undefined ? { unfit } : {}),
  });
}

test.each(INCLUDED_NAMES)("%s has a fake of its program", (name) => {
  const { source } = fakeOf(name);
  expect(existsSync(source), `write ${source}, a program that speaks the protocol of ${name}`).toBe(true);
});

externalAgentConformance({
  make: (home) =>
    customAgent({
      name: "lines",
      protocol: "lines",
      command: ["lines"],
      resumes: true,
      environment: installed(home, fakeNamed("lines")),
      folder: home,
      stopLimits,
    }),
  ...withoutHistory,
  unfit,
});

// Its module writes no lines.
const { unknownLine: _noLine, ...harnessFaults } = withoutHistory;
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
  ...harnessFaults,
  unfit,
});

const { callSession: _noTools, ...ownPrompts } = prompts;
conformInCampaign({
  make: (home) =>
    mcpToolAgent({
      name: "mcp-tool",
      command: ["mcp-agent"],
      tool: "begin",
      reply: { tool: "reply", argument: "session", field: "session" },
      environment: installed(home, fakeNamed("mcp-agent")),
      folder: home,
    }),
  faults: faultsAlone,
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
