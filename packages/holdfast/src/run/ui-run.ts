// `holdfast ui`: serves the dashboard over the project's database until it is stopped.
//
//   - It listens on the loopback alone. The token lives in this process's memory, and ends with it.
//   - The printed address signs in one browser, once. It opens no browser itself. A browser that it started
//     would end with it, and other users of the machine would see the address on its command line.
//   - A coordinator serves its page itself, so the address of that page is all that is printed. Beside a
//     running local stack that is the stack's page. A place that somebody names (--db) is shown instead.

import { randomBytes, timingSafeEqual } from "node:crypto";
import { createPage, pageProblem, serveSessions } from "@holdfast/coordinator";
import { toError, UsageError } from "@holdfast/core";
import { readCron, systemClock, systemRandom } from "@holdfast/runtime";
import { plainLine, quoted } from "@holdfast/terminal/frame/plain-text";
import { STOP_EXIT, type Arguments, type Io, type StopSignal } from "@holdfast/terminal/frame/command";
import { noteStack } from "@holdfast/place/find-session";
import { findDatabase } from "@holdfast/place/project";
import { projectStorage } from "@holdfast/place/project-storage";
import { pageWorkspaces } from "./page-workspaces.ts";
import { stopper } from "./typing/stopper.ts";

const MESSAGE_CHARS = 500;

/** @returns the exit code. */
export async function runUi(args: Arguments, io: Io): Promise<number> {
  const port = portOf(args.text("port"));
  const database = findDatabase(args, io);
  const { stack } = database;
  const { coordinator } = stack ?? database;
  if (coordinator !== undefined) {
    const url = new URL("/ui/", coordinator.url).href;
    if (stack !== undefined) noteStack(stack, io);
    show(url, url, io);
    io.note(`  sign in with the token in ${plainLine(coordinator.tokenFrom, MESSAGE_CHARS)}`);
    if (stack !== undefined) noteUnbuilt(io);
    if (stack !== undefined)
      io.note(`  those of the project: ${io.call(`ui --db ${quoted(database.path)}`)}`);
    return 0;
  }
  const token = randomBytes(32).toString("base64url");
  const storage = projectStorage(database);
  const page = createPage({
    place: database.path,
    isLocal: true,
    monotonic: () => systemClock.monotonic(),
    agents: () => agentFiles(io),
    secrets: () => secretNames(io),
    ...pageWorkspaces(storage, io),
  });
  const server = serveSessions({
    storage,
    clock: systemClock,
    random: systemRandom(),
    page,
    readCron,
    authenticate: (given) =>
      Promise.resolve(
        isSame(given, token)
          ? { status: "known", caller: { kind: "admin", name: "this machine", tokenId: "ui" } }
          : { status: "unknown" },
      ),
    log: (message, error) =>
      io.note(io.notes.paint.yellow(plainLine(`${message}: ${toError(error).message}`, MESSAGE_CHARS))),
  });
  const { promise: stopped, resolve } = Promise.withResolvers<StopSignal>();
  const release = io.onStop(stopper(io, "the page is closed; sessions stay", resolve));
  try {
    const listener = await server.listen({ host: "127.0.0.1", port });
    const root = `http://127.0.0.1:${listener.port}`;
    show(`${root}${page.signInPath(token)}`, database.path, io);
    noteUnbuilt(io);
    return STOP_EXIT[await stopped];
  } finally {
    release();
    await server.close();
  }
}

/** The readers of agent files are loaded when a person looks at these. */
async function agentFiles(io: Io): Promise<object> {
  const { agentReport } = await import("../agents/check-agents.ts");
  const { serverReport } = await import("../agents/mcp/show-mcp-servers.ts");
  return { ...agentReport(io), servers: await serverReport(io) };
}

/** The names of this user's secrets, as `holdfast secret list` shows them. No value is read. */
async function secretNames(io: Io): Promise<object> {
  const { namedSecrets } = await import("@holdfast/terminal/secrets/supplied-secrets");
  return { secrets: await namedSecrets(io) };
}

function show(url: string, place: string, io: Io): void {
  if (io.isJson) io.result({ type: "listening", url, place }, "");
  else {
    io.note(`open in a browser: ${io.notes.paint.bold(url)}`);
    // The address of a coordinator's page says where it is.
    if (place !== url) io.note(`  it shows the sessions of ${plainLine(place, MESSAGE_CHARS)}`);
  }
}

/** Says in the terminal what the browser would say, where the page was not built. */
function noteUnbuilt(io: Io): void {
  const problem = pageProblem();
  if (problem !== undefined) io.note(io.notes.paint.yellow(`  ${problem}`));
}

function isSame(given: string, token: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(token)];
  return a.length === b.length && timingSafeEqual(a, b);
}

function portOf(text: string | undefined): number {
  if (text === undefined) return 0;
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw new UsageError(`"${text}" is no port`, {
    at: "--port",
    expected: "a number from 0 to 65535; 0 for any that is free",
  });
}
