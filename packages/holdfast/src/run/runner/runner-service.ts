// `holdfast runner enable` and `disable`: a runner as a service of this user. Several of one machine differ by
// their names.
//
//   - The token is in a file that only its user reads. The unit has the path of the file, and no token.
//   - The address, the token, the files, the policy, labels and numbers are checked before anything is written.
//     The service says what else is wrong in its log.

import { HoldfastError, NotFoundError, STOP_GRACE_MS, UsageError } from "@holdfast/core";
import { checkToken } from "@holdfast/place/coordinator-access";
import { findFleetMode } from "@holdfast/place/mode";
import { readBounded } from "@holdfast/place/settings/config";
import { readRunnerPolicy } from "@holdfast/place/settings/runner-policy-file";
import { graceOf, refuse } from "@holdfast/terminal/frame/arguments";
import type { Arguments, Io, Options } from "@holdfast/terminal/frame/command";
import { checkFile, lookAtPath } from "@holdfast/terminal/frame/given-file";
import { readLabels } from "@holdfast/terminal/frame/labels";
import { resolve } from "node:path";
import { namedAgents } from "../../agents/named-agents.ts";
import { coordinatorUrls, workspaceOf } from "../runner-run.ts";
import { readRunnerNumbers } from "./runner-numbers.ts";
import type { ServiceName } from "../../stack/service/service-unit.ts";
import { disableService, enableService } from "../../stack/service/user-service.ts";

/** Not standard input, and not what only another process gives. */
const START_ONLY = [
  "executor-list",
  "check-executor",
  "ipc",
  "secret-stdin",
  "supervised",
  "for-trials",
] as const;
/** Variables by which a runner is set up, beside the usual ones. */
const VARIABLES = [
  "HOLDFAST_MODE",
  "MODE",
  "HOLDFAST_SANDBOX",
  "HOLDFAST_SANDBOX_IMAGE",
  "SANDBOX_TYPE",
  "SANDBOX_ROOT_DIR",
  "HOLDFAST_ENV",
  "ENV",
  "CLAUDE_CONFIG_DIR",
  "CODEX_HOME",
  "AGENT_EXECUTOR_PATH",
  "POLL_TIMEOUT",
  "HEARTBEAT_INTERVAL",
];
const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]*$/;

/** The options of `enable`, among those of the command. */
export function serviceOptions(options: Options): readonly string[] {
  return Object.keys(options).filter((name) => !START_ONLY.some((only) => only === name));
}

/** @returns the exit code. */
export async function enableRunner(args: Arguments, options: Options, io: Io): Promise<number> {
  const service = nameOf(args);
  const urls = coordinatorUrls(args, io, findFleetMode(args, io));
  const workspace = workspaceOf(args, io);
  await namedAgents(args, workspace, io);
  for (const file of args.texts("tasks")) checkFile(resolve(io.cwd, file));
  readRunnerPolicy(args, io, workspace);
  readLabels(args, "label");
  readRunnerNumbers(args);
  const tokenFile = checkTokenFile(args, io);
  const others = serviceOptions(options).filter(
    (name) => !["coordinator", "project", "token-file"].includes(name) && args.has(name),
  );
  const words = [
    "runner",
    ...urls.flatMap((url) => ["--coordinator", url]),
    "--project",
    workspace,
    ...(tokenFile === undefined ? [] : ["--token-file", tokenFile]),
    ...others.flatMap((name) =>
      options[name]?.value === undefined
        ? [`--${name}`]
        : args.texts(name).flatMap((value) => [`--${name}`, value]),
    ),
  ];
  // launchd adds no time to a line.
  if (process.platform === "darwin" && !args.has("log-times")) words.push("--log-times");
  const { graceMs = STOP_GRACE_MS } = graceOf(args);
  // A restart would fail again: wrong words, files or settings, a token that is not valid, another protocol.
  const finalExits = "2 3 5 11 12";
  return enableService({ ...service, words, graceMs, finalExits, variables: VARIABLES }, io);
}

/** @returns the exit code. */
export async function disableRunner(args: Arguments, io: Io): Promise<number> {
  return disableService(nameOf(args), io);
}

function nameOf(args: Arguments): ServiceName {
  const name = args.text("name");
  if (name !== undefined && !NAME.test(name))
    throw new UsageError(`a service cannot be named ${JSON.stringify(name)}`, {
      at: "--name",
      expected: "letters, digits, `_`, `.` and `-`",
    });
  return {
    name: name === undefined ? "holdfast-runner" : `holdfast-runner-${name}`,
    is: name === undefined ? "the runner" : `the runner ${name}`,
    origin: "Written by `holdfast runner enable`, and removed by `holdfast runner disable`.",
    otherwise: "start the runner by `holdfast runner`",
  };
}

/** The path of the file with the registration token; `undefined` for a runner that has registered before. */
function checkTokenFile(args: Arguments, io: Io): string | undefined {
  const file = args.text("token-file");
  const fix = "write the token to a file of mode 0600, and give it with --token-file FILE";
  if (file === undefined) {
    if ((io.env["HOLDFAST_TOKEN"] ?? "") === "") return undefined;
    throw new UsageError("HOLDFAST_TOKEN is a variable of this terminal, which a service does not have", {
      at: "HOLDFAST_TOKEN",
      fix,
    });
  }
  if (file === "-") throw refuse("a service has no standard input for its token", args.usage, { fix });
  const path = resolve(io.cwd, file);
  const found = lookAtPath(path);
  if (typeof found === "string" || !found.isFile())
    throw new NotFoundError("file_not_found", "the token's file cannot be read", {
      at: path,
      fix: "check the path; it is taken from the current folder",
    });
  if ((found.mode & 0o077) !== 0)
    throw new HoldfastError("config_invalid", "other users may read the token's file", {
      at: path,
      expected: "a file of mode 0600",
      fix: `run chmod 600 ${path}`,
    });
  checkToken(readBounded(path).trim(), path);
  return path;
}
