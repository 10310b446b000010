// `enableService`, `disableService`: a part of Holdfast as a service of this user, which the system starts at
// login and starts again when it ends. On Linux it is a unit of systemd, on macOS an agent of launchd.
//
//   - A service has no variables of a terminal. Keys that are nowhere else are named before it is started.
//   - A service that the system does not take leaves no file, and one that was there before as it was.
//   - A service that ends at once, or is not ready in time, is no success. It stays written, because the system
//     starts it again.
//   - launchd keeps no lines of a service, so its agent names a file for them. The journal of systemd has them.
//   - systemd starts a service that ended in order only at the next login: by `holdfast local stop`, or by
//     `holdfast runners drain`. For launchd only a drained runner has ended in order.

import { existsSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { HoldfastError, UsageError } from "@holdfast/core";
import { keyVariables, makePrivateFolder, replacePrivate } from "@holdfast/system";
import { tryProgram } from "@holdfast/system/processes";
import type { Io } from "@holdfast/terminal/frame/command";
import { duration, quoted } from "@holdfast/terminal/frame/plain-text";
import { openSecretPlaces } from "@holdfast/terminal/secrets/supplied-secrets";

const CALL_MS = 30_000;
/** A call that waits for the end of a service. The system ends it by force after its grace. */
const STOP_CALL_MS = 60 * 60_000;
const STOPPING: ReadonlySet<string> = new Set(["restart", "--now", "bootout"]);
/** From the start of a service to a look at it. A service that has failed starts again after more than this. */
const LOOK_MS = 3_000;
/** A service that can say when it is ready is asked so often, and for so long. */
const READY_LOOK_MS = 100;
const READY_MS = 60_000;
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

export function isService(name: ServiceName, io: Io): boolean {
  return existsSync(unitOf(name, io).path);
}

/** How a service starts again after an end in order; `undefined` when it is no service. */
export function whenStopped(name: ServiceName, io: Io): string | undefined {
  const hasServices = ["linux", "darwin"].includes(process.platform);
  return hasServices && isService(name, io) ? unitOf(name, io).whenStopped : undefined;
}

/** @returns the exit code. */
export async function enableService(service: Service, io: Io): Promise<number> {
  const { path, text, before, on, logFile, note } = unitOf(service, io);
  refuseUnsafe(service, io);
  for (const line of await unreadableKeys(io)) io.note(`${io.notes.symbols.warn} ${line}`);
  makePrivateFolder(dirname(path));
  if (logFile !== undefined) makePrivateFolder(dirname(logFile)); // launchd makes only the file.
  const former = existsSync(path) ? readFileSync(path, "utf8") : undefined;
  // A service that is only a file is none to end.
  if (former !== undefined) for (const [program = "", ...args] of before) await call(program, args, io);
  replacePrivate(path, text(service, io));
  try {
    for (const command of on) await callSystem(command, service, io);
  } catch (error) {
    if (former === undefined) rmSync(path, { force: true });
    else {
      replacePrivate(path, former);
      for (const [program = "", ...args] of on) await call(program, args, io); // With the former text.
    }
    throw error;
  }
  await requireReady(service, io);
  io.result({ status: "enabled", file: path }, "");
  io.note(`${io.notes.symbols.done} ${service.is} runs as a service: ${path}`);
  io.note(note);
  return 0;
}

/** @throws UsageError for a text that would be more than one line of a unit. A folder may have any name. */
function refuseUnsafe(service: Service, io: Io): void {
  const texts = [io.cwd, ...commandOf(service), ...variablesOf(service, io).map(([, value]) => value)];
  const unsafe = texts.find((text) => /\p{Cc}|\\$/u.test(text));
  if (unsafe === undefined) return;
  throw new UsageError("the file of a service cannot hold this text", {
    got: JSON.stringify(unsafe.slice(0, 200)),
    expected: "text without line breaks and control characters, and without a backslash at its end",
    fix: `use a folder and words without them, or ${service.otherwise}`,
  });
}

/** @throws HoldfastError `unavailable` for a service that has ended since it was started, or is not ready in time. */
async function requireReady(service: Service, io: Io): Promise<void> {
  const { isReady } = service;
  const began = performance.now();
  do {
    if (await becomesReady(isReady)) return;
    const got = await endOf(service, io);
    if (got !== undefined) throw isNotUp(service, io, { how: "ended at once", got });
    if (isReady === undefined) return;
  } while (performance.now() < began + READY_MS);
  const got = `not ready after ${duration(READY_MS)}`;
  throw isNotUp(service, io, { how: "is not ready", got });
}

/** Waits until the next look at a service. @returns at once when it is ready. */
async function becomesReady(isReady: Service["isReady"]): Promise<boolean> {
  for (const deadline = performance.now() + LOOK_MS; performance.now() < deadline;) {
    if (isReady?.() === true) return true;
    await delay(isReady === undefined ? LOOK_MS : READY_LOOK_MS);
  }
  return false;
}

/** How the system says that a service has ended; `undefined` while it runs, or when that is unknown. */
async function endOf(service: Service, io: Io): Promise<string | undefined> {
  const { state, ended } = unitOf(service, io);
  const [program = "", ...args] = state;
  const said = await call(program, args, io);
  return said.status === "done" ? ended.exec(said.output)?.[0].trim() : undefined;
}

function isNotUp(service: Service, io: Io, { how, got }: { how: string; got: string }): HoldfastError {
  const { path, log } = unitOf(service, io);
  return new HoldfastError("unavailable", `${service.is} was started as a service, and ${how}`, {
    at: path,
    got,
    expected: "a service that runs",
    fix: `read why in its log (\`${log}\`), correct that, and run the same command again`,
  });
}

/** @returns the exit code. */
export async function disableService(name: ServiceName, io: Io): Promise<number> {
  const { path, off, after } = unitOf(name, io);
  if (existsSync(path)) {
    for (const command of off) await callSystem(command, name, io);
    rmSync(path, { force: true });
    for (const [program = "", ...args] of after) await call(program, args, io);
    io.note(`${io.notes.symbols.done} the service is stopped and removed; its sessions stay`);
  } else io.note(`${name.is} is no service`);
  io.result({ status: "disabled", file: path }, "");
  return 0;
}

/** Keys of this terminal that the service will not have. Their values are not shown. */
async function unreadableKeys(io: Io): Promise<readonly string[]> {
  const names = keyVariables(io.env).filter((name) => name !== "HOLDFAST_TOKEN"); // A runner has it in a file.
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

function unitOf({ name, otherwise }: ServiceName, { env }: Io): Unit {
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

function commandOf({ words }: Service): readonly string[] {
  return [process.execPath, ...process.execArgv, process.argv[1]!, ...words];
}

function variablesOf(
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

function call(program: string, args: readonly string[], { env }: Io): ReturnType<typeof tryProgram> {
  // `sudo -u` and `su` do not set the folder in which systemd listens for a user who lingers.
  const runtime = `/run/user/${process.getuid?.()}`;
  const listens = env["XDG_RUNTIME_DIR"] === undefined && existsSync(runtime);
  return tryProgram(program, args, {
    ms: args.some((arg) => STOPPING.has(arg)) ? STOP_CALL_MS : CALL_MS,
    env: listens ? { ...env, XDG_RUNTIME_DIR: runtime } : env,
  });
}

/** @throws HoldfastError `unavailable` when the system does not do it. */
async function callSystem(
  [program = "", ...args]: readonly string[],
  { otherwise }: ServiceName,
  io: Io,
): Promise<void> {
  const end = await call(program, args, io);
  if (end.status === "done") return;
  throw new HoldfastError("unavailable", `${program} ${args.join(" ")} did not succeed`, {
    got: end.status === "failed" ? end.reason : `there is no program ${program}`,
    fix: `log in as this user, so that its services run (on Linux \`loginctl enable-linger\` does the same), or ${otherwise}`,
  });
}
