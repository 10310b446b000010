// The check of external agents: their programs on the PATH, with version and abilities (`checkExternalAgents`).
//
// A program that is missing is no problem, because Holdfast needs none of them.

import { findExternalPrograms } from "../agents/external-agents.ts";
import type { Io } from "../frame/command.ts";
import type { Finding } from "./check.ts";

export async function checkExternalAgents(io: Io): Promise<Finding> {
  const programs = await findExternalPrograms(io);
  const found = programs.map((program) => program.found).join("; ");
  const refused = programs.find(({ status }) => status === "refused");
  if (refused === undefined) return { status: "ok", found };
  return { status: "warning", found, fix: refused.fix ?? "correct the installation of the program" };
}
