// `fillPlaceholders`: puts values into the `${NAME}` of a server's command, environment, address and headers.
//
//   placeholders-1. A placeholder without a value is an error that names it. A server never gets the placeholder itself, nor an empty text.
//   placeholders-2. A value is not filled in again: a `${` inside a value has no meaning.
//   placeholders-3. A variable of Holdfast itself (`HOLDFAST_TOKEN`) is refused, because some of them are its credentials.
//
// `${NAME}`, `${env.NAME}` and `${env:NAME}` are variables. `${NAME:-text}` has a text for when there is no value. `${runtime.session_id}` is
// the session, and `${workspaceFolder}` the folder it works in.

import { HoldfastError } from "@holdfast/core";

/** Where the values of a session come from. */
export interface PlaceholderValues {
  /** The value of a variable, `undefined` for none. Must not throw. */
  readonly variable: (name: string) => string | undefined;
  readonly sessionId: string;
  /** The absolute path of the workspace. */
  readonly folder: string;
}

/** The names of the variables in the placeholders of these texts. A default stays the author's affair. */
export function variablesIn(texts: readonly string[]): readonly string[] {
  const names = texts.flatMap((text) =>
    [...text.matchAll(PLACEHOLDER)].flatMap(([, inside = ""]) => variableOf(partsOf(inside).name) ?? []),
  );
  return [...new Set(names)];
}

const OWN_VARIABLE = /^(?:env[.:])?HOLDFAST_/i;
const PLACEHOLDER = /\$\{([^{}]*)\}/g;

/**
 * @param at the place of the text, for the error.
 * @throws HoldfastError `config_invalid` (placeholders-1, placeholders-3)
 */
export function fillPlaceholders(text: string, values: PlaceholderValues, at: string): string {
  return text.replaceAll(PLACEHOLDER, (whole, inside: string) => {
    const { name, fallback } = partsOf(inside);
    if (OWN_VARIABLE.test(name))
      throw new HoldfastError(
        "config_invalid",
        `${at}: the placeholder ${whole} names a variable of Holdfast itself, which no server gets; use another variable`,
      );
    const value = valueOf(name, values) ?? fallback;
    if (value !== undefined && value !== "") return value;
    // A failed task records the message alone.
    throw new HoldfastError(
      "config_invalid",
      `${at}: the placeholder ${whole} has no value; ${fixFor(name)}`,
    );
  });
}

function partsOf(inside: string): { readonly name: string; readonly fallback: string | undefined } {
  const [, name = "", fallback] = /^(.*?)(?::-(.*))?$/s.exec(inside.trim()) ?? [];
  return { name, fallback };
}

/** The variable that a placeholder names; `undefined` for a placeholder of another kind. */
function variableOf(name: string): string | undefined {
  if (name === "runtime.session_id" || name === "workspaceFolder") return undefined;
  const plain = /^env[.:](.+)$/.exec(name)?.[1] ?? name;
  return /^[A-Za-z_]\w*$/.test(plain) ? plain : undefined;
}

function valueOf(name: string, { variable, sessionId, folder }: PlaceholderValues): string | undefined {
  if (name === "runtime.session_id") return sessionId;
  if (name === "workspaceFolder") return folder;
  const named = variableOf(name);
  const value = named === undefined ? undefined : variable(named);
  return value === undefined && named === "AGENT_SESSION_ID" ? sessionId : value;
}

function fixFor(name: string): string {
  const named = variableOf(name);
  return named === undefined
    ? "write the name of a variable, as in ${TOKEN}"
    : `set the variable ${named}, or give it in an environment (\`holdfast env set base ${named}=VALUE\`, or ${named} --secret)`;
}
