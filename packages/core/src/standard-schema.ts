// Standard Schema v1 (standardschema.dev): what zod, valibot, arktype and others implement. The interface is
// meant to be copied rather than depended on; this is the part we use.

import { HoldfastError, toError, UsageError } from "./errors/errors.ts";
import type { ErrorCode } from "./errors/error-table.ts";

/** A JSON Schema, as its author wrote it. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** A schema of any library that implements Standard Schema, such as Zod. */
export interface StandardSchemaV1<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    /** Standard JSON Schema: the schema of what is accepted. May throw for a schema that has no such form. */
    readonly jsonSchema?:
      | { readonly input: (options: { readonly target: "draft-2020-12" }) => Record<string, unknown> }
      | undefined;
  };
}

/** The arguments of a call from its input on. The input may be left out only where `undefined` is one. */
export type InputArguments<Given, Options> = undefined extends Given
  ? [input?: NoInfer<Given>, options?: Options]
  : [input: NoInfer<Given>, options?: Options];

type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/**
 * The validated (and possibly transformed) value.
 *
 * @throws HoldfastError with the given code, naming up to five places that do not match.
 */
export async function validate<Output>(
  schema: StandardSchemaV1<unknown, Output> | undefined,
  value: unknown,
  what: string,
  code: ErrorCode,
): Promise<Output> {
  if (schema !== undefined) return outcomeOf(await asked(schema, value, what), schema, value, what, code);
  // Returning a promise would await it, perhaps without end, and without any agent knowing.
  if (typeof (value as { readonly then?: unknown } | null | undefined)?.then === "function")
    throw new UsageError(`${what} is a promise`, { code: "not_json", at: what, fix: "await it first" });
  return value as Output;
}

/**
 * The validated value, without waiting.
 *
 * @throws also a UsageError when the schema cannot answer at once.
 */
export function validateNow<Output>(
  schema: StandardSchemaV1<unknown, Output>,
  value: unknown,
  what: string,
  code: ErrorCode,
): Output {
  const result = asked(schema, value, what);
  if (result instanceof Promise) {
    throw new UsageError(`the schema of ${what} answers with a promise`, {
      expected: "a schema that checks without waiting",
    });
  }
  return outcomeOf(result, schema, value, what, code);
}

/** The answer of a schema. @throws UsageError when the value is no schema, or when the schema throws. */
function asked<Output>(
  schema: StandardSchemaV1<unknown, Output>,
  value: unknown,
  what: string,
): SchemaResult<Output> | Promise<SchemaResult<Output>> {
  const standard = (schema as Partial<typeof schema> | null)?.["~standard"];
  if (typeof standard?.validate !== "function") throw noSchema(what, "it has no ~standard.validate");
  try {
    return standard.validate(value);
  } catch (cause) {
    throw noSchema(what, `checking threw: ${toError(cause).message}`, cause);
  }
}

function noSchema(what: string, why: string, cause?: unknown): UsageError {
  return new UsageError(`the schema of ${what} cannot be used: ${why}`, {
    at: what,
    expected: "a Standard Schema, such as one of zod, that answers { value } or { issues }",
    fix: "correct the schema",
    cause,
  });
}

function outcomeOf<Output>(
  result: SchemaResult<Output>,
  schema: StandardSchemaV1<unknown, Output>,
  value: unknown,
  what: string,
  code: ErrorCode,
): Output {
  if (typeof result !== "object" || result === null) throw noSchema(what, `it answered ${String(result)}`);
  if (result.issues !== undefined && !Array.isArray(result.issues))
    throw noSchema(what, "its issues are no list");
  if (result.issues === undefined) return result.value;
  const places = result.issues.slice(0, 5).map((issue) => `${pointerOf(issue)}: ${issue.message}`);
  const more = result.issues.length > 5 ? ` (and ${result.issues.length - 5} more)` : "";
  throw new HoldfastError(code, `${what} does not match its schema: ${places.join("; ")}${more}`, {
    at: what,
    got: excerpt(value),
    ...expectedBy(schema),
    fix: "send a value of the shape the schema describes",
  });
}

/** A longer schema is not shown: the places say what is wrong. */
const SCHEMA_CHARS_MAX = 2_000;

/** The schema itself, for a caller that corrects its value by it. */
function expectedBy({ "~standard": { jsonSchema } }: StandardSchemaV1): { readonly expected?: string } {
  try {
    const { $schema: _, ...schema } = jsonSchema?.input({ target: "draft-2020-12" }) ?? {};
    const text = JSON.stringify(schema);
    return text === "{}" || text.length > SCHEMA_CHARS_MAX ? {} : { expected: `a value of ${text}` };
  } catch {
    return {}; // The schema has no such form.
  }
}

function pointerOf(issue: SchemaIssue): string {
  const path = (issue.path ?? []).map((step) => String(typeof step === "object" ? step.key : step));
  return path.length === 0 ? "the value" : `/${path.join("/")}`;
}

function excerpt(value: unknown): string {
  let text: string;
  try {
    text = JSON.stringify(value) ?? String(value);
  } catch {
    text = typeof value;
  }
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}
