// A project on a machine with external agents: `ExternalProject`. Their programs are fakes, which write what
// they did into the folder.

import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  writeFileSync,
} from "node:fs";
import { delimiter } from "node:path";
import { fileURLToPath } from "node:url";
import { includedFacts } from "@holdfast/programs";
import { hasOwnAdapter, INCLUDED_NAMES } from "@holdfast/programs/included-programs";
import { vi } from "vitest";
import { LAUNCHER, Project, type Finished, type HoldfastProcess } from "./holdfast-process.ts";

const FAKES = new URL("../../../programs/src/testing/", import.meta.url);
/** The sources of the included programs, as `fakeOf` of their package has them, and of one of JSON lines. */
const PROGRAMS = Object.entries({
  ...Object.fromEntries(
    INCLUDED_NAMES.map((name) => [includedFacts(name).program.name, hasOwnAdapter(name) ? name : "acp"]),
  ),
  lines: "lines",
});

export const ANTHROPIC_KEY = "sk-ant-test-0123456789abcdef";

export interface ShownSession {
  readonly status: string;
  readonly entries: readonly { readonly role: string; readonly content: unknown }[];
  readonly error?: { readonly code: string; readonly message: string };
}

/** One start of the program `claude`. */
interface Start {
  readonly args: readonly string[];
  readonly env: readonly string[];
  readonly cwd: string;
}

export class ExternalProject extends Project {
  constructor() {
    super();
    mkdirSync(this.path("bin"));
    for (const [name, fake] of PROGRAMS) {
      const source = fileURLToPath(new URL(`fake-${fake}.mjs`, FAKES));
      writeFileSync(this.path(`bin/${name}`), `#!/bin/sh\nexec "${process.execPath}" "${source}" "$@"\n`);
      chmodSync(this.path(`bin/${name}`), 0o755);
    }
  }

  /** Starts `holdfast` where the programs are on the PATH. @param folder of the project. */
  startHere(
    args: readonly string[],
    env: Readonly<Record<string, string>> = {},
    folder = ".",
  ): HoldfastProcess {
    return this.start(args, { stdin: "", env: { ...this.environment(), ...env }, folder });
  }

  /** Runs `holdfast` to its end, where the programs are on the PATH. */
  finishHere(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Finished> {
    return this.finish(args, { env: { ...this.environment(), ...env } });
  }

  /** The variables with which the programs are found. */
  environment(): Record<string, string> {
    const folders = [this.path("bin"), LAUNCHER.replace(/\/holdfast$/, ""), process.env["PATH"]];
    return { PATH: folders.join(delimiter), ANTHROPIC_API_KEY: ANTHROPIC_KEY };
  }

  shown(id: string): Promise<ShownSession> {
    return this.json<ShownSession>("show", id);
  }

  /** Resolves when the program hangs, and the call in which it does is stored in the session. */
  async hangs(id: string): Promise<void> {
    await vi.waitFor(
      async () => {
        if (!existsSync(this.path("pids"))) throw new Error("no program hangs");
        const { entries } = await this.shown(id);
        if (!JSON.stringify(entries).includes("sleep 1000")) throw new Error("the call is not stored");
      },
      { timeout: 60_000, interval: 100 },
    );
  }

  starts(): readonly Start[] {
    return this.lines("claude.log").map((line) => JSON.parse(line) as Start);
  }

  /** The answers to requests for permissions that a program got. */
  answers(): readonly string[] {
    return this.lines("answers");
  }

  /** How often each step of the program was done. */
  steps(): ReadonlyMap<string, number> {
    const counted = new Map<string, number>();
    if (!existsSync(this.path("steps"))) return counted;
    for (const step of this.lines("steps")) counted.set(step, (counted.get(step) ?? 0) + 1);
    return counted;
  }

  /** The processes of a program that hangs, and of what it started, that still run. A zombie has no command line. */
  hanging(): readonly number[] {
    return this.lines("pids")
      .map(Number)
      .filter((pid) => existsSync(`/proc/${pid}/cmdline`) && readFileSync(`/proc/${pid}/cmdline`).length > 0);
  }

  /** The processes that work in the folder. */
  processes(): readonly string[] {
    return readdirSync("/proc").filter((pid) => {
      try {
        return readlinkSync(`/proc/${pid}/cwd`) === this.folder;
      } catch {
        return false;
      }
    });
  }

  lines(file: string): readonly string[] {
    return readFileSync(this.path(file), "utf8").trimEnd().split("\n");
  }
}
