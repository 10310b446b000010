// `holdfast script run`: one call of a script in the current folder, for a person.

import { randomUUID } from "node:crypto";
import { checkCall, describeEnd, findScripts, runScript, usableScript } from "@holdfast/agents";
import { openWorkspace } from "@holdfast/workspace";
import { STOP_EXIT, type Io, type StopSignal } from "@holdfast/terminal/frame/command";
import { readInput } from "@holdfast/terminal/frame/input";
import { plain } from "@holdfast/terminal/frame/plain-text";
import { agentPlaces } from "../agents/agent-places.ts";
import { noteOf, pickScript } from "./show-scripts.ts";

/** The exit code for a script that a process signal or its time limit ended. */
const ENDED = 1;

/** @returns the exit code of the script. */
export async function callScript(name: string, given: string | undefined, io: Io): Promise<number> {
  const places = agentPlaces(io);
  const script = pickScript(name, findScripts(places));
  const { manifest, content } = usableScript(script, places);
  const args = checkCall(manifest, given === undefined ? {} : await readInput(given, io));
  const note = noteOf(script);
  if (note !== undefined) io.note(`${io.notes.symbols.warn} ${name}: ${note}`);
  const stopped = new AbortController();
  let signal: StopSignal | undefined;
  const release = io.onStop((received) => {
    signal = received;
    stopped.abort();
  });
  const workspace = await openWorkspace({ root: io.cwd });
  try {
    const { end, stdout, stderr, isCut, durationMs } = await runScript(workspace, manifest, content, args, {
      signal: stopped.signal,
      env: { IDEMPOTENCY_KEY: randomUUID() },
    });
    if (stderr !== "" && !io.isJson) io.write(plain(stderr));
    io.result({ end, stdout, stderr, isCut, durationMs }, plain(stdout).trimEnd());
    if (signal !== undefined) return STOP_EXIT[signal];
    if (end.type === "exit") return end.exitCode;
    io.note(`${io.notes.symbols.warn} ${name}: ${describeEnd(end)}`);
    return ENDED;
  } finally {
    release();
    await workspace.dispose();
  }
}
