// `readBody` and `readTexts` read messages from the JSON, paths and queries of REST.
//
// The form is protobuf's JSON with four differences. Integers of 64 bits are numbers, and `null` is refused
// outside a user's JSON. A user's JSON is a nested value, and unknown fields are refused.
//
//   - The answer lists all mistakes, each with its place. A wrong field is left out of the message.
//   - A user's JSON is kept byte for byte.
//   json-read-3. `JSON.parse` returns the last value of a repeated key. Only the place of the last one is
//       read with it.

import { create, ScalarType, type DescField, type DescMessage, type Message } from "@bufbuild/protobuf";
import { didYouMean, jsonSyntaxProblem, type Span } from "@holdfast/core";
import { escapePointer } from "./constraints.ts";
import { factsOf } from "./fields.ts";
import { elementsOf, membersOf, trimmed } from "./json-spans.ts";
import { ERRORS_MAX, Refusal, type FieldError } from "../call/refusal.ts";

type Target = Record<string, unknown>;

interface Reading {
  readonly text: string;
  readonly errors: FieldError[];
}

/**
 * Reads a body into a message and reports its mistakes, under the pointer `at`. Fields in `elsewhere` are
 * bound by the path and must not be in the body.
 *
 * @throws Refusal `malformed_json`.
 */
export function readBody(
  desc: DescMessage,
  message: Message,
  body: Uint8Array,
  errors: FieldError[],
  { at = "", elsewhere = [] }: { readonly at?: string; readonly elsewhere?: readonly string[] } = {},
): void {
  const { text, value } = parseBody(body);
  readInto(desc, message, value, trimmed(text), { text, errors }, at, elsewhere);
}

/** Reads fields from the texts of a path or a query. */
export function readTexts(
  desc: DescMessage,
  message: Message,
  texts: Iterable<readonly [name: string, value: string]>,
  elsewhere: readonly string[] = [],
): readonly FieldError[] {
  const errors: FieldError[] = [];
  const target = message as unknown as Target;
  const seen = new Set<DescField>();
  for (const [name, text] of texts) {
    const pointer = `/${escapePointer(name)}`;
    const field = findField(desc, name, pointer, errors, elsewhere);
    if (field === undefined) continue;
    if (field.fieldKind === "list" && field.listKind === "scalar") {
      const item = scalarOfText(field.scalar, text, pointer, errors);
      if (item !== undefined) (target[field.localName] as unknown[]).push(item);
    } else if (field.fieldKind !== "scalar" || factsOf(field).isJson) {
      errors.push({ pointer, code: "unknown_property", message: "is allowed only in a body" });
    } else if (seen.has(field)) {
      errors.push({ pointer, code: "duplicate", message: "is given twice" });
    } else {
      const value = scalarOfText(field.scalar, text, pointer, errors);
      if (value !== undefined) target[field.localName] = value;
    }
    seen.add(field);
  }
  return errors;
}

/** @throws Refusal `malformed_json`, with the place of the mistake and nothing else of the body. */
export function parseBody(
  body: Uint8Array,
  decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }),
): { text: string; value: unknown } {
  const got = body.length === 0 ? "an empty body" : `${body.length} bytes`;
  const refused = (problem: string): Refusal =>
    new Refusal("malformed_json", `the body is not JSON in UTF-8: ${problem}`, {
      got,
      expected: "one JSON object",
    });
  let text: string;
  try {
    text = decoder.decode(body);
  } catch {
    throw refused("its bytes are not UTF-8");
  }
  try {
    return { text, value: JSON.parse(text) };
  } catch {
    throw refused(jsonSyntaxProblem(text) ?? "it is not JSON");
  }
}

function readInto(
  desc: DescMessage,
  message: Message,
  value: unknown,
  span: Span,
  reading: Reading,
  at: string,
  elsewhere: readonly string[] = [],
): void {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    reading.errors.push(wrongType(at, "an object", value));
    return;
  }
  const target = message as unknown as Target;
  const members = membersOf(reading.text, span);
  const last = new Map(members); // json-read-3.
  for (const [key, member] of members) {
    const pointer = `${at}/${escapePointer(key)}`;
    if (last.get(key) !== member) {
      reading.errors.push({ pointer, code: "duplicate", message: "is given twice" });
      continue;
    }
    const field = findField(desc, key, pointer, reading.errors, elsewhere);
    if (field === undefined) continue;
    const read = readField(field, (value as Target)[key], member, reading, pointer);
    if (read === undefined) continue;
    if (field.oneof === undefined) target[field.localName] = read;
    else target[field.oneof.localName] = { case: field.localName, value: read };
  }
}

