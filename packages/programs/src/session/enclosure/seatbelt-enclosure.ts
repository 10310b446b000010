// Runs the program of an external agent under a profile of Seatbelt (`seatbelted`). macOS only. The promises
// are those of `enclosure.ts`, except that processes of this machine are seen.
//
// Leaky: credentials in the keychain are out of reach, so the program needs a key in a variable or a file.
// The folder for its temporary files is left to the cleaning of macOS.

import { mkdtempSync, realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { programFolders, SEATBELT, seatbeltProfile } from "@holdfast/workspace";
import type { Enclose } from "../external-agent-protocol.ts";

/** Absolute paths. */
export interface EnclosedPlaces {
  /** The folder of the session, without symbolic links. */
  readonly folder: string;
  readonly written: readonly string[];
  readonly readable: readonly string[];
}

/** The rules of Seatbelt are compared with paths without symbolic links. */
export function seatbelted({ folder, written, readable }: EnclosedPlaces): Enclose {
  const scratch = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-scratch-")));
  return (argv, { PATH = "" }, more = []) => {
    const { text, parameters } = seatbeltProfile({
      root: folder,
      scratch,
      programs: [...programFolders(PATH), ...readable, ...more].map(realPath),
      program: { written: written.map(realPath) },
    });
    const named = Object.entries(parameters).flatMap(([name, value]) => ["-D", `${name}=${value}`]);
    return [SEATBELT, "-p", text, ...named, "/usr/bin/env", `TMPDIR=${scratch}`, ...argv];
  };
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path; // It is not there.
  }
}
