// `enableService`, `disableService`: a part of Holdfast as a service of this user, which the system starts at
// login and starts again when it ends. On Linux it is a unit of systemd, on macOS an agent of launchd.
//
//   - A service has no variables of a terminal. Keys that are nowhere else are named before it is started.
//   - A service that the system does not take leaves no file, and one that was there before as it was.
//   - A service that ends at once, or is not ready in time, is no success. It stays written, because the system
//     starts it again.

import { existsSync, readFileSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { HoldfastError, UsageError } from "@holdfast/core";
import { keyVariables, makePrivateFolder, replacePrivate } from "@holdfast/system";
import { tryProgram } from "@holdfast/system/processes";
import type { Io } from "@holdfast/terminal/frame/command";
import { duration } from "@holdfast/terminal/frame/plain-text";
import { openSecretPlaces } from "@holdfast/terminal/secrets/supplied-secrets";
import { commandOf, unitOf, variablesOf, type Service, type ServiceName } from "./service-unit.ts";

const CALL_MS = 30_000;
/** A call that waits for the end of a service. The system ends it by force after its grace. */
const STOP_CALL_MS = 60 * 60_000;
const STOPPING: ReadonlySet<string> = new Set(["restart", "--now", "bootout"]);
/** From the start of a service to a look at it. A service that has failed starts again after more than this. */
const LOOK_MS = 3_000;
/** A service that can say when it is ready is asked so often, and for so long. */
const READY_LOOK_MS = 100;
const READY_MS = 60_000;
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
