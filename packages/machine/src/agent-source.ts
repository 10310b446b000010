// `AgentSource`: where the agent of a session comes from, which a session stores as one text
// (`AgentRef.file`). Only this module knows the form of the text: the absolute path of a file, or `external:`
// with the name of a program. An argument of a command may have the second form too.

import { extname } from "node:path";

export type AgentSource =
  /** A file that exports the agent. */
  | { readonly kind: "code"; readonly path: string }
  /** An agent file, or the folder of one. */
  | { readonly kind: "file"; readonly path: string }
  /** An external agent. */
  | { readonly kind: "program"; readonly name: string };

/** The endings of files of code. */
export const CODE_ENDINGS = [".ts", ".mts", ".js", ".mjs", ".cts", ".cjs", ".tsx"];

const MARK = "external:";

export function readAgentSource(text: string): AgentSource {
  if (text.startsWith(MARK)) return { kind: "program", name: text.slice(MARK.length) };
  return { kind: CODE_ENDINGS.includes(extname(text)) ? "code" : "file", path: text };
}

export function agentSourceText(source: AgentSource): string {
  return source.kind === "program" ? `${MARK}${source.name}` : source.path;
}

/** The name of the program that this text means; `undefined` for a text of another kind. */
export function programOf(text: string | undefined): string | undefined {
  const source = text === undefined ? undefined : readAgentSource(text);
  return source?.kind === "program" ? source.name : undefined;
}
