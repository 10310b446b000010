// `ScriptCalls`: the calls of scripts that a command line of a shell makes, from the lines that the wrappers
// of the scripts write.
//
// The lines are for people who look at a session. The command could change them, so nothing is decided by
// them.

import { createHash } from "node:crypto";
import { join } from "node:path";
import { HoldfastError } from "@holdfast/core";

import type { Workspace } from "@holdfast/workspace";

/** The folder of a workspace with the commands of scripts. It is on the PATH of the agent's shell. */
export const SCRIPT_BIN = ".agent-orchestrator/bin";
/** The folder in which wrappers note their calls. Commands in a sandbox can write it. */
export const SCRIPT_CALLS = ".agent-orchestrator/calls";

export interface ScriptCall {
  readonly script: string;
  /** The hash of its content. */
  readonly version: string;
  /** `null` where the command ended before the script did. */
  readonly exitCode: number | null;
}

/** The most calls of one command line that are recorded. */
const CALLS_MAX = 100;

export class ScriptCalls {
  readonly #workspace: Workspace;
  readonly #path: string;

  /** @param key the same for every attempt of the command, and for no other command. */
  constructor(workspace: Workspace, key: string) {
    this.#workspace = workspace;
    this.#path = `${SCRIPT_CALLS}/${createHash("sha256").update(key).digest("hex").slice(0, 16)}`;
  }

  /** Variables that tell the wrappers where to write. */
  get variables(): Readonly<Record<string, string>> {
    return { SCRIPT_EVENTS: join(this.#workspace.root, this.#path) };
  }

  /** The calls, once the command has ended. The lines are removed. */
  async read(): Promise<readonly ScriptCall[]> {
    const text = await this.#readLines();
    if (text === undefined) return [];
    await this.#workspace.execute(["rm", "-f", "--", this.#path]);
    const calls: ScriptCall[] = [];
    for (const line of text.split("\n")) {
      const [, event, script, said] = /^(started|finished) ([a-z0-9-]{1,64}) (\w{1,64})$/.exec(line) ?? [];
      if (script === undefined || said === undefined) continue;
      if (event === "started" && calls.length < CALLS_MAX)
        calls.push({ script, version: said, exitCode: null });
      const open = calls.findLastIndex((call) => call.script === script && call.exitCode === null);
      const call = calls[open];
      if (event === "finished" && call !== undefined && /^\d{1,3}$/.test(said))
        calls[open] = { ...call, exitCode: Number(said) };
    }
    return calls;
  }

  async #readLines(): Promise<string | undefined> {
    try {
      return (await this.#workspace.readFile(this.#path)).text;
    } catch (error) {
      if (!HoldfastError.is(error)) throw error;
      return undefined; // No script was called, or the command has put something else in its place.
    }
  }
}
