// `fillPlaceholders`: puts values into the `${NAME}` of a server's command, environment, address and headers.
//
//   - A placeholder without a value is an error that names it and its place. A server never gets the
//     placeholder itself, and an empty text only where the file gives it (`${NAME:-}`).
//   - A value is not filled in again: a `${` inside a value has no meaning.
//   - A variable of Holdfast itself (`HOLDFAST_TOKEN`) is refused, because some of them are its credentials.
//   - A placeholder that can never have a value refuses the agent's file (`placeholderProblem`).
//
// `${NAME}`, `${env.NAME}` and `${env:NAME}` are variables. `${NAME:-text}` has a text for when there is no
// value. `${runtime.session_id}` is the session, `${workspaceFolder}` the folder it works in, and
// `${params.NAME}` a field of its input.

import { didYouMean, HoldfastError } from "@holdfast/core";

/** Where the values of a session come from. */
export interface PlaceholderValues {
  /** The value of a variable, or of a field of the input as `params.NAME`; `undefined` for none. Must not throw. */
  readonly variable: (name: string) => string | undefined;
  readonly sessionId: string;
  /** The absolute path of the workspace. */
  readonly folder: string;
}

/** The names of the variables in the placeholders of these texts. A default stays the author's affair. */
export function variablesIn(texts: readonly string[]): readonly string[] {
  return namesIn(texts, variableOf);
}

/** The fields of the input in the placeholders of these texts. */
export function paramsIn(texts: readonly string[]): readonly string[] {
  return namesIn(texts, paramOf);
}

function namesIn(texts: readonly string[], nameOf: (name: string) => string | undefined): readonly string[] {
  const names = texts.flatMap((text) =>
    [...text.matchAll(PLACEHOLDER)].flatMap(([, inside = ""]) => nameOf(partsOf(inside).name) ?? []),
  );
  return [...new Set(names)];
}

const OWN_VARIABLE = /^(?:env[.:])?HOLDFAST_/i;
const PLACEHOLDER = /\$\{([^{}]*)\}/g;

const FIXED = ["runtime.session_id", "workspaceFolder"] as const;

/** Placeholders of other systems that have no meaning here, each with another way (decision 60). */
const WITHOUT_MEANING: readonly (readonly [name: RegExp, why: string])[] = [
  [
    /^runtime\.run_id$/,
    "a server serves all runs of its session, so that no run is its own; write ${runtime.session_id}",
  ],
  [
    /^scope\./,
    "a session has no scope; write ${NAME} and give the value by `--env NAME=VALUE` or an environment, which no model reads",
  ],
  [
    /^runner\./,
    "a runner has no address for its sessions; write ${NAME} and set that variable, for the orchestrator to the coordinator's address with /mcp",
  ],
  [/^secret[.:]/, "a secret is a variable; write ${NAME} and run `holdfast secret set NAME`"],
];

/** The fields that the input of an agent has; `null` where they are not known, as for a server of several agents. */
export type InputFields = readonly { readonly name: string; readonly isRequired: boolean }[] | null;

/** @returns the reason why a placeholder of this text can never have a value, with its position in the text. */
export function placeholderProblem(text: string, fields: InputFields): string | undefined {
  for (const { 0: whole, 1: inside = "", index } of text.matchAll(PLACEHOLDER)) {
    const problem = problemOf(partsOf(inside), fields);
    if (problem !== undefined) return `the placeholder ${whole} (character ${index + 1}): ${problem}`;
  }
  return undefined;
}

function problemOf({ name, fallback }: Parts, fields: InputFields): string | undefined {
  if (FIXED.some((one) => one === name) || variableOf(name) !== undefined) return undefined;
  const param = paramOf(name);
  if (param === undefined) {
    const [, why] = WITHOUT_MEANING.find(([pattern]) => pattern.test(name)) ?? [];
    return why ?? `no placeholder has this name; ${available(fields)}${didYouMean(name, FIXED)}`;
  }
  const names = fields?.map((one) => one.name);
  const field = fields?.find((one) => one.name === param);
  if (names !== undefined && field === undefined)
    return `the input has no field ${param}; ${available(fields)}${didYouMean(param, names)}`;
  if (field?.isRequired === false && fallback === undefined)
    return `the field ${param} of the input may be missing; make it required, or write \${params.${param}:-TEXT}`;
  return undefined;
}

function available(fields: InputFields): string {
  const own = (fields ?? [{ name: "NAME" }]).map(({ name }) => `\${params.${name}}`);
  return `a placeholder is \${NAME} or \${env.NAME} for a variable, ${[...FIXED.map((one) => `\${${one}}`), ...own].join(", ")}`;
}

/**
 * @param at the place of the text, for the error.
 * @throws HoldfastError `config_invalid`
 */
export function fillPlaceholders(text: string, values: PlaceholderValues, at: string): string {
  return text.replaceAll(PLACEHOLDER, (whole, inside: string) => {
    const { name, fallback } = partsOf(inside);
    if (OWN_VARIABLE.test(name))
      throw new HoldfastError(
        "config_invalid",
        `${at}: the placeholder ${whole} names a variable of Holdfast itself, which no server gets; use another variable`,
      );
    const value = valueOf(name, values);
    if (value !== undefined && value !== "") return value;
    if (fallback !== undefined) return fallback; // As in a shell, also for a variable that is empty.
    // A failed task records the message alone.
    throw new HoldfastError(
      "config_invalid",
      `${at}: the placeholder ${whole} has no value; ${fixFor(name)}`,
    );
  });
}

interface Parts {
  readonly name: string;
  readonly fallback: string | undefined;
}

function partsOf(inside: string): Parts {
  const [, name = "", fallback] = /^(.*?)(?::-(.*))?$/s.exec(inside.trim()) ?? [];
  return { name, fallback };
}

/** The variable that a placeholder names; `undefined` for a placeholder of another kind. */
function variableOf(name: string): string | undefined {
  if (FIXED.some((one) => one === name)) return undefined;
  const plain = /^env[.:](.+)$/.exec(name)?.[1] ?? name;
  return /^[A-Za-z_]\w*$/.test(plain) ? plain : undefined;
}

/** The field of the input that a placeholder names. */
function paramOf(name: string): string | undefined {
  return /^params\.([A-Za-z_][\w-]*)$/.exec(name)?.[1];
}

function valueOf(name: string, { variable, sessionId, folder }: PlaceholderValues): string | undefined {
  if (name === "runtime.session_id") return sessionId;
  if (name === "workspaceFolder") return folder;
  const named = variableOf(name) ?? (paramOf(name) === undefined ? undefined : name);
  const value = named === undefined ? undefined : variable(named);
  return value === undefined && named === "AGENT_SESSION_ID" ? sessionId : value;
}

function fixFor(name: string): string {
  const named = variableOf(name);
  if (named !== undefined)
    return `set the variable ${named}, or give it in an environment (\`holdfast env set base ${named}=VALUE\`, or ${named} --secret)`;
  if (paramOf(name) !== undefined)
    return "only a session with an input has it; give it a text: ${params.NAME:-TEXT}";
  return available(null);
}
