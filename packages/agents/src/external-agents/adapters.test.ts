// Every adapter passes one suite, against a program that speaks its protocol.

import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

import { externalAgentConformance } from "../testing/external-agent-conformance.ts";
import { AcpAgent } from "./acp/acp-agent.ts";
import { ACP_AGENTS } from "./acp/acp-quirks.ts";
import { ClaudeCode } from "./claude-code/claude-code.ts";

/** Puts a program on a PATH of its own. */
function installed(home: string, name: string, source: string): Readonly<Record<string, string>> {
  const bin = join(home, "bin");
  if (home !== "/") {
    mkdirSync(bin, { recursive: true });
    const file = fileURLToPath(new URL(`../testing/${source}`, import.meta.url));
    writeFileSync(join(bin, name), `#!/bin/sh\nexec "${process.execPath}" "${file}" "$@"\n`);
    chmodSync(join(bin, name), 0o755);
  }
  return { HOME: home, PATH: [bin, process.env["PATH"]].join(delimiter) };
}

for (const facts of ACP_AGENTS)
  externalAgentConformance({
    make: (home) =>
      new AcpAgent({
        facts,
        environment: installed(home, facts.program.name, "fake-acp.mjs"),
        folder: home,
      }),
    prompts: {
      answer: "hello",
      callTool: "write:a.txt",
      hang: "hang",
      ask: "ask:a.txt",
      unknownMessages: "garbage",
    },
  });

externalAgentConformance({
  make: (home) => new ClaudeCode({ environment: installed(home, "claude", "fake-claude.mjs"), folder: home }),
  prompts: {
    answer: "hello",
    callTool: "write:a.txt",
    hang: "hang",
    ask: "ask:a.txt",
    unknownMessages: "garbage",
  },
});
