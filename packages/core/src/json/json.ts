// `encodeJson`, `encodeWithin`, `decodeJson`: JSON as it is recorded.
//
//   json-1. The record is the text. Agents only see values that were decoded from it, also in the process
//       that made it.
//   json-2. A value that JSON would silently change is refused with its place: NaN, Map, function, cycle,
//       Error, `undefined` in a list. A Date is refused as well, because it would come back as text. An
//       instance whose class has methods or getters would come back without them. Two conversions of JSON
//       itself are kept: `toJSON()` of other objects is called, and properties that are `undefined` are left
//       out. Besides, -0 becomes 0, also in the process that made it (json-1). Leaky: an object is read
//       twice, to be checked and to be written. The values of getters and proxies may change in between.
//   - The work of a task is done when its output is recorded, so a refusal would lose it. JSON has the time of
//       a Date and the own properties of an instance, so both are recorded there, with a warning.
//   - NUL and lone surrogates are kept as given: JSON escapes them, so no storage sees them raw.

import { LimitError, toError, UsageError } from "../errors/errors.ts";
import { FORMAT_LIMITS } from "../limits.ts";

/** A value that JSON keeps as it is. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** Text made by `encodeJson`: well-formed JSON without line breaks. */
export type JsonText = string;

/**
 * A value as recorded text; `undefined` stays `undefined` (a task without an output).
 *
 * @param what names the value in the error, for example `output of task "read-file"`.
 * @param onChanged for the output of a task; called with what is changed about it.
 * @throws UsageError `not_json` with the JSON pointer of the value that cannot be kept.
 */
export function encodeJson(
  value: unknown,
  what: string,
  onChanged?: (changed: string) => void,
): JsonText | undefined {
  if (value === undefined) return undefined;
  let found = findProblem(value, "", 0, []);
  if (found?.isKept === true && onChanged !== undefined) {
    const changed = `${found.reason}${placeOf(found)}: ${found.fix}`;
    found = findProblem(value, "", 0, [], true);
    if (found === undefined) onChanged(changed);
  }
  if (found !== undefined) {
    const pointer = pointerOf(found);
    throw new UsageError(`${what} cannot be recorded: ${found.reason}${placeOf(found)}`, {
      code: "not_json",
      at: `${what}, at "${pointer}"`,
      got: found.got,
      expected: `JSON: null, boolean, finite number, string, list or plain object, at most ${FORMAT_LIMITS.jsonDepth} levels deep`,
      fix: found.fix,
    });
  }
  return JSON.stringify(value);
}

/**
 * The text of a value to be recorded. @throws UsageError when it has none, LimitError when it is longer than
 * `max`.
 */
export function encodeWithin(value: unknown, what: string, max: number): JsonText | undefined {
  const text = encodeJson(value, what);
  if (text === undefined || text.length <= max) return text;
  throw new LimitError(
    "payloadChars",
    `${what} is ${text.length} characters of JSON, and at most ${max} are kept`,
    {
      got: `${text.length} characters`,
      fix: "keep large content in a file and record its path, or raise the limit",
    },
  );
}

export function decodeJson(text: JsonText | undefined): unknown {
  return text === undefined ? undefined : JSON.parse(text);
}

interface Problem {
  readonly pointer: string[];
  readonly reason: string;
  readonly got: string;
  readonly fix: string;
  /** The output of a task may have it. */
  readonly isKept?: boolean;
}

function pointerOf({ pointer }: Problem): string {
  return pointer.length === 0 ? "" : `/${pointer.join("/")}`;
}

function placeOf(found: Problem): string {
  return found.pointer.length === 0 ? "" : ` (at ${pointerOf(found)})`;
}

function findProblem(
  value: unknown,
  key: string,
  depth: number,
  parents: object[],
  mayChange = false,
): Problem | undefined {
  switch (typeof value) {
    case "string":
    case "boolean":
      return undefined;
    case "number":
      if (Number.isFinite(value)) return undefined;
      return problem(`${value} is not a JSON number`, String(value), "use null, or a string");
    case "undefined":
      return problem(
        "undefined in a list would become null",
        "undefined",
        "use null, or leave the element out",
      );
    case "object":
      return value === null ? undefined : findObjectProblem(value, key, depth, parents, mayChange);
    case "bigint":
      return problem("a BigInt has no JSON form", `${value}n`, "use a string or a safe integer");
    default:
      return problem(
        `a ${typeof value} has no JSON form`,
        typeof value,
        "return data, and name code by a string",
      );
  }
}

