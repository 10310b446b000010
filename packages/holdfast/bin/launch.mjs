// The `holdfast` command under a Node that can run us: prepares the process, then runs `main`.
//
//   - Neither half outlives the other, where a launcher under an older Node started this one. The agent ends
//     with a launcher that is killed with -9. Otherwise the agent would keep running unseen and hold its
//     database, and `resume` would find the session claimed.
//   - One press of Ctrl-C is one SIGINT. The terminal sends SIGINT to the whole process group, and npx and
//     the launcher forward theirs. Without care `holdfast` would see two or three, and "stop cleanly" would
//     become "stop at once".
//   - Compiled code is kept in a folder that only this user may write. Code that another user planted there
//     would run as this user.
//   - A process whose environment has keys replaces itself before it does anything else, and the next one has
//     them in its memory alone. The commands of agents read the environments of other processes.

import { existsSync, lstatSync, mkdirSync } from "node:fs";
import * as nodeModule from "node:module";
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { LAUNCHED } from "./node-version.mjs";

const KNOWN_WARNING = /^(SQLite is an|Type Stripping is an|Failed to load the ES module|Module type of )/;
const SAME_PRESS_MS = 100; // copies of one SIGINT arrive within a few ms; a person's second press does not

await run();

async function run() {
  if (process.env[LAUNCHED] !== undefined) {
    delete process.env[LAUNCHED]; // or a program that the agent starts would believe it was launched
    // The agent would keep running unseen, and hold its database.
    process.on("disconnect", () => process.kill(process.pid, "SIGKILL"));
    process.channel?.unref();
  }
  const { replaceWithoutKeys } = await import("@holdfast/system/handed-keys");
  // The commands of agents can read the environment that a process was started with.
  const keys = replaceWithoutKeys();
  mergeRepeatedInterrupts();
  silenceKnownWarnings();
  cacheCompiledCode();

  // In the repository the sources run as they are; what is published has only `dist`.
  const source = new URL("../src/main.ts", import.meta.url);
  const entry = existsSync(source) ? source : new URL("../dist/main.js", import.meta.url);
  const { main } = await import(entry.href);
  // Not `exitCode`: an agent may leave a timer or a socket open, and the command must end all the same.
  process.exit(await main(process.argv.slice(2), keys));
}

/**
 * Without a cache, or where it cannot be kept, the command only starts more slowly. Node's own default is a
 * folder below /tmp, which another user may have made.
 */
function cacheCompiledCode() {
  if (process.env["NODE_COMPILE_CACHE"] !== undefined) return; // Node has a cache already.
  const { XDG_CACHE_HOME: chosen = "" } = process.env;
  try {
    const base = isAbsolute(chosen) ? chosen : join(homedir(), ".cache");
    const folder = join(base, "holdfast", "compiled");
    // Not recursive: where a file system refuses folders by ENOENT, as /proc does, Node would never give up.
    for (const part of [base, join(base, "holdfast"), folder])
      if (!existsSync(part)) mkdirSync(part, { mode: 0o700 });
    const { uid, mode } = lstatSync(folder);
    const isOurs = process.getuid === undefined || (uid === process.getuid() && (mode & 0o022) === 0);
    if (isOurs) nodeModule.enableCompileCache?.(folder);
  } catch {
    // The folder cannot be made: a home that is read-only, or none.
  }
}

/** Leaky: it replaces `process.emit`, because a listener cannot keep a signal from the other listeners. */
function mergeRepeatedInterrupts() {
  const emit = process.emit;
  let lastAt = -Infinity;
  process.emit = function (name, ...args) {
    if (name === "SIGINT") {
      const now = performance.now();
      if (now - lastAt < SAME_PRESS_MS) return true;
      lastAt = now;
    }
    return emit.call(this, name, ...args);
  };
}

/**
 * On some Nodes SQLite and type stripping still warn that they are experimental. The warning about a file's
 * module type is hidden because the command's own error says it where it matters. Other warnings are shown.
 * Leaky: some warnings do not go through `process.emitWarning`.
 */
function silenceKnownWarnings() {
  const emit = process.emit;
  process.emit = function (name, ...args) {
    if (name === "warning" && KNOWN_WARNING.test(String(args[0]?.message))) return true;
    return emit.call(this, name, ...args);
  };
}
