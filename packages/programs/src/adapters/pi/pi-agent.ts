// Pi as an external agent (`PI`): its RPC mode, with an extension of ours that asks for permissions. Observed
// with 0.87.1.

import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { PI_KEYS, piFolder } from "../../session/keys/pi-keys.ts";
import type { LineAgentFacts } from "../lines/line-agent.ts";
import { shellCall } from "../lines/named-call.ts";
import { CHOSEN_FIELDS } from "../../session/program/find-program.ts";
import { PiDialogue } from "./pi-dialogue.ts";
import { piRecordedCalls } from "./pi-record.ts";

/** The names of our rules for Pi's tools. */
const TOOLS: Readonly<Record<string, string>> = {
  bash: "shell",
  edit: "edit_file",
  write: "write_file",
  read: "read_file",
  ls: "list_files",
  find: "list_files",
  grep: "search",
};

/** Pi, for `new LineAgent`. */
export const PI: LineAgentFacts = {
  name: "pi",
  program: {
    name: "pi",
    title: "Pi",
    versionMin: "0.87.0",
    install: "npm install -g @earendil-works/pi-coding-agent",
  },
  capabilities: {
    steer: "inject",
    followUp: "queue",
    resume: "id",
    usage: "message",
    model: true,
    pricePrefix: "",
    profileFields: CHOSEN_FIELDS,
    signIn: "run `pi` and enter /login, or set the key of its provider",
  },
  // The id opens the session or makes it. The dialogue checks which.
  argumentsOf: ({ intent: { agentSessionId, model } }) => [
    "--mode",
    "rpc",
    "--session-id",
    agentSessionId,
    "--extension",
    gatePath(),
    ...(model === null ? [] : ["--model", model]),
  ],
  variables: [
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
    "GEMINI_API_KEY",
    "OPENROUTER_API_KEY",
    "PI_CODING_AGENT_DIR",
    "PI_CODING_AGENT_SESSION_DIR",
    "PI_OFFLINE",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_FILE",
    "SHELL",
    "USER",
  ],
  keys: ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"],
  programKeys: PI_KEYS,
  settings: { PI_SKIP_VERSION_CHECK: "1", PI_TELEMETRY: "0" },
  toolVariables: ({ tools }) => ({ HOLDFAST_SESSION_TOOLS: JSON.stringify(tools) }),
  takesOurId: true,
  files(environment, id) {
    const folder = environment["PI_CODING_AGENT_SESSION_DIR"] ?? join(piFolder(environment), "sessions");
    return { sessions: { folder, ending: `_${id}.jsonl` }, mcpFiles: [] };
  },
  ownFolders: (environment) => {
    const sessions = environment["PI_CODING_AGENT_SESSION_DIR"];
    const home = piFolder(environment);
    return { written: [home, ...(sessions === undefined ? [] : [sessions])], read: [dirname(gatePath())] };
  },
  dialogue: (turn) => new PiDialogue(turn),
  recordedCalls: piRecordedCalls,
  ruledCall: ({ tool, input }, folder) => shellCall(TOOLS[tool] ?? tool, input, folder),
};

/** A file beside this one, in a checkout and in a bundle. */
function gatePath(): string {
  const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
  return fileURLToPath(new URL(`./pi-gate.${extension}`, import.meta.url));
}
