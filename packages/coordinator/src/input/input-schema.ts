// `findInputErrors` checks an input by the JSON Schema that a runner announced for its agent.
//
// The schema comes from another process. Reading and checking have a time limit, which also ends the search
// of a regular expression. A schema that cannot be used, or that takes too long, refuses nothing: the agent
// sees the input as it is.

import { createContext, runInContext } from "node:vm";
import { decodeJson, type JsonText, schemaProblemText } from "@holdfast/core";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import type { FieldError } from "../call/refusal.ts";

/** Far more than a reasonable schema needs, also on a busy machine. */
const CHECK_MS = 2_000;
const SCHEMAS_KEPT = 500;

/** By the text of the schema; `undefined` for one that cannot be used. */
const compiled = new Map<JsonText, ValidateFunction | undefined>();
const timed = createContext({ work: undefined as unknown });
let ajv: Ajv2020 | undefined;

/** @param at the JSON pointer of the input in its request. @returns what is wrong with the input, if anything. */
export function findInputErrors(
  schema: JsonText,
  input: JsonText | undefined,
  at: string,
): readonly FieldError[] {
  const validate = validatorOf(schema);
  if (validate === undefined) return [];
  const value = decodeJson(input);
  const isRight = inTime(() => validate(value));
  if (isRight === undefined) compiled.set(schema, undefined); // It keeps nobody waiting a second time.
  if (isRight !== false) return [];
  return (validate.errors ?? []).map((error) => ({
    pointer: `${at}${error.instancePath}`,
    code: error.keyword,
    message: schemaProblemText(error),
  }));
}

function validatorOf(schema: JsonText): ValidateFunction | undefined {
  if (compiled.has(schema)) return compiled.get(schema);
  const validator = (ajv ??= newAjv());
  const validate = inTime(() => validator.compile(JSON.parse(schema) as object));
  if (validate === undefined) ajv = undefined; // It may be left in the middle of its work.
  if (compiled.size >= SCHEMAS_KEPT) compiled.clear();
  compiled.set(schema, validate);
  return validate;
}

/** Schemas of agents may have the same `$id`, so none of them is kept by it. */
function newAjv(): Ajv2020 {
  const made = new Ajv2020({
    allErrors: true,
    strict: false,
    validateFormats: false,
    addUsedSchema: false,
    logger: false,
  });
  made.compile({}); // Reads the schema of schemas, which takes the longest and needs no limit.
  return made;
}

/** @returns `undefined` when the work throws, or does not end in time. */
function inTime<T>(work: () => T): T | undefined {
  timed["work"] = work;
  try {
    return runInContext("work()", timed, { timeout: CHECK_MS }) as T;
  } catch {
    return undefined;
  }
}
