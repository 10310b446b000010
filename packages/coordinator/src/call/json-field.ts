// Conversions of users' JSON between the contract's form (bytes) and storage's form (text on one line).

import { FORMAT_LIMITS, jsonSyntaxProblem, type JsonText, UsageError } from "@holdfast/core";

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

/**
 * The text of a field, unchanged except for line breaks between its tokens, because a journal has one line
 * per record.
 *
 * @throws UsageError when the text is no JSON, or nested too deeply.
 */
export function textOf(bytes: Uint8Array | undefined, field: string): JsonText | undefined {
  if (bytes === undefined) return undefined;
  let text: string | undefined;
  try {
    text = decoder.decode(bytes);
    JSON.parse(text);
  } catch (cause) {
    const problem = text === undefined ? "its bytes are not UTF-8" : jsonSyntaxProblem(text);
    throw new UsageError(`${field} is not JSON: ${problem}`, {
      code: "not_json",
      at: field,
      cause,
      expected: "JSON in UTF-8",
    });
  }
  if (depthOf(text) > FORMAT_LIMITS.jsonDepth) {
    throw new UsageError(`${field} is more than ${FORMAT_LIMITS.jsonDepth} levels deep`, {
      code: "not_json",
      at: field,
      fix: "flatten it",
    });
  }
  return text.replaceAll(/[\r\n]/g, " ");
}

/** The value of a field, `undefined` without one. @throws UsageError as `textOf` does. */
export function valueOf(bytes: Uint8Array | undefined, field: string): unknown {
  const text = textOf(bytes, field);
  return text === undefined ? undefined : JSON.parse(text);
}

export function bytesOf(text: JsonText): Uint8Array<ArrayBuffer> {
  return encoder.encode(text);
}

/** The bytes of a value that the coordinator made. */
export function bytesOfValue(value: unknown): Uint8Array<ArrayBuffer> {
  return bytesOf(JSON.stringify(value));
}

/** The nesting depth of a JSON text, ignoring brackets in strings. */
function depthOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  let isInString = false;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (isInString) {
      if (code === BACKSLASH) i++;
      else if (code === QUOTE) isInString = false;
    } else if (code === QUOTE) isInString = true;
    else if (code === OPEN_LIST || code === OPEN_OBJECT) deepest = Math.max(deepest, ++depth);
    else if (code === CLOSE_LIST || code === CLOSE_OBJECT) depth--;
  }
  return deepest;
}

const [QUOTE, BACKSLASH, OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [34, 92, 91, 93, 123, 125];
