// The parameters of a script as flags of a command line: `parametersOf`, the usage text, and the flags of
// given arguments. Pure.
//
//   - A nested value is one flag whose value is JSON. A switch (a boolean) has no value.
//   - The flags stand in the order of the schema, so that equal arguments make equal command lines.

import type { JsonSchema } from "@holdfast/core";
import { exampleArguments, flattened } from "./check/example-values.ts";
import type { Schema } from "./check/schema-at.ts";

export interface Parameter {
  readonly name: string;
  readonly type: "string" | "integer" | "number" | "switch" | "json";
  readonly isRequired: boolean;
  readonly description: string;
  /** The texts that it may be, `null` for any. */
  readonly choices: readonly string[] | null;
  /** The text of its default value, `null` for none. */
  readonly standard: string | null;
  /** A right value in JSON, for a nested one. `null` where none is known. */
  readonly sample: string | null;
}

export function parametersOf(schema: JsonSchema): readonly Parameter[] {
  const required = (schema["required"] as readonly string[] | undefined) ?? [];
  const properties = (schema["properties"] ?? {}) as Readonly<Record<string, Schema>>;
  return Object.entries(properties).map(([name, property]) => {
    const own = flattened(schema, property);
    const { description, default: standard } = own;
    const choices = choicesOf(own);
    const type = typeOf(own, choices);
    const sample = type === "json" ? exampleArguments(schema).values[name] : undefined;
    return {
      name,
      type,
      isRequired: required.includes(name),
      description: typeof description === "string" ? description.replaceAll(/\s+/g, " ").trim() : "",
      choices: type === "json" ? null : (choices?.map(textOf) ?? null),
      standard: standard === undefined ? null : textOf(standard),
      sample: sample === undefined ? null : JSON.stringify(sample),
    };
  });
}

function typeOf({ type }: JsonSchema, choices: readonly unknown[] | null): Parameter["type"] {
  switch (type) {
    case "string":
    case "integer":
    case "number":
      return type;
    case "boolean":
      return "switch";
    case undefined:
      return choices?.every((choice) => typeof choice === "string") === true ? "string" : "json";
    default:
      return "json";
  }
}

function choicesOf(schema: JsonSchema): readonly unknown[] | null {
  if (Object.hasOwn(schema, "const")) return [schema["const"]];
  return Array.isArray(schema["enum"]) ? (schema["enum"] as readonly unknown[]) : null;
}

/**
 * The words of a call. A value that begins with a dash stands behind `=`, because parsers of options take it
 * for an option in a word of its own.
 */
export function flagsOf(
  parameters: readonly Parameter[],
  given: Readonly<Record<string, unknown>>,
): readonly string[] {
  return parameters.flatMap(({ name, type }) => {
    const value = Object.hasOwn(given, name) ? given[name] : undefined;
    if (value === undefined) return [];
    if (type === "switch") return value === true ? [`--${name}`] : [];
    const text = type === "json" ? JSON.stringify(value) : textOf(value);
    return text.startsWith("-") ? [`--${name}=${text}`] : [`--${name}`, text];
  });
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** The usage of a script as people and models read it. */
export function usageOf(name: string, parameters: readonly Parameter[]): string {
  const words = parameters.map((parameter) => {
    const word = flagText(parameter);
    return parameter.isRequired ? word : `[${word}]`;
  });
  const lines = parameters.map((parameter) => {
    const { isRequired, type, description, standard, sample } = parameter;
    const notes = [
      isRequired ? "required" : "optional",
      ...(standard === null ? [] : [`default ${standard}`]),
      ...(type === "json" ? [sample === null ? "JSON" : `JSON such as ${wordOf(sample)}`] : []),
    ];
    return `  ${flagText(parameter)}  (${notes.join(", ")})${description === "" ? "" : ` ${description}`}`;
  });
  return [`usage: ${[name, ...words].join(" ")}`, ...lines].join("\n");
}

function flagText({ name, type, choices }: Parameter): string {
  if (type === "switch") return `--${name}`;
  if (choices !== null) return `--${name} <${choices.join("|")}>`;
  const kind = { string: "text", integer: "whole number", number: "number", json: "JSON" }[type];
  return `--${name} <${kind}>`;
}

/** A right call of the command, for a message about a wrong one. `undefined` where none is known. */
export function exampleCall(name: string, schema: JsonSchema): string | undefined {
  const { call } = exampleArguments(schema);
  return call === undefined
    ? undefined
    : [name, ...flagsOf(parametersOf(schema), call)].map(wordOf).join(" ");
}

/** A text as one word of a shell. */
function wordOf(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : quoteForShell(text);
}

/** A text in single quotes, as a shell reads it. */
export function quoteForShell(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
