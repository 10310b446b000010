// `formOf`, `readInput`: a form for the input of an agent, made from the JSON Schema of that input.
//
//   - A form offers only what it understands of a schema: the properties of one object. Anything deeper is a
//     field of JSON, so every input can be given.
//   - The form checks what it can, for a mistake to be shown at its field before anything starts. The agent
//     checks all of it.

export interface Field {
  readonly name: string;
  readonly kind: "text" | "number" | "choice" | "yes_no" | "json";
  readonly isRequired: boolean;
  readonly description?: string;
  /** The values of a choice, as JSON. */
  readonly choices?: readonly string[];
  /** The text that the field begins with. */
  readonly initial: string;
  readonly schema: Schema;
}

export type InputForm =
  | { readonly type: "fields"; readonly fields: readonly Field[] }
  /** One text. `canConverse`: the agent may stay for further messages. */
  | { readonly type: "text"; readonly canConverse: boolean }
  /** Text or JSON, for an agent whose schema is not known. */
  | { readonly type: "any" };

export type ReadInput =
  | { readonly input: unknown }
  /** The mistakes, by the names of the fields; under `""` for the whole input. */
  | { readonly problems: Readonly<Record<string, string>> };

interface Schema {
  readonly type?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly anyOf?: readonly Schema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly description?: unknown;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
}

export function formOf(given: unknown): InputForm {
  if (typeof given !== "object" || given === null) return { type: "any" };
  const schema = given as Schema;
  const { properties, anyOf = [], required = [] } = schema;
  if (schema.type === "string") return { type: "text", canConverse: false };
  if (anyOf.some(({ type }) => type === "string"))
    return { type: "text", canConverse: anyOf.some((each) => each.properties?.["text"] !== undefined) };
  if (schema.type !== "object" || properties === undefined) return { type: "any" };
  return {
    type: "fields",
    fields: Object.entries(properties).map(([name, property]) =>
      fieldOf(name, property, Array.isArray(required) && required.includes(name)),
    ),
  };
}

function fieldOf(name: string, given: Schema | boolean, isRequired: boolean): Field {
  const schema = typeof given === "object" && given !== null ? given : {};
  const choices = choicesOf(schema);
  const { description, default: initial } = schema;
  const kind = choices === undefined ? (KINDS[String(schema.type)] ?? "json") : "choice";
  return {
    name,
    kind,
    isRequired: isRequired && initial === undefined,
    ...(typeof description === "string" ? { description } : {}),
    ...(choices === undefined ? {} : { choices }),
    initial:
      initial === undefined
        ? ""
        : typeof initial === "string" && kind === "text"
          ? initial
          : JSON.stringify(initial),
    schema,
  };
}

const KINDS: Readonly<Record<string, Field["kind"]>> = {
  string: "text",
  number: "number",
  integer: "number",
  boolean: "yes_no",
};

function choicesOf({ enum: values, anyOf }: Schema): readonly string[] | undefined {
  if (Array.isArray(values)) return values.map((value) => JSON.stringify(value));
  if (!Array.isArray(anyOf) || anyOf.length === 0) return undefined;
  const constants = (anyOf as readonly Schema[]).map((each) => each.const);
  return constants.includes(undefined) ? undefined : constants.map((value) => JSON.stringify(value));
}

/**
 * @param values the texts of the fields by their names; of a form without fields under `""`.
 * @param converses whether a conversational agent stays for further messages.
 */
export function readInput(
  form: InputForm,
  values: Readonly<Record<string, string>>,
  converses: boolean,
): ReadInput {
  const text = values[""] ?? "";
  switch (form.type) {
    case "any":
      return { input: text.trim() === "" ? undefined : textOrJson(text) };
    case "text":
      if (text.trim() === "") return { problems: { "": "write a text" } };
      return { input: converses ? { text, conversation: true } : text };
    case "fields":
      return readFields(form.fields, values);
  }
}

function readFields(fields: readonly Field[], values: Readonly<Record<string, string>>): ReadInput {
  const input: Record<string, unknown> = {};
  const problems: Record<string, string> = {};
  for (const field of fields) {
    const text = values[field.name] ?? field.initial;
    if (text === "" || (field.kind !== "text" && text.trim() === "")) {
      if (field.isRequired) problems[field.name] = "is required";
      continue;
    }
    try {
      const value = field.kind === "text" ? text : (JSON.parse(text) as unknown);
      const problem = problemOf(field, value);
      if (problem === undefined) input[field.name] = value;
      else problems[field.name] = problem;
    } catch {
      problems[field.name] = field.kind === "number" ? "must be a number" : "must be JSON";
    }
  }
  return Object.keys(problems).length === 0 ? { input } : { problems };
}

function problemOf({ kind, schema }: Field, value: unknown): string | undefined {
  const { minLength = 0, maxLength = Infinity, minimum = -Infinity, maximum = Infinity, pattern } = schema;
  if (kind === "number") {
    if (typeof value !== "number") return "must be a number";
    if (schema.type === "integer" && !Number.isInteger(value)) return "must be a whole number";
    if (value < minimum) return `must be at least ${minimum}`;
    if (value > maximum) return `must be at most ${maximum}`;
  }
  if (kind !== "text" || typeof value !== "string") return undefined;
  if (value.length < minLength) return `must have at least ${minLength} characters`;
  if (value.length > maxLength) return `must have at most ${maxLength} characters`;
  return pattern === undefined || matches(pattern, value) ? undefined : `must match ${pattern}`;
}

function matches(pattern: string, text: string): boolean {
  try {
    return new RegExp(pattern, "u").test(text);
  } catch {
    return true; // The agent knows.
  }
}

/** JSON is taken as such, and anything else as text. */
export function textOrJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
