// `recordError`, `errorFrom`: any thrown value as plain data, and as an error again.
//
//   - Recording never throws and always ends, whatever was thrown: getters that throw, proxies, cycles.
//   - Each text is redacted before it is cut, so that no part of a secret stays.
//   - An error read again is the same in the process that saw it and in the one that replays it.
//   - `code` is not a code of ours where a foreign error bears its text. That one is in `data`.

import { lineOf } from "./author-line.ts";
import { ERROR_TABLE } from "./error-table.ts";
import { isOwnError, OWN_ERROR } from "./own-error.ts";

/**
 * An error as it is recorded: plain data, bounded, the same for the process that saw it and the one that
 * replays it.
 */
export interface RecordedError {
  /** The name of its class. */
  readonly name: string;
  /** The sentence that says what happened. */
  readonly message: string;
  /** A code of ours, or a foreign text that is none of them. */
  readonly code?: string;
  /** The place that the error is about, or the place in the author's code where it was thrown. */
  readonly at?: string;
  /** The value or name that was given. */
  readonly got?: string;
  /** The values or names that are accepted. */
  readonly expected?: string;
  /** The next step that puts it right. */
  readonly fix?: string;
  /** The error that caused it. */
  readonly cause?: RecordedError;
  /** The errors of an `AggregateError`. */
  readonly errors?: readonly RecordedError[];
  /** Further properties, by which an agent decides: `status`, a numeric `code`, `issues`, `retryAfter` and others. */
  readonly data?: Readonly<Record<string, unknown>>;
}

/** The texts of an error of ours. */
export const DETAILS = ["got", "expected", "fix"] as const;

const ERROR_TEXT_MAX = 8_192;
const CAUSES_MAX = 4;
/** All `data` and `errors` of one recorded error, its causes included, in characters of JSON. */
const DATA_CHARS_MAX = 8_192;
const DATA_DEPTH_MAX = 6;
/** The first errors of an `AggregateError`. */
const ERRORS_KEPT = 10;
/** Members of one property that are looked at: a cyclic or a sparse value ends. */
const DATA_VISITS_MAX = 10_000;

/** Properties that an agent decides by. They are kept first, and also where the error has them from its class. */
const NAMED = ["status", "code", "retryAfter", "issues", "errors"] as const;
/** Properties with whole requests and answers: keys in headers, and too much of everything. */
const NEVER: ReadonlySet<string> = new Set(["request", "response", "config", "headers", "options"]);
/** Properties that are recorded in another place. */
const ELSEWHERE: ReadonlySet<string> = new Set([...NAMED, ...DETAILS, "at", "cause"]);

/**
 * Any thrown value as a recorded error. Never throws, whatever the value; long texts are cut with a mark.
 *
 * @param redact called for each text before it is cut, so that no part of a secret stays. Must not throw.
 */
export function recordError(
  thrown: unknown,
  redact: (text: string) => string = (text) => text,
): RecordedError {
  return new Recorder(redact).record(thrown, 0);
}

/** As `recordError`, with whole texts: an error on its way to another thread, where it is recorded. */
export function recordWholeError(thrown: unknown): RecordedError {
  return new Recorder((text) => text, Infinity, Infinity).record(thrown, 0);
}

class Recorder {
  readonly #redact: (text: string) => string;
  readonly #textMax: number;
  /** The room that is left for `data` and `errors`, in characters. */
  #left: number;
  /** The part of `DATA_VISITS_MAX` that is left for one property. */
  #visits = 0;

  constructor(redact: (text: string) => string, textMax = ERROR_TEXT_MAX, dataMax = DATA_CHARS_MAX) {
    this.#redact = redact;
    this.#textMax = textMax;
    this.#left = dataMax;
  }

  record(value: unknown, depth: number): RecordedError {
    try {
      if (typeof value !== "object" || value === null)
        return { name: "Error", message: this.#text(String(value)) };
      return this.#recordObject(value, depth);
    } catch {
      return { name: "Error", message: "an error that cannot be read" };
    }
  }

