// `literalSecret`: where the settings of an MCP server have a secret that is written out, instead of a
// placeholder.
//
// Leaky: a secret without a known form, under another name, is not found.

import type { McpServer } from "@holdfast/mcp";

const NAME = /token|secret|passw|api[_-]?key|credential|authorization|cookie/i;
const FORMS =
  /\bsk-[A-Za-z0-9_-]{16,}|\bAIza[\w-]{30,}|\b(gh[pousr]_|github_pat_|glpat-)[A-Za-z0-9_-]{16,}|\bxox[abprs]-[A-Za-z0-9-]{10,}|\beyJ[\w-]{8,}\.eyJ[\w-]{8,}/;

/** @returns the place of the secret, such as `Authorization`, and never its value. */
export function literalSecret(server: McpServer): string | undefined {
  const fields = server.type === "http" ? server.headers : server.env;
  const sensitive = server.type === "http" ? literalAmong(fields, server.sensitive ?? []) : undefined;
  if (sensitive !== undefined) return sensitive;
  const named = Object.entries(fields).find(([name, value]) => NAME.test(name) && isLiteral(value));
  if (named !== undefined) return named[0];
  const formed = Object.entries(fields).find(([, value]) => FORMS.test(value));
  if (formed !== undefined) return formed[0];
  return server.type === "http" ? secretInUrl(server.url) : secretInArguments(server.args);
}

/** @returns the first of these names whose value is written out. Names of headers have no case. */
export function literalAmong(
  fields: Readonly<Record<string, string>>,
  names: readonly string[],
): string | undefined {
  const wanted = new Set(names.map((name) => name.toLowerCase()));
  return Object.keys(fields).find((name) => wanted.has(name.toLowerCase()) && isLiteral(fields[name] ?? ""));
}

/** A variable alone, and a type of sign-in before it, is no secret: `Bearer ${TOKEN}`. */
function isLiteral(value: string): boolean {
  return value !== "" && !value.includes("${");
}

function secretInUrl(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  if (url.username !== "" || url.password !== "") return "the user name in the address";
  for (const [name, value] of url.searchParams)
    if ((NAME.test(name) && isLiteral(value)) || FORMS.test(value)) return `${name} in the address`;
  return undefined;
}

/** `--token VALUE`, `--token=VALUE` and known forms. */
function secretInArguments(args: readonly string[]): string | undefined {
  for (const [at, text] of args.entries()) {
    const [, option, value] = /^--?([\w-]+)(?:=(.*))?$/s.exec(text) ?? [];
    const next = args[at + 1] ?? "";
    const given = value ?? (next.startsWith("-") ? "" : next);
    if (option !== undefined && NAME.test(option) && isLiteral(given)) return `--${option}`;
    if (FORMS.test(text)) return `argument ${at + 1}`;
  }
  return undefined;
}
