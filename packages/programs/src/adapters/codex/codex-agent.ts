// Codex as an external agent (`CODEX`): its program `codex app-server`. Observed with 0.169.0.

import { join } from "node:path";
import { CODEX_PROGRAM_KEYS, codexFolder } from "../../session/keys/codex-keys.ts";
import { signInBy } from "../../session/keys/program-keys.ts";
import type { LineAgentFacts } from "../lines/line-agent.ts";
import { shellCall } from "../lines/named-call.ts";
import { CHOSEN_FIELDS } from "../../session/program/find-program.ts";
import { CodexDialogue } from "./codex-dialogue.ts";
import { codexRecordedCalls } from "./codex-record.ts";

/** Codex, for `new LineAgent`. */
export const CODEX: LineAgentFacts = {
  name: "codex",
  program: {
    name: "codex",
    title: "Codex",
    versionMin: "0.150.0",
    install: "npm install -g @openai/codex",
  },
  capabilities: {
    steer: "inject",
    followUp: "queue",
    resume: "id",
    usage: "message",
    model: true,
    pricePrefix: "openai/",
    profileFields: CHOSEN_FIELDS,
    signIn: signInBy("run `codex login`", "OPENAI_API_KEY"),
  },
  argumentsOf: () => ["app-server"],
  variables: [
    "OPENAI_API_KEY",
    "CODEX_API_KEY",
    "OPENAI_BASE_URL",
    "CODEX_HOME",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SHELL",
    "USER",
  ],
  keys: ["OPENAI_API_KEY", "CODEX_API_KEY"],
  programKeys: CODEX_PROGRAM_KEYS,
  settings: {},
  takesOurId: false,
  files(environment, id) {
    const home = codexFolder(environment);
    return {
      sessions: { folder: join(home, "sessions"), ending: `${id}.jsonl` },
      mcpFiles: [join(home, "config.toml")],
    };
  },
  ownFolders: (environment) => ({
    written: [codexFolder(environment)],
    read: [],
  }),
  dialogue: (turn) => new CodexDialogue(turn),
  recordedCalls: codexRecordedCalls,
  ruledCall: ({ tool, input }, folder) => shellCall(tool, input, folder),
};
