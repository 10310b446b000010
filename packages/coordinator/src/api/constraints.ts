// `findViolations` checks whether a message of any protocol keeps the constraints of the contract.
//
// The constraints are protovalidate's options, and this file reads the few kinds that the contract uses.
// Protovalidate's evaluator needs interpreters of CEL and RE2 (2.2 MB, three packages), but no constraint
// here is an expression. `constraints.test.ts` refuses other kinds.
//
//   - The answer lists all violations, not only the first.
//   - No integer is above 2^53, because readers of JSON would get another number.
//   - A field marked as a user's JSON is valid JSON of limited depth, and no number in it would change when
//     read.

import { isFieldSet, type DescField, type DescMessage, type Message } from "@bufbuild/protobuf";
import type { FieldRules } from "@holdfast/proto";
import { findPayloadProblem, jsonSyntaxProblem } from "@holdfast/core";
import { factsOf, valueOf, type FieldFacts } from "./fields.ts";
import type { FieldError } from "../call/refusal.ts";

/** Every constraint that the message violates; `below` is the pointer of the message. */
export function findViolations(desc: DescMessage, message: Message, below = ""): readonly FieldError[] {
  const found: FieldError[] = [];
  inMessage(desc, message, below, found);
  return found;
}

/** Adds the violations to the list, as the other functions here do: most messages have none. */
function inMessage(desc: DescMessage, message: Message, below: string, found: FieldError[]): void {
  for (const field of desc.fields) {
    const facts = factsOf(field);
    if (isPresent(field, facts, message)) {
      inField(field, facts, valueOf(field, message), `${below}/${field.jsonName}`, found);
    } else if (facts.isRequired) {
      found.push({ pointer: `${below}/${field.jsonName}`, code: "required", message: "is required" });
    } else if (facts.isPlainNumber) {
      inScalar(valueOf(field, message), facts.rules, `${below}/${field.jsonName}`, found);
    }
  }
}

/**
 * An `optional` field is present when it was given; any other field when it is not empty. Empty JSON is
 * absent.
 */
function isPresent(field: DescField, { isJson }: FieldFacts, message: Message): boolean {
  if (!isFieldSet(message, field)) return false;
  return !isJson || field.fieldKind === "list" || (valueOf(field, message) as Uint8Array).length > 0;
}

function inField(
  field: DescField,
  { rules, isJson }: FieldFacts,
  value: unknown,
  at: string,
  found: FieldError[],
): void {
  switch (field.fieldKind) {
    case "list": {
      const items = value as readonly unknown[];
      const { maxItems = 0n, items: itemRules } = rules?.type.case === "repeated" ? rules.type.value : {};
      if (maxItems > 0n && items.length > maxItems) {
        found.push({
          pointer: at,
          code: "too_many",
          message: `has ${items.length} items; the limit is ${maxItems}`,
        });
        return;
      }
      for (const [index, item] of items.entries()) {
        const pointer = `${at}/${index}`;
        if (field.listKind === "message") inMessage(field.message, item as Message, pointer, found);
        else if (isJson) inJson(item as Uint8Array, pointer, found);
        else inScalar(item, itemRules, pointer, found);
      }
      return;
    }
    case "map": {
      const pairs = Object.entries(value as Readonly<Record<string, unknown>>);
      const { maxPairs = 0n, keys, values } = rules?.type.case === "map" ? rules.type.value : {};
      if (maxPairs > 0n && pairs.length > maxPairs) {
        found.push({
          pointer: at,
          code: "too_many",
          message: `has ${pairs.length} entries; the limit is ${maxPairs}`,
        });
        return;
      }
      for (const [key, item] of pairs) {
        const pointer = `${at}/${escapePointer(key)}`;
        inScalar(key, keys, pointer, found);
        inScalar(item, values, pointer, found);
      }
      return;
    }
    case "message":
      inMessage(field.message, value as Message, at, found);
      return;
    default:
      if (isJson) inJson(value as Uint8Array, at, found);
      else inScalar(value, rules, at, found);
  }
}

function inScalar(value: unknown, rules: FieldRules | undefined, pointer: string, found: FieldError[]): void {
  const problem = scalarProblem(value, rules);
  if (problem !== undefined) found.push({ pointer, ...problem });
}

type Problem = Omit<FieldError, "pointer">;

function scalarProblem(value: unknown, rules: FieldRules | undefined): Problem | undefined {
  if (typeof value === "bigint" && (value > Number.MAX_SAFE_INTEGER || value < Number.MIN_SAFE_INTEGER))
    return {
      code: "not_safe_integer",
      message: `is ${value}; integers go from -(2^53 - 1) to 2^53 - 1`,
    };
  if (typeof value === "string" && isUnkept(value))
    return {
      code: "not_text",
      message: "has a NUL or half of a surrogate pair, which storage cannot keep",
    };
  switch (rules?.type.case) {
    case "string": {
      const text = value as string;
      const { in: allowed, pattern, maxLen } = rules.type.value;
      if (allowed.length > 0 && !allowed.includes(text))
        return { code: "not_allowed", message: `is ${shown(text)}; allowed are ${allowed.join(", ")}` };
      if (maxLen > 0n && text.length > maxLen)
        return { code: "too_long", message: `has ${text.length} characters; the limit is ${maxLen}` };
      if (pattern !== "" && !matcherOf(pattern).test(text))
        return { code: "pattern", message: `is ${shown(text)}; it must match ${pattern}` };
      return undefined;
    }
    case "int32":
    case "int64": {
      const number = value as number | bigint;
      const { greaterThan, lessThan } = rules.type.value;
      if (greaterThan.case === "gte" && number < greaterThan.value)
        return { code: "too_small", message: `is ${number}; at least ${greaterThan.value} is expected` };
      if (lessThan.case === "lte" && number > lessThan.value)
        return { code: "too_large", message: `is ${number}; at most ${lessThan.value} is expected` };
      return undefined;
    }
    default:
      return undefined;
  }
}

/** Names and ids go into columns and headers unchanged. A user's JSON escapes both of these. */
function isUnkept(text: string): boolean {
  return text.includes("\0") || !text.isWellFormed();
}

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function inJson(bytes: Uint8Array, pointer: string, found: FieldError[]): void {
  let text: string | undefined;
  try {
    text = UTF8.decode(bytes);
    JSON.parse(text);
  } catch {
    const wrong = text === undefined ? "its bytes are not UTF-8" : jsonSyntaxProblem(text);
    found.push({ pointer, code: "not_json", message: `is not JSON in UTF-8: ${wrong}` });
    return;
  }
  const problem = findPayloadProblem(text, { start: 0, end: text.length });
  if (problem !== undefined) found.push({ pointer, ...problem });
}

const MATCHERS = new Map<string, RegExp>();

/** The patterns come from the contract, so their number is limited. */
function matcherOf(pattern: string): RegExp {
  const matcher = MATCHERS.get(pattern) ?? new RegExp(pattern, "u");
  MATCHERS.set(pattern, matcher);
  return matcher;
}

/** A caller's text in a message: quoted, and at most a line long. */
function shown(text: string): string {
  return JSON.stringify(text.length <= 60 ? text : `${text.slice(0, 60)}…`);
}

/**
 * A caller's key as a part of a pointer. It is at most a line long, so that an answer is not many times as
 * large as its request.
 */
export function escapePointer(key: string): string {
  const shownKey = key.length <= KEY_CHARS ? key : `${key.slice(0, KEY_CHARS)}…`;
  return shownKey.replaceAll("~", "~0").replaceAll("/", "~1");
}

const KEY_CHARS = 200;
