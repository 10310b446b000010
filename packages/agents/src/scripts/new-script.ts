// `writeNewScript`: the files of a new script, which its author changes.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { makePrivateFolder } from "@holdfast/system";
import { MANIFEST } from "./script-manifest.ts";

/** @param folder is made. It has no such files yet. */
export function writeNewScript(folder: string, name: string): void {
  makePrivateFolder(folder);
  writeFileSync(join(folder, MANIFEST), `${JSON.stringify(manifestOf(name), null, 2)}\n`, { flag: "wx" });
  writeFileSync(join(folder, `${name}.sh`), TEMPLATE, { flag: "wx", mode: 0o755 });
}

function manifestOf(name: string): object {
  return {
    name,
    description: "Say in one sentence what the script does and when to use it.",
    script_file: `${name}.sh`,
    parameters_schema: {
      type: "object",
      properties: { file: { type: "string", description: "The file to read" } },
      required: ["file"],
    },
    effect: "read",
    timeout: "1m",
  };
}

const TEMPLATE = `#!/bin/sh
# Runs in the folder of the agent. SCRIPT_DIR is the folder of this file.
while [ $# -gt 0 ]; do
  case "$1" in
    --file) file="$2"; shift 2 ;;
  esac
done
wc -w < "$file"
`;
