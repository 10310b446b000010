// The parameters of a script as flags of a command line: `parametersOf`, the usage text, and the flags of
// given arguments. Pure.
//
//   - A nested value is one flag whose value is JSON. A switch (a boolean) has no value.
//   - The flags stand in the order of the schema, so that equal arguments make equal command lines.

import type { JsonSchema } from "../record/agent-record.ts";

export interface Parameter {
  readonly name: string;
  readonly type: "string" | "integer" | "number" | "switch" | "json";
  readonly isRequired: boolean;
  readonly description: string;
  /** The texts that it may be, `null` for any. */
  readonly choices: readonly string[] | null;
  /** The text of its default value, `null` for none. */
  readonly standard: string | null;
}

type PropertySchema = JsonSchema | boolean;

export function parametersOf(schema: JsonSchema): readonly Parameter[] {
  const required = (schema["required"] as readonly string[] | undefined) ?? [];
  const properties = (schema["properties"] ?? {}) as Readonly<Record<string, PropertySchema>>;
  return Object.entries(properties).map(([name, property]) => {
    const own = typeof property === "boolean" ? {} : property;
    const { description, default: standard } = own;
    return {
      name,
      type: typeOf(own),
      isRequired: required.includes(name),
      description: typeof description === "string" ? description.replaceAll(/\s+/g, " ").trim() : "",
      choices: choicesOf(own),
      standard: standard === undefined ? null : textOf(standard),
    };
  });
}

function typeOf({ type, enum: choices }: JsonSchema): Parameter["type"] {
  switch (type) {
    case "string":
    case "integer":
    case "number":
      return type;
    case "boolean":
      return "switch";
    case undefined:
      return Array.isArray(choices) && choices.every((choice) => typeof choice === "string")
        ? "string"
        : "json";
    default:
      return "json";
  }
}

function choicesOf({ enum: choices }: JsonSchema): readonly string[] | null {
  return Array.isArray(choices) && choices.every((choice) => typeof choice === "string") ? choices : null;
}

export function flagsOf(
  parameters: readonly Parameter[],
  given: Readonly<Record<string, unknown>>,
): readonly string[] {
  return parameters.flatMap(({ name, type }) => {
    const value = Object.hasOwn(given, name) ? given[name] : undefined;
    if (value === undefined) return [];
    if (type === "switch") return value === true ? [`--${name}`] : [];
    return [`--${name}`, type === "json" ? JSON.stringify(value) : textOf(value)];
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
    const { isRequired, description, standard } = parameter;
    const notes = [
      isRequired ? "required" : "optional",
      ...(standard === null ? [] : [`default ${standard}`]),
      ...(parameter.type === "json" ? ["JSON"] : []),
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

/** A right call, for a message about a wrong one. */
export function exampleCall(name: string, parameters: readonly Parameter[]): string {
  const words = parameters
    .filter(({ isRequired }) => isRequired)
    .flatMap(({ name: flag, type, choices, standard }) => {
      if (type === "switch") return [`--${flag}`];
      const value =
        choices?.[0] ?? standard ?? { string: "TEXT", integer: "1", number: "1.5", json: "[]" }[type];
      return [`--${flag}`, value];
    });
  return [name, ...words].join(" ");
}
