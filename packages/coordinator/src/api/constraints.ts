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
import { factsOf, valueOf } from "./fields.ts";
import type { FieldError } from "../call/refusal.ts";

/** Every constraint that the message violates; `below` is the pointer of the message. */
export function findViolations(desc: DescMessage, message: Message, below = ""): readonly FieldError[] {
  return desc.fields.flatMap((field) => {
    const pointer = `${below}/${field.jsonName}`;
    const { rules, isRequired } = factsOf(field);
    if (!isPresent(field, message)) {
      if (isRequired) return [{ pointer, code: "required", message: "is required" }];
      // A number that is not `optional` is 0 when it is absent.
      return isPlainNumber(field) ? inScalar(valueOf(field, message), rules, pointer) : [];
    }
    return inField(field, valueOf(field, message), rules, pointer);
  });
}

function isPlainNumber(field: DescField): boolean {
  const { rules } = factsOf(field);
  const isNumber = rules?.type.case === "int32" || rules?.type.case === "int64";
  return isNumber && field.fieldKind === "scalar" && !field.proto.proto3Optional;
}

/**
 * An `optional` field is present when it was given; any other field when it is not empty. Empty JSON is
 * absent.
 */
function isPresent(field: DescField, message: Message): boolean {
  if (!isFieldSet(message, field)) return false;
  return (
    !factsOf(field).isJson || field.fieldKind === "list" || (valueOf(field, message) as Uint8Array).length > 0
  );
}

function inField(
  field: DescField,
  value: unknown,
  rules: FieldRules | undefined,
  at: string,
): readonly FieldError[] {
  switch (field.fieldKind) {
    case "list": {
      const items = value as readonly unknown[];
      const { maxItems = 0n, items: itemRules } = rules?.type.case === "repeated" ? rules.type.value : {};
      if (maxItems > 0n && items.length > maxItems)
        return [
          { pointer: at, code: "too_many", message: `has ${items.length} items; the limit is ${maxItems}` },
        ];
      return items.flatMap((item, index) => inItem(field, item, itemRules, `${at}/${index}`));
    }
    case "map": {
      const pairs = Object.entries(value as Readonly<Record<string, unknown>>);
      const { maxPairs = 0n, keys, values } = rules?.type.case === "map" ? rules.type.value : {};
      if (maxPairs > 0n && pairs.length > maxPairs)
        return [
          {
            pointer: at,
            code: "too_many",
            message: `has ${pairs.length} entries; the limit is ${maxPairs}`,
          },
        ];
      return pairs.flatMap(([key, item]) => {
        const pointer = `${at}/${escapePointer(key)}`;
        return [...inScalar(key, keys, pointer), ...inScalar(item, values, pointer)];
      });
    }
    case "message":
      return findViolations(field.message, value as Message, at);
    default:
      return factsOf(field).isJson ? inJson(value as Uint8Array, at) : inScalar(value, rules, at);
  }
}

function inItem(
  field: DescField & { fieldKind: "list" },
  item: unknown,
  rules: FieldRules | undefined,
  at: string,
) {
  if (field.listKind === "message") return findViolations(field.message, item as Message, at);
  return factsOf(field).isJson ? inJson(item as Uint8Array, at) : inScalar(item, rules, at);
}

function inScalar(value: unknown, rules: FieldRules | undefined, pointer: string): readonly FieldError[] {
  const violation = (code: string, message: string): FieldError[] => [{ pointer, code, message }];
  if (typeof value === "bigint" && (value > Number.MAX_SAFE_INTEGER || value < Number.MIN_SAFE_INTEGER))
    return violation("not_safe_integer", `is ${value}; integers go from -(2^53 - 1) to 2^53 - 1`);
  if (typeof value === "string" && isUnkept(value))
    return violation("not_text", "has a NUL or half of a surrogate pair, which storage cannot keep");
  switch (rules?.type.case) {
    case "string": {
      const text = value as string;
      const { in: allowed, pattern, maxLen } = rules.type.value;
      if (allowed.length > 0 && !allowed.includes(text))
        return violation("not_allowed", `is ${shown(text)}; allowed are ${allowed.join(", ")}`);
      if (maxLen > 0n && text.length > maxLen)
        return violation("too_long", `has ${text.length} characters; the limit is ${maxLen}`);
      if (pattern !== "" && !matcherOf(pattern).test(text))
        return violation("pattern", `is ${shown(text)}; it must match ${pattern}`);
      return [];
    }
    case "int32":
    case "int64": {
      const number = value as number | bigint;
      const { greaterThan, lessThan } = rules.type.value;
      if (greaterThan.case === "gte" && number < greaterThan.value)
        return violation("too_small", `is ${number}; at least ${greaterThan.value} is expected`);
      if (lessThan.case === "lte" && number > lessThan.value)
        return violation("too_large", `is ${number}; at most ${lessThan.value} is expected`);
      return [];
    }
    default:
      return [];
  }
}

/** Names and ids go into columns and headers unchanged. A user's JSON escapes both of these. */
function isUnkept(text: string): boolean {
  return text.includes("\0") || !text.isWellFormed();
}

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function inJson(bytes: Uint8Array, pointer: string): readonly FieldError[] {
  let text: string | undefined;
  try {
    text = UTF8.decode(bytes);
    JSON.parse(text);
  } catch {
    const problem = text === undefined ? "its bytes are not UTF-8" : jsonSyntaxProblem(text);
    return [{ pointer, code: "not_json", message: `is not JSON in UTF-8: ${problem}` }];
  }
  const problem = findPayloadProblem(text, { start: 0, end: text.length });
  return problem === undefined ? [] : [{ pointer, ...problem }];
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
