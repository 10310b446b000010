// Whether a message keeps the constraints of the contract, whatever protocol it came by.
//
// These are protovalidate's options, and this reads the few kinds that the contract uses. Its own evaluator brings an interpreter of
// CEL and one of RE2 (2.2 MB, three packages), and none of ours is an expression; `constraints.test.ts` refuses a kind not read here.
//
//   constraints-1. Everything that is wrong is told, not only the first.
//   constraints-2. No integer is above 2^53: whoever reads JSON would get another one.
//   constraints-3. What is marked as a user's JSON is JSON, at most so deep, and no number in it would change by being read.

import { isFieldSet, type DescField, type DescMessage, type Message } from "@bufbuild/protobuf";
import type { FieldRules } from "@holdfast/proto";
import { findPayloadProblem, jsonSyntaxProblem } from "@holdfast/core/internal";
import { factsOf, valueOf } from "./fields.ts";
import type { FieldError } from "../call/refusal.ts";

/** Every constraint the message does not keep; `below` is the pointer it stands under. */
export function findViolations(desc: DescMessage, message: Message, below = ""): readonly FieldError[] {
  return desc.fields.flatMap((field) => {
    const pointer = `${below}/${field.jsonName}`;
    const { rules, isRequired } = factsOf(field);
    if (!isPresent(field, message)) {
      if (isRequired) return [{ pointer, code: "required", message: "is required" }];
      // A number that is not `optional` is 0 where nobody gives it.
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

/** An `optional` field is there when it was given; another one when it is not empty. Empty JSON is none. */
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

/** Names and ids, unlike a user's JSON, which escapes both, go into columns and headers as they are. */
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

/** The patterns are the contract's own, so there are only so many. */
function matcherOf(pattern: string): RegExp {
  const matcher = MATCHERS.get(pattern) ?? new RegExp(pattern, "u");
  MATCHERS.set(pattern, matcher);
  return matcher;
}

/** A text of a caller inside of ours: quoted, and no longer than a line. */
function shown(text: string): string {
  return JSON.stringify(text.length <= 60 ? text : `${text.slice(0, 60)}…`);
}

/** A caller's key as a part of a pointer, and no longer than a line: an answer is not many times as large as its request. */
export function escapePointer(key: string): string {
  const shownKey = key.length <= KEY_CHARS ? key : `${key.slice(0, KEY_CHARS)}…`;
  return shownKey.replaceAll("~", "~0").replaceAll("/", "~1");
}

const KEY_CHARS = 200;
