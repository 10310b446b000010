// `holdfast local enable` and `disable`: the local stack as a service of this user, which the system starts at
// login and starts again when it ends. On Linux it is a unit of systemd, on macOS an agent of launchd.
//
//   - The options are checked as `local start` checks them, before anything is written.
//   - A service has no variables of a terminal. Keys that are nowhere else are named before it is started.
//   - A service that the system does not take leaves no file.

import { existsSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { ConflictError, HoldfastError } from "@holdfast/core";
import { keyVariables, makePrivateFolder, replacePrivate, tryProgram } from "@holdfast/system";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { findRunningStack } from "@holdfast/place/local-stack";
import { openSecretPlaces } from "@holdfast/terminal/secrets/supplied-secrets";
import { planOf, startWords } from "../start-stack.ts";
import type { StackPlan } from "../supervisor.ts";

const NAME = "holdfast-local";
const LABEL = "dev.holdfast.local";
const CALL_MS = 30_000;
/** Beyond the grace the supervisor ends everything by force. */
const STOP_AFTER_GRACE_S = 15;
/** Exit codes by which a restart would fail again: wrong words, settings, files, or another stack that runs. */
const FINAL_EXITS = "2 3 4 6 11 12";
/** Places and settings, and no key: they stand in a file that is readable. */
const KEPT_VARIABLES = [
  "PATH",
  "LANG",
  "XDG_DATA_HOME",
  "XDG_CONFIG_HOME",
  "HOLDFAST_MODEL",
  "HOLDFAST_SECRET_KEY_FILE",
  "NODE_EXTRA_CA_CERTS",
];

interface Service {
  readonly path: string;
  readonly text: (plan: StackPlan, words: readonly string[], io: Io) => string;
  /** Commands that start it now and at each login, and that end it. */
  readonly on: readonly (readonly string[])[];
  readonly off: readonly (readonly string[])[];
  /** The facts that a person should know once it is on. */
  readonly note: string;
}

/** @returns the exit code. */
export async function enableStack(args: Arguments, io: Io): Promise<number> {
  const service = serviceOf(io);
  const plan = await planOf(args, io);
  if (findRunningStack(io) !== undefined && !existsSync(service.path))
    throw new ConflictError("conflict", "the local stack runs already, and was not started by a service", {
      fix: "run `holdfast local stop`, and then the same command again",
    });
  for (const line of await unreadableKeys(io)) io.note(`${io.notes.symbols.warn} ${line}`);
  makePrivateFolder(dirname(service.path));
  replacePrivate(service.path, service.text(plan, startWords(args), io));
  try {
    for (const command of service.on) await callSystem(command, io);
  } catch (error) {
    rmSync(service.path, { force: true });
    throw error;
  }
  io.result({ status: "enabled", file: service.path }, "");
  io.note(`${io.notes.symbols.done} the local stack runs as a service: ${service.path}`);
  io.note(service.note);
  return 0;
}

/** @returns the exit code. */
export async function disableStack(io: Io): Promise<number> {
  const { path, off } = serviceOf(io);
  if (existsSync(path)) {
    for (const command of off) await callSystem(command, io);
    rmSync(path, { force: true });
    io.note(`${io.notes.symbols.done} the service is stopped and removed; its sessions stay`);
  } else io.note("the local stack is no service");
  io.result({ status: "disabled", file: path }, "");
  return 0;
}

/** Keys of this terminal that the service will not have. Their values are not shown. */
async function unreadableKeys(io: Io): Promise<readonly string[]> {
  const names = keyVariables(io.env);
  if (names.length === 0) return [];
  const stored = new Map((await openSecretPlaces(io)).stored().map(({ name, place }) => [name, place]));
  return names.flatMap((name) => {
    const place = stored.get(name);
    if (place === undefined)
      return `${name} is only a variable of this terminal, which the service does not have: \`${io.call(`secret set ${name}`)}\` stores it`;
    const isOpen = place === "keychain" || io.env["HOLDFAST_SECRET_KEY_FILE"] !== undefined;
    if (isOpen) return [];
    return `${name} is stored behind a passphrase, which nobody types for a service: set HOLDFAST_SECRET_KEY_FILE, and store it again`;
  });
}

function serviceOf({ env }: Io): Service {
  const home = env["HOME"] ?? "";
  switch (process.platform) {
    case "linux":
      return {
        path: join(env["XDG_CONFIG_HOME"] ?? join(home, ".config"), "systemd/user", `${NAME}.service`),
        text: unitText,
        on: [
          ["systemctl", "--user", "daemon-reload"],
          ["systemctl", "--user", "enable", `${NAME}.service`],
          ["systemctl", "--user", "restart", `${NAME}.service`],
        ],
        off: [["systemctl", "--user", "disable", "--now", `${NAME}.service`]],
        note: "it ends when you log out; `loginctl enable-linger` keeps it, also from the start of the machine on",
      };
    case "darwin": {
      const path = join(home, "Library/LaunchAgents", `${LABEL}.plist`);
      const domain = `gui/${process.getuid?.() ?? 0}`;
      return {
        path,
        text: plistText,
        on: [["launchctl", "bootstrap", domain, path]],
        off: [["launchctl", "bootout", `${domain}/${LABEL}`]],
        note: "it starts when you log in",
      };
    }
    default:
      throw new HoldfastError("usage", `there are no services of users on ${process.platform}`, {
        fix: "start the stack by `holdfast local start`",
      });
  }
}

function commandOf({ program }: StackPlan, words: readonly string[]): readonly string[] {
  return [...program, "local", "start", "--foreground", ...words];
}

function variables({ env }: Io): readonly (readonly [name: string, value: string])[] {
  return KEPT_VARIABLES.flatMap((name) => {
    const value = env[name];
    return value === undefined ? [] : [[name, value] as const];
  });
}

function unitText(plan: StackPlan, words: readonly string[], io: Io): string {
  // systemd reads `%` and `$` in a quoted word, and takes each doubled.
  const quoted = (text: string): string =>
    `"${text.replaceAll(/["\\]/g, "\\$&").replaceAll("%", "%%").replaceAll("$", "$$$$")}"`;
  const stopS = Math.ceil(plan.graceMs / 1_000) + STOP_AFTER_GRACE_S;
  return `# Written by \`holdfast local enable\`, and removed by \`holdfast local disable\`.
[Unit]
Description=Holdfast local stack
StartLimitIntervalSec=0

[Service]
WorkingDirectory=${io.cwd.replaceAll("%", "%%")}
${variables(io)
  .map(([name, value]) => `Environment=${quoted(`${name}=${value}`).replaceAll("$$", "$")}\n`)
  .join("")}ExecStart=${commandOf(plan, words).map(quoted).join(" ")}
Restart=always
RestartSec=5
SuccessExitStatus=143
RestartPreventExitStatus=${FINAL_EXITS}
TimeoutStopSec=${stopS}
KillMode=mixed
UMask=0077

[Install]
WantedBy=default.target
`;
}

function plistText(plan: StackPlan, words: readonly string[], io: Io): string {
  const safe = (text: string): string =>
    text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  const strings = (texts: readonly string[]): string =>
    texts.map((text) => `    <string>${safe(text)}</string>\n`).join("");
  const env = variables(io).map(
    ([name, value]) => `    <key>${name}</key>\n    <string>${safe(value)}</string>\n`,
  );
  const stopS = Math.ceil(plan.graceMs / 1_000) + STOP_AFTER_GRACE_S;
  return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>${LABEL}</string>
  <key>WorkingDirectory</key>
  <string>${safe(io.cwd)}</string>
  <key>EnvironmentVariables</key>
  <dict>
${env.join("")}  </dict>
  <key>ProgramArguments</key>
  <array>
${strings(commandOf(plan, words))}  </array>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <true/>
  <key>ThrottleInterval</key>
  <integer>10</integer>
  <key>ExitTimeOut</key>
  <integer>${stopS}</integer>
</dict>
</plist>
`;
}

/** @throws HoldfastError `unavailable` when the system does not do it. */
async function callSystem([program = "", ...args]: readonly string[], io: Io): Promise<void> {
  const end = await tryProgram(program, args, { ms: CALL_MS, env: io.env });
  if (end.status === "done") return;
  throw new HoldfastError("unavailable", `${program} ${args.join(" ")} did not succeed`, {
    got: end.status === "failed" ? end.reason : `there is no program ${program}`,
    fix: "log in as this user, so that its services run, or start the stack by `holdfast local start`",
  });
}
