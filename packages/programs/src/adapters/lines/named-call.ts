// `namedCall`: a call of a program's tool in the words of our permission rules. Pure.

import { ruledPath } from "@holdfast/agents";

import type { RuledCall } from "../../session/external-agent-protocol.ts";

/** @param main the input that a rule can be about: a command counts before a path, and what is no text does not. */
export function namedCall(
  tool: string,
  { command, path }: { readonly command?: unknown; readonly path?: unknown },
  folder: string,
): RuledCall {
  if (typeof command === "string") return { tool, subjectKind: "command", subject: command };
  if (typeof path === "string") return { tool, subjectKind: "path", subject: ruledPath(path, folder) };
  return { tool, subjectKind: "text", subject: null };
}

/** As `namedCall`, for a program whose commands are those of its shell alone. */
export function shellCall(
  tool: string,
  { command, path }: { readonly command?: unknown; readonly path?: unknown },
  folder: string,
): RuledCall {
  return namedCall(tool, { command: tool === "shell" ? command : undefined, path }, folder);
}
