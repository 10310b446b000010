// A message with every field set, each to something its constraints allow: what the contract's tests send and
// answer.

import { create, ScalarType, type DescField, type DescMessage, type Message } from "@bufbuild/protobuf";
import type { FieldRules } from "@holdfast/proto";
import { factsOf } from "../fields.ts";

/** Messages inside of messages end here; only an error is inside of itself. */
const DEPTH_MAX = 3;

export const SAMPLE_JSON = '{ "a": [1, 2.50, "\\u0000\\ud83d"],\n"b":1e2 }';

export function sampleOf(desc: DescMessage, depth = 0): Message {
  const message = create(desc);
  for (const field of desc.fields) {
    if (field.oneof !== undefined) {
      const [first] = field.oneof.fields;
      const value = field === first ? { case: field.localName, value: valueFor(field, depth) } : undefined;
      if (value !== undefined) Object.assign(message, { [field.oneof.localName]: value });
    } else if (field.message === undefined || depth < DEPTH_MAX) {
      Object.assign(message, { [field.localName]: valueFor(field, depth) });
    }
  }
  return message;
}

function valueFor(field: DescField, depth: number): unknown {
  const rules = factsOf(field).rules;
  switch (field.fieldKind) {
    case "list":
      if (field.listKind === "message") return [sampleOf(field.message, depth + 1)];
      return [factsOf(field).isJson ? Buffer.from(SAMPLE_JSON) : scalarFor(ScalarType.STRING, undefined)];
    case "map":
      return { a: "x" };
    case "message":
      return sampleOf(field.message, depth + 1);
    case "scalar":
      return factsOf(field).isJson ? Buffer.from(SAMPLE_JSON) : scalarFor(field.scalar, rules);
    default:
      throw new Error(`no sample for ${field.name}`);
  }
}

/** Short, or as long as a hash. */
const TEXTS = ["a1", "a".repeat(64)];

function textFor(rules: { readonly in: readonly string[]; readonly pattern: string } | undefined): string {
  const matching = TEXTS.find((text) => rules === undefined || new RegExp(rules.pattern, "u").test(text));
  return rules?.in[0] ?? matching ?? "a1";
}

function scalarFor(type: ScalarType, rules: FieldRules | undefined): unknown {
  const number = rules?.type.case === "int32" || rules?.type.case === "int64" ? rules.type.value : undefined;
  const least = number?.greaterThan.case === "gte" ? Number(number.greaterThan.value) : 1;
  switch (type) {
    case ScalarType.STRING:
      return textFor(rules?.type.case === "string" ? rules.type.value : undefined);
    case ScalarType.BOOL:
      return true;
    case ScalarType.INT32:
      return Math.max(1, least);
    default:
      return BigInt(Math.max(1, least));
  }
}
