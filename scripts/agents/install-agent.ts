// Installs a real program from the npm registry (`installAgent`).

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { RealAgent } from "./real-agents.ts";

/** @param programs a folder of ours, where a program that is already there stays. @returns why it could not be installed. */
export function installAgent(
  { name, install: packages }: Pick<RealAgent, "name" | "install">,
  programs: string,
): string | undefined {
  const folder = join(programs, name);
  if (existsSync(join(folder, "node_modules/.bin"))) return undefined;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), "{}\n");
  const { status, stderr } = spawnSync("npm", ["install", "--no-audit", "--no-fund", ...packages], {
    cwd: folder,
    encoding: "utf8",
    timeout: 10 * 60_000,
  });
  if (status === 0) return undefined;
  return `not installed: ${/npm error (?!code)(.*)/.exec(stderr ?? "")?.[1] ?? `npm ended with ${String(status)}`}`;
}
