// The check of external agents: their programs on the PATH, with version and abilities
// (`checkExternalAgents`).
//
// A program that is missing is no problem, because Holdfast needs none of them.

import { findExternalPrograms } from "../agents/external-agents.ts";
import type { Io } from "@holdfast/terminal/frame/command";
import type { Finding } from "./check.ts";

export async function checkExternalAgents(io: Io): Promise<Finding> {
  const programs = await findExternalPrograms(io);
  const missing = programs.filter(({ status }) => status === "missing").map(({ name }) => name);
  const there = programs.filter(({ status }) => status !== "missing");
  // A line for each, because the abilities of five programs are too long for one.
  const found = [
    ...there.map((program) => program.found),
    ...(missing.length === 0 ? [] : [`not installed: ${missing.join(", ")}`]),
  ];
  const refused = programs.filter(({ status }) => status === "refused");
  if (refused.length === 0) return { status: "ok", found };
  const fixes = refused.map(
    ({ name, fix }) => `${name}: ${fix ?? "correct the installation of the program"}`,
  );
  return { status: "warning", found, fix: fixes };
}