/** The field of this name. The error for an unknown name suggests a similar one. */
function findField(
  desc: DescMessage,
  name: string,
  pointer: string,
  errors: FieldError[],
  elsewhere: readonly string[],
): DescField | undefined {
  const field = desc.fields.find(({ jsonName }) => jsonName === name);
  if (field !== undefined && !elsewhere.includes(field.name)) return field;
  const names = desc.fields.filter((one) => !elsewhere.includes(one.name)).map(({ jsonName }) => jsonName);
  const isReported = errors.length < ERRORS_MAX; // An unreported mistake needs no suggestion.
  const hint = field === undefined ? (isReported ? didYouMean(name, names) : "") : ": it is part of the path";
  errors.push({ pointer, code: "unknown_property", message: `is not known${hint}` });
  return undefined;
}

function readField(field: DescField, value: unknown, span: Span, reading: Reading, at: string): unknown {
  switch (field.fieldKind) {
    case "list": {
      if (!Array.isArray(value)) return wrong(reading, at, "a list", value);
      const spans = elementsOf(reading.text, span);
      const items = spans.map((item, index) => {
        const pointer = `${at}/${index}`;
        if (field.listKind === "message")
          return readMessage(field.message, value[index], item, reading, pointer);
        return factsOf(field).isJson
          ? bytesAt(item, reading)
          : readScalar(
              field.listKind === "scalar" ? field.scalar : undefined,
              value[index],
              reading,
              pointer,
            );
      });
      return items.filter((item) => item !== undefined);
    }
    case "map":
      return readMap(value, span, reading, at);
    case "message":
      return readMessage(field.message, value, span, reading, at);
    case "scalar":
      return factsOf(field).isJson ? bytesAt(span, reading) : readScalar(field.scalar, value, reading, at);
    default:
      return undefined;
  }
}

function readMessage(
  desc: DescMessage,
  value: unknown,
  span: Span,
  reading: Reading,
  at: string,
): Message | undefined {
  const message = create(desc);
  const before = reading.errors.length;
  readInto(desc, message, value, span, reading, at);
  const isWrongItself = reading.errors.length > before && reading.errors[before]?.pointer === at;
  return isWrongItself ? undefined : message;
}

function readMap(
  value: unknown,
  span: Span,
  reading: Reading,
  at: string,
): Record<string, string> | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return wrong(reading, at, "an object of strings", value);
  const map: Record<string, string> = {};
  for (const [key] of membersOf(reading.text, span)) {
    const pointer = `${at}/${escapePointer(key)}`;
    const item = (value as Target)[key];
    if (Object.hasOwn(map, key))
      reading.errors.push({ pointer, code: "duplicate", message: "is given twice" });
    else if (typeof item === "string" && key !== "__proto__") map[key] = item;
    else wrong(reading, pointer, "a string", item);
  }
  return map;
}

function readScalar(type: ScalarType | undefined, value: unknown, reading: Reading, at: string): unknown {
  switch (type) {
    case ScalarType.STRING:
      return typeof value === "string" ? value : wrong(reading, at, "a string", value);
    case ScalarType.BOOL:
      return typeof value === "boolean" ? value : wrong(reading, at, "true or false", value);
    case ScalarType.INT32:
      return isInteger(value, 2 ** 31 - 1) ? value : wrong(reading, at, "an integer below 2^31", value);
    case ScalarType.INT64:
      if (isInteger(value, Number.MAX_SAFE_INTEGER)) return BigInt(value);
      // The original number is lost: it was rounded when it was parsed.
      if (typeof value === "number" && Number.isInteger(value)) reading.errors.push(notSafe(at));
      else wrong(reading, at, "an integer", value);
      return undefined;
    default:
      throw new Error(`REST does not know the type of ${at}`);
  }
}

function scalarOfText(type: ScalarType, text: string, at: string, errors: FieldError[]): unknown {
  const reading = { text, errors };
  if (type === ScalarType.STRING) return text;
  if (type === ScalarType.BOOL)
    return readScalar(type, { true: true, false: false }[text] ?? text, reading, at);
  return readScalar(type, /^-?\d{1,30}$/.test(text) ? Number(text) : text, reading, at);
}

function notSafe(pointer: string): FieldError {
  return {
    pointer,
    code: "not_safe_integer",
    message: "is too large; integers go from -(2^53 - 1) to 2^53 - 1",
  };
}

function isInteger(value: unknown, max: number): value is number {
  return typeof value === "number" && Number.isInteger(value) && Math.abs(value) <= max;
}

const ENCODER = new TextEncoder();

function bytesAt({ start, end }: Span, { text }: Reading): Uint8Array {
  return ENCODER.encode(text.slice(start, end));
}

function wrong(reading: Reading, at: string, expected: string, value: unknown): undefined {
  reading.errors.push(wrongType(at, expected, value));
}

function wrongType(pointer: string, expected: string, value: unknown): FieldError {
  return { pointer, code: "wrong_type", message: `is ${nameOf(value)}; ${expected} is expected` };
}

function nameOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "an object";
  // The text is not shown, because it may be a secret in the wrong field.
  if (typeof value === "string") return "a string";
  return typeof value === "number" && !Number.isFinite(value)
    ? "too large for a number"
    : JSON.stringify(value);
}
