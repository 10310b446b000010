// `unitOf`: the file of a service of this user for systemd or launchd, and the commands that start and end it.
//
//   - launchd keeps no lines of a service, so its agent names a file for them. The journal of systemd has them.
//   - systemd starts a service that ended in order only at the next login: by `holdfast local stop`, or by
//     `holdfast runners drain`. For launchd only a drained runner has ended in order.

import { join } from "node:path";
import { HoldfastError } from "@holdfast/core";
import type { Io } from "@holdfast/terminal/frame/command";
import { quoted } from "@holdfast/terminal/frame/plain-text";

/** Beyond the grace a service ends everything of its own by force. */
const STOP_AFTER_GRACE_S = 15;
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

/** A service as the system knows it. */
export interface ServiceName {
  /** The name of the unit, and the last part of the label for launchd. */
  readonly name: string;
  /** The service, for people: "the local stack". */
  readonly is: string;
  /** The commands that write and remove it, as the first line of its unit. */
  readonly origin: string;
  /** How to start it without a service, for errors. */
  readonly otherwise: string;
}

export interface Service extends ServiceName {
  /** The words behind `holdfast`. */
  readonly words: readonly string[];
  readonly graceMs: number;
  /** Exit codes by which a restart would fail again. */
  readonly finalExits: string;
  /** Variables of this terminal that it has, beside the usual ones. */
  readonly variables?: readonly string[];
  /** Whether the process that was started now is ready. Without it a service is ready when it runs. */
  readonly isReady?: () => boolean;
}

interface Unit {
  readonly path: string;
  readonly text: (service: Service, io: Io) => string;
  /** Commands that make room for another text of a service that is there. They may fail. */
  readonly before: readonly (readonly string[])[];
  /** Commands that start it now and at each login, and that end it. */
  readonly on: readonly (readonly string[])[];
  readonly off: readonly (readonly string[])[];
  /** A command that says how the service stands, and its output for one that has ended. */
  readonly state: readonly string[];
  readonly ended: RegExp;
  /** The command that shows why. */
  readonly log: string;
  /** Commands after the removal of its file, by which the system forgets it. They may fail. */
  readonly after: readonly (readonly string[])[];
  /** The file for what it says; `undefined` where the system keeps that. */
  readonly logFile?: string;
  /** The facts that a person should know once it is on. */
  readonly note: string;
  /** How it starts again after an end in order. */
  readonly whenStopped: string;
}

export function unitOf({ name, otherwise }: ServiceName, { env }: Io): Unit {
  const home = env["HOME"] ?? "";
  switch (process.platform) {
    case "linux":
      return {
        path: join(env["XDG_CONFIG_HOME"] ?? join(home, ".config"), "systemd/user", `${name}.service`),
        text: unitText,
        before: [],
        on: [
          ["systemctl", "--user", "daemon-reload"],
          ["systemctl", "--user", "enable", `${name}.service`],
          ["systemctl", "--user", "restart", `${name}.service`],
        ],
        off: [["systemctl", "--user", "disable", "--now", `${name}.service`]],
        after: [
          ["systemctl", "--user", "daemon-reload"],
          ["systemctl", "--user", "reset-failed", `${name}.service`],
        ],
        state: [
          "systemctl",
          "--user",
          "show",
          `${name}.service`,
          "--property=ActiveState,Result,ExecMainStatus",
        ],
        ended: /^ActiveState=(?!active$)[^]*/m,
        log: `journalctl --user -u ${name}.service`,
        note: "it ends when you log out; `loginctl enable-linger` keeps it, also from the start of the machine on",
        whenStopped: "it starts again at the next login",
      };
    case "darwin": {
      const label = labelOf(name);
      const path = join(home, "Library/LaunchAgents", `${label}.plist`);
      const domain = `gui/${process.getuid?.() ?? 0}`;
      const off = [["launchctl", "bootout", `${domain}/${label}`]];
      const logFile = logOf(name, home);
      return {
        path,
        text: plistText,
        before: off, // launchd refuses a second service with the same label.
        on: [["launchctl", "bootstrap", domain, path]],
        off,
        after: [],
        state: ["launchctl", "print", `${domain}/${label}`],
        ended: /^\s*last exit code = [1-9].*$/m,
        log: `tail ${quoted(logFile)}`,
        logFile,
        note: `it starts when you log in; what it says is in ${logFile}`,
        whenStopped: "launchd starts it again within seconds", // The exit code of a stop is a failure for it.
      };
    }
    default:
      throw new HoldfastError("usage", `there are no services of users on ${process.platform}`, {
        fix: otherwise,
      });
  }
}

/** `holdfast-local` is `dev.holdfast.local` for launchd. */
function labelOf(name: string): string {
  return `dev.${name.replace("-", ".")}`;
}

/** In the folder that macOS has for the logs of a user's programs. */
function logOf(name: string, home: string): string {
  return join(home, "Library/Logs", `${labelOf(name)}.log`);
}

export function commandOf({ words }: Service): readonly string[] {
  return [process.execPath, ...process.execArgv, process.argv[1]!, ...words];
}

export function variablesOf(
  { variables = [] }: Service,
  { env }: Io,
): readonly (readonly [name: string, value: string])[] {
  return [...KEPT_VARIABLES, ...variables].flatMap((name) => {
    const value = env[name];
    return value === undefined ? [] : [[name, value] as const];
  });
}

function unitText(service: Service, io: Io): string {
  // systemd reads `%` and `$` in a quoted word, and takes each doubled.
  const asWord = (text: string): string =>
    `"${text.replaceAll(/["\\]/g, "\\$&").replaceAll("%", "%%").replaceAll("$", "$$$$")}"`;
  const stopS = Math.ceil(service.graceMs / 1_000) + STOP_AFTER_GRACE_S;
  return `# ${service.origin}
[Unit]
Description=Holdfast: ${service.is}
StartLimitIntervalSec=0

[Service]
WorkingDirectory=${io.cwd.replaceAll("%", "%%")}
${variablesOf(service, io)
  .map(([name, value]) => `Environment=${asWord(`${name}=${value}`).replaceAll("$$", "$")}\n`)
  .join("")}ExecStart=${commandOf(service).map(asWord).join(" ")}
Restart=on-failure
RestartSec=5
SuccessExitStatus=143
RestartPreventExitStatus=${service.finalExits}
TimeoutStopSec=${stopS}
KillMode=mixed
UMask=0077

[Install]
WantedBy=default.target
`;
}

function plistText(service: Service, io: Io): string {
  const safe = (text: string): string =>
    text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  const strings = (texts: readonly string[]): string =>
    texts.map((text) => `    <string>${safe(text)}</string>\n`).join("");
  const env = variablesOf(service, io).map(
    ([name, value]) => `    <key>${name}</key>\n    <string>${safe(value)}</string>\n`,
  );
  const stopS = Math.ceil(service.graceMs / 1_000) + STOP_AFTER_GRACE_S;
  const log = safe(logOf(service.name, io.env["HOME"] ?? ""));
  return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>${labelOf(service.name)}</string>
  <key>WorkingDirectory</key>
  <string>${safe(io.cwd)}</string>
  <key>EnvironmentVariables</key>
  <dict>
${env.join("")}  </dict>
  <key>ProgramArguments</key>
  <array>
${strings(commandOf(service))}  </array>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>ThrottleInterval</key>
  <integer>10</integer>
  <key>ExitTimeOut</key>
  <integer>${stopS}</integer>
  <key>StandardOutPath</key>
  <string>${log}</string>
  <key>StandardErrorPath</key>
  <string>${log}</string>
</dict>
</plist>
`;
}
