// `ServerQuestion`: a question of an MCP server to a person, in the middle of a call. Pure.
//
// A server asks for the fields of a form, or that a person opens an address. It asks with a result
// (`input_required`, MCP 2026-07-28), or by a request of its own while the call runs (2025-11-25).
//
//   - The text of a server has limits, and it is shown as the words of the server.
//   - A content of a form is checked by our own few rules and not by a pattern of the server.
//   - A server never gets a sample of a model, nor a list of roots: it is told that there is none.

import type { InputRequests } from "@modelcontextprotocol/client";

import type { JsonSchema } from "@holdfast/core";
import { ServerFailedError } from "./call-errors.ts";
import { MCP_LIMITS } from "./limits.ts";

export type ServerQuestion = { readonly key: string; readonly message: string } & (
  | { readonly mode: "form"; readonly schema: JsonSchema }
  | { readonly mode: "url"; readonly url: string }
);

/** An answer as the protocol has it. A person who says no declines. */
export type ServerAnswer =
  | { readonly action: "accept"; readonly content?: Readonly<Record<string, FieldValue>> }
  | { readonly action: "decline" | "cancel" };

type FieldValue = string | number | boolean | string[];

/** The members of an elicitation that are used. The SDK has checked them. */
export interface Elicitation {
  readonly message: string;
  readonly mode?: string | undefined;
  readonly url?: unknown;
  readonly requestedSchema?: unknown;
}

/** @throws ServerFailedError for a question that cannot be asked. */
export function questionOf(
  key: string,
  { message, mode, url, requestedSchema }: Elicitation,
): ServerQuestion {
  const said = message.slice(0, MCP_LIMITS.questionChars);
  if (mode === "url") {
    const text = typeof url === "string" ? url : "";
    if (
      URL.canParse(text) &&
      /^https?:$/.test(new URL(text).protocol) &&
      text.length <= MCP_LIMITS.questionChars
    )
      return { key, mode, message: said, url: text };
    throw new ServerFailedError("it asks to open something that is no address of the web");
  }
  const schema = (requestedSchema ?? { type: "object", properties: {} }) as JsonSchema;
  if (JSON.stringify(schema).length > MCP_LIMITS.toolSchemaChars)
    throw new ServerFailedError("the form of its question is too large");
  return { key, mode: "form", message: said, schema };
}

/** @throws ServerFailedError */
export function questionsOf(requests: InputRequests): readonly ServerQuestion[] {
  const entries = Object.entries(requests);
  if (entries.length > MCP_LIMITS.questions)
    throw new ServerFailedError(
      `it asks ${entries.length} questions at once, and ${MCP_LIMITS.questions} is the limit`,
    );
  return entries.map(([key, request]) => {
    if (request.method !== "elicitation/create")
      throw new ServerFailedError(`it asks for ${request.method}, which Holdfast does not offer`);
    return questionOf(key, request.params);
  });
}

interface Field {
  readonly name: string;
  readonly type: string;
  readonly isRequired: boolean;
  readonly choices: readonly string[] | undefined;
  readonly schema: Readonly<Record<string, unknown>>;
}

export function fieldsOf(schema: JsonSchema): readonly Field[] {
  const required = Array.isArray(schema["required"]) ? (schema["required"] as unknown[]) : [];
  return Object.entries((schema["properties"] ?? {}) as Readonly<Record<string, Field["schema"]>>).map(
    ([name, field]) => ({
      name,
      type: typeof field["type"] === "string" ? field["type"] : "string",
      isRequired: required.includes(name),
      choices: choicesOf(field) ?? choicesOf((field["items"] ?? {}) as Field["schema"]),
      schema: field,
    }),
  );
}

function choicesOf(field: Field["schema"]): readonly string[] | undefined {
  if (Array.isArray(field["enum"])) return field["enum"].map(String);
  const titled = field["oneOf"] ?? field["anyOf"];
  return Array.isArray(titled) ? titled.map((one: { const?: unknown }) => String(one.const)) : undefined;
}

/** The examples of a text that may also be another one. */
function examplesOf(field: Field["schema"]): string | undefined {
  const { examples } = (field["type"] === "array" ? (field["items"] ?? {}) : field) as Field["schema"];
  return Array.isArray(examples) ? `${examples.map(String).join(" or ")} or another text` : undefined;
}

/** The fields for a person: `name (string), size (small or large, optional)`. */
export function fieldsText(schema: JsonSchema): string {
  return fieldsOf(schema)
    .map(({ name, type, isRequired, choices, schema: field }) => {
      const kind = choices === undefined ? (examplesOf(field) ?? type) : choices.join(" or ");
      return `${name} (${type === "array" ? "a list of " : ""}${kind}${isRequired ? "" : ", optional"})`;
    })
    .join(", ");
}

/** The content of a form from a person's answer, with the defaults of the form; a text says what is wrong with it. */
export function contentOf(schema: JsonSchema, given: unknown): Readonly<Record<string, FieldValue>> | string {
  if (typeof given !== "object" || given === null || Array.isArray(given))
    return "the answer is no object with the fields";
  const fields = fieldsOf(schema);
  const unknown = Object.keys(given).find((name) => !fields.some((field) => field.name === name));
  if (unknown !== undefined) return `there is no field ${unknown}`;
  const content: [string, FieldValue][] = [];
  for (const field of fields) {
    const { name, isRequired } = field;
    const value = (given as Record<string, unknown>)[name] ?? field.schema["default"];
    if (value === undefined || value === null) {
      if (isRequired) return `the field ${name} is missing`;
      continue;
    }
    const problem = problemOf(field, value);
    if (problem !== undefined) return `the field ${name} ${problem}`;
    content.push([name, value as FieldValue]);
  }
  return Object.fromEntries(content);
}

function problemOf({ type, choices, schema }: Field, value: unknown): string | undefined {
  const bound = (name: string, otherwise: number): number =>
    typeof schema[name] === "number" ? schema[name] : otherwise;
  switch (type) {
    case "boolean":
      return typeof value === "boolean" ? undefined : "needs true or false";
    case "number":
    case "integer": {
      if (typeof value !== "number" || (type === "integer" && !Number.isInteger(value)))
        return `needs a ${type}`;
      const isWithin = value >= bound("minimum", -Infinity) && value <= bound("maximum", Infinity);
      return isWithin ? undefined : "is not within its bounds";
    }
    case "array": {
      if (!Array.isArray(value) || !value.every((one) => choices?.includes(String(one)) ?? true))
        return `needs a list of ${choices?.join(", ") ?? "texts"}`;
      const isWithin = value.length >= bound("minItems", 0) && value.length <= bound("maxItems", Infinity);
      return isWithin ? undefined : "has too few or too many members";
    }
    default: {
      if (typeof value !== "string") return "needs a text";
      if (choices !== undefined && !choices.includes(value)) return `needs one of ${choices.join(", ")}`;
      const isWithin = value.length >= bound("minLength", 0) && value.length <= bound("maxLength", Infinity);
      return isWithin ? undefined : "is too short or too long";
    }
  }
}
