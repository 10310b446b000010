// The adapter for harnesses of the AI SDK, such as `@ai-sdk/harness-pi` (`harnessAgent`). A program of ours
// runs the harness for one turn and speaks Holdfast's JSON lines (`harness-program.ts`). The packages of the
// harness are the user's: a module of theirs imports them.

import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { HoldfastError } from "@holdfast/core";
import { makePrivateFolder, type Environment } from "@holdfast/system";

import { hostEnvironment } from "@holdfast/workspace";
import { namedCall } from "../lines/named-call.ts";
import { ownLines } from "../custom/custom-agent.ts";
import type {
  ExternalAgentProtocol,
  OwnFolders,
  PermissionRequest,
  RuledCall,
} from "../../session/external-agent-protocol.ts";
import { LineAgent } from "../lines/line-agent.ts";
import type { StopLimits } from "../lines/line-program.ts";

/** Options of `harnessAgent`. */
export interface HarnessAgentOptions {
  readonly name: string;
  /** The module whose default export is the harness, such as `createPi()`. A relative path is taken from `folder`. */
  readonly module: string;
  /** The folder for the states of its sessions; `.holdfast/harness-sessions` of the home folder by default. */
  readonly states?: string;
  /** Variables that the harness gets of the user's environment, besides those of every process. */
  readonly variables?: readonly string[];
  /** The names of variables whose values are keys. They are passed on, and replaced in everything that is recorded. */
  readonly keys?: readonly string[];
  /** The places that the harness needs in a sandbox besides its packages and states. */
  readonly folders?: OwnFolders;
  /** The environment of this process by default. */
  readonly environment?: Environment;
  readonly folder: string;
  readonly stopLimits?: StopLimits;
}

/** The adapter for a harness of the AI SDK. */
export function harnessAgent(options: HarnessAgentOptions): ExternalAgentProtocol {
  const { name, module, variables = [], keys = [], folders, ...place } = options;
  const { environment = hostEnvironment } = options;
  const path = resolve(options.folder, module);
  const home = environment["HOME"] ?? "/";
  const { states: folder = join(home, ".holdfast", "harness-sessions") } = options;
  return new LineAgent({
    facts: {
      name,
      program: {
        name: process.execPath,
        title: name,
        install: "correct `module` of its profile, or of `harnessAgent`",
        check: async () => {
          checkModule(name, path);
          makePrivateFolder(folder);
        },
      },
      ...ownLines({ resumes: true }),
      argumentsOf: () => ["--no-warnings", programPath(), path, folder],
      variables: [...variables, ...keys],
      keys,
      toolVariables: ({ tools }) => ({ HOLDFAST_SESSION_TOOLS: JSON.stringify(tools) }),
      files: (_environment, id) => ({ sessions: { folder, ending: `${id}.json` }, mcpFiles: [] }),
      ownFolders: () => ({
        written: [folder, join(home, ".ai-sdk"), ...(folders?.written ?? [])],
        read: [dirname(programPath()), dirname(path), ...(folders?.read ?? [])],
      }),
      ruledCall: harnessCall,
    },
    ...place,
    environment,
  });
}

/** The names of our rules for the tools that the specification names for every harness. */
const TOOLS: Readonly<Record<string, string>> = {
  bash: "shell",
  read: "read_file",
  write: "write_file",
  edit: "edit_file",
};

function harnessCall({ tool, input }: Pick<PermissionRequest, "tool" | "input">, folder: string): RuledCall {
  const { file_path: path = input["path"] } = input;
  return namedCall(TOOLS[tool] ?? tool, { command: input["command"], path }, folder);
}

/** The module is loaded in the process of a turn alone. */
function checkModule(name: string, path: string): void {
  if (existsSync(path)) return;
  throw new HoldfastError("program_missing", `the harness of the agent ${name} has no module`, {
    at: path,
    expected: 'a file such as `import { createPi } from "@ai-sdk/harness-pi"; export default createPi();`',
    fix: "write the file beside the installed packages of the harness, or correct its path",
  });
}

/** A file beside this one, in a checkout and in a bundle. */
function programPath(): string {
  const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
  return fileURLToPath(new URL(`./harness-program.${extension}`, import.meta.url));
}