  #recordObject(thrown: object, depth: number): RecordedError {
    const fields = thrown as Record<string, unknown>;
    const { name, message, code, cause } = fields;
    const isOwn = isOwnError(thrown);
    const at = typeof fields["at"] === "string" ? fields["at"] : authorLine(thrown);
    const details = DETAILS.filter((field) => typeof fields[field] === "string");
    const isCode = typeof code === "string" && (isOwn || !Object.hasOwn(ERROR_TABLE, code));
    return {
      name: typeof name === "string" && name !== "" ? this.#text(name) : "Error",
      message: this.#text(typeof message === "string" ? message : shown(thrown)),
      ...(isCode ? { code: this.#text(code) } : {}),
      ...(at === undefined ? {} : { at: this.#text(at) }),
      ...Object.fromEntries(details.map((field) => [field, this.#text(fields[field] as string)])),
      ...this.#further(thrown, { isOwn, isCode, depth }),
      ...(cause !== undefined && cause !== null && depth < CAUSES_MAX
        ? { cause: this.record(cause, depth + 1) }
        : {}),
    };
  }

  #further(
    thrown: object,
    { isOwn, isCode, depth }: { readonly isOwn: boolean; readonly isCode: boolean; readonly depth: number },
  ): Pick<RecordedError, "errors" | "data"> {
    const errors = this.#errorsOf(thrown, depth);
    const kept: [string, unknown][] = [];
    const keep = (key: string, value: unknown): void => {
      this.#visits = DATA_VISITS_MAX;
      const copy = value === undefined ? undefined : this.#within(() => this.#copy(value, 0), key.length + 4);
      if (copy !== undefined) kept.push([key, copy]);
    };
    for (const key of NAMED)
      if (!(key === "code" && isCode) && !(key === "errors" && errors !== undefined))
        keep(
          key,
          readable(() => (thrown as Record<string, unknown>)[key]),
        );
    // The fields of our own errors say again what their message says.
    if (!isOwn && !Array.isArray(thrown))
      for (const [key, value] of ownData(thrown)) {
        if (this.#left <= 0) break;
        if (isScalar(value) && !ELSEWHERE.has(key) && !(key in Error.prototype) && key !== "stack")
          keep(key, value);
      }
    return {
      ...(errors === undefined ? {} : { errors }),
      ...(kept.length === 0 ? {} : { data: Object.fromEntries(kept) }),
    };
  }

  /** The errors of an `AggregateError` that fit; `undefined` when it has none. Other lists are data. */
  #errorsOf(thrown: object, depth: number): readonly RecordedError[] | undefined {
    const list = readable(() => (thrown as { readonly errors?: unknown }).errors);
    if (!Array.isArray(list) || depth >= CAUSES_MAX || !list.some((one) => one instanceof Error))
      return undefined;
    const share = Math.floor(this.#left / Math.min(list.length, ERRORS_KEPT));
    const errors: RecordedError[] = [];
    for (const one of list.slice(0, ERRORS_KEPT) as readonly unknown[]) {
      const part = Math.floor(share / 4); // A name, a message, a place, and data.
      const recorded = new Recorder(this.#redact, part, part).record(one, depth + 1);
      const chars = JSON.stringify(recorded).length;
      if (chars > share) continue;
      this.#left -= chars + 1;
      errors.push(recorded);
    }
    return errors;
  }

  /** The value that the function makes, if it is readable and there is room for it. @param extra characters around it. */
  #within<T>(make: () => T, extra: number): T | undefined {
    const before = this.#left;
    this.#left -= extra;
    const made = readable(make);
    this.#left = before - (JSON.stringify(made) ?? "").length - extra;
    if (made !== undefined && this.#left >= 0) return made;
    this.#left = before;
    return undefined;
  }

  /** A copy as JSON, without the parts that are none or do not fit; `undefined` for what is no JSON. */
  #copy(value: unknown, depth: number): unknown {
    if (isScalar(value)) return this.#scalar(value);
    if (typeof value !== "object" || depth > DATA_DEPTH_MAX) return undefined;
    this.#left -= 2; // Brackets.
    return Array.isArray(value) ? this.#copyList(value, depth) : this.#copyObject(value, depth);
  }

  #copyList(value: readonly unknown[], depth: number): unknown[] {
    const items: unknown[] = [];
    for (const item of value) {
      if (this.#visits-- <= 0) break;
      const copy = this.#within(() => this.#copy(item, depth + 1), 1);
      if (copy !== undefined) items.push(copy);
    }
    return items;
  }

  #copyObject(value: object, depth: number): Record<string, unknown> {
    const members: [string, unknown][] = [];
    for (const [name, item] of ownData(value)) {
      if (this.#visits-- <= 0) break;
      const key = this.#redact(name);
      const copy = this.#within(() => this.#copy(item, depth + 1), JSON.stringify(key).length + 2);
      if (copy !== undefined) members.push([key, copy]);
    }
    return Object.fromEntries(members);
  }

  #scalar(value: Scalar): unknown {
    if (typeof value === "string") return value.length > TEXT_READ_MAX ? undefined : this.#redact(value);
    if (typeof value === "boolean" || value === null) return value;
    const text = String(value);
    const safe = this.#redact(text);
    return typeof value === "number" && Number.isFinite(value) && safe === text ? value : safe;
  }

  #text(text: string): string {
    return cut(this.#redact(text), this.#textMax);
  }
}

/** A longer text is certainly not kept, so that it need not be searched for secrets. */
const TEXT_READ_MAX = 16 * DATA_CHARS_MAX;

type Scalar = string | number | bigint | boolean | null;

function isScalar(value: unknown): value is Scalar {
  return value === null || ["string", "number", "bigint", "boolean"].includes(typeof value);
}

/** The properties of an object that are values: no getter is called. */
function* ownData(value: object): Generator<[string, unknown]> {
  for (const key of Object.keys(value)) {
    if (NEVER.has(key)) continue;
    const property = Object.getOwnPropertyDescriptor(value, key);
    if (property !== undefined && "value" in property) yield [key, property.value];
  }
}

function readable<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** The text of a value that has no message. */
function shown(thrown: object): string {
  const text = readable(() =>
    JSON.stringify(thrown, (key, value: unknown) => (NEVER.has(key) ? undefined : value)),
  );
  return text ?? Object.prototype.toString.call(thrown);
}

/**
 * The place where it was thrown. Errors of ours that are thrown into an agent have no stack (K3), and other
 * values have none either.
 */
function authorLine(thrown: object): string | undefined {
  return thrown instanceof Error ? lineOf(thrown) : undefined;
}

/** A recorded error as an error that can be thrown. */
export function errorFrom(recorded: RecordedError): Error {
  const { name, message, cause, errors, data, ...details } = recorded;
  const error = new Error(message, cause === undefined ? undefined : { cause: errorFrom(cause) });
  const again = errors === undefined ? {} : { errors: errors.map(errorFrom) };
  Object.assign(error, data, again, { name, ...details, stack: `${name}: ${message}` });
  // The text of a foreign error must not pass for a code of ours.
  if (details.code !== undefined && Object.hasOwn(ERROR_TABLE, details.code))
    Object.defineProperty(error, OWN_ERROR, { value: true });
  return error;
}

function cut(text: string, max: number): string {
  return text.length <= max ? text : `${text.slice(0, max)}… (${text.length} characters)`;
}