/** @param key the key of the value in its parent, which `toJSON` receives. */
function findObjectProblem(
  value: object,
  key: string,
  depth: number,
  parents: object[],
  mayChange: boolean,
): Problem | undefined {
  if (parents.includes(value)) {
    return problem("it contains itself", "a cycle", "refer to the other object by an id instead");
  }
  if (depth >= FORMAT_LIMITS.jsonDepth) {
    return problem(
      `it is nested more than ${FORMAT_LIMITS.jsonDepth} levels deep`,
      "deeper nesting",
      "flatten it",
    );
  }
  parents.push(value);
  try {
    if (value instanceof Date) {
      const fix = "record date.toISOString() or date.getTime()";
      if (Number.isNaN(value.getTime()))
        return problem("an invalid Date would become null", "Invalid Date", fix);
      return mayChange ? undefined : kept("a Date would come back as a text", "a Date", fix);
    }
    if ("toJSON" in value && typeof value.toJSON === "function") {
      const converted: unknown = value.toJSON(key);
      if (converted === undefined)
        return problem(
          "its toJSON() gives nothing",
          "undefined",
          "return null from toJSON(), or leave it out",
        );
      return findProblem(converted, key, depth + 1, parents, mayChange);
    }
    if (Array.isArray(value)) {
      // An index loop, because `forEach` skips the holes that JSON would fill with null.
      for (let i = 0; i < value.length; i++) {
        const found = findProblem(value[i], String(i), depth + 1, parents, mayChange);
        if (found !== undefined) return under(String(i), found);
      }
      return undefined;
    }
    const exotic = exoticReason(value);
    if (exotic !== undefined && !(mayChange && exotic.isKept === true)) return exotic;
    for (const name of Object.keys(value)) {
      const member = (value as Record<string, unknown>)[name];
      if (member === undefined) continue;
      const found = findProblem(member, name, depth + 1, parents, mayChange);
      if (found !== undefined) return under(name, found);
    }
    return undefined;
  } catch (error) {
    return problem(
      "reading it threw",
      toError(error).message,
      "pass plain data instead of an object with getters",
    );
  } finally {
    parents.pop();
  }
}

function exoticReason(value: object): Problem | undefined {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null) return undefined;
  if (value instanceof Promise || typeof (value as { then?: unknown }).then === "function") {
    return problem("a promise has no JSON form", "a promise", "await it first");
  }
  if (value instanceof Error) {
    return problem("an Error would become {}", value.name, "throw it, or return its message");
  }
  const tag = Object.prototype.toString.call(value).slice(8, -1);
  if (tag === "Object") return inheritanceReason(value);
  return problem(`a ${tag} would lose its content`, tag, "convert it to a plain object or a list first");
}

/** An instance of a class without members is data: its own enumerable properties. */
function inheritanceReason(value: object): Problem | undefined {
  // The last prototype is that of plain objects, perhaps of another realm, as in a test runner.
  for (let at: object = value; ;) {
    const prototype = Object.getPrototypeOf(at) as object | null;
    if (prototype === null || Object.getPrototypeOf(prototype) === null) return undefined;
    const lost = Object.getOwnPropertyNames(prototype).find((name) => name !== "constructor");
    if (lost !== undefined) {
      const what = `an instance of ${value.constructor.name}`;
      const fix = "give plain data, such as { ...value }, or give the class a toJSON()";
      return kept(`${what} would come back without "${lost}" of its class`, what, fix);
    }
    at = prototype;
  }
}

function problem(reason: string, got: string, fix: string): Problem {
  return { pointer: [], reason, got, fix };
}

function kept(reason: string, got: string, fix: string): Problem {
  return { ...problem(reason, got, fix), isKept: true };
}

function under(key: string, found: Problem): Problem {
  found.pointer.unshift(key.replaceAll("~", "~0").replaceAll("/", "~1"));
  return found;
}
