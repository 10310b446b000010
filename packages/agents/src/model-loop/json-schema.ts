// Checks a value against a JSON Schema of an agent file, with messages that a model can correct itself by.

import { schemaProblemText, type StandardSchemaV1, type JsonSchema } from "@holdfast/core";
import type { ErrorObject, ValidateFunction } from "ajv/dist/2020.js";

import { ajv } from "../lazy-packages.ts";

const compiled = new WeakMap<JsonSchema, ValidateFunction>();

/** @returns what is wrong with the value, a line for each place, or `undefined` when it is right. */
export function findProblems(schema: JsonSchema, value: unknown): string | undefined {
  const validate = compile(schema);
  if (validate(value)) return undefined;
  return (validate.errors ?? []).map(describe).join("\n");
}

/** @throws Error when the schema itself is not right. */
function compile(schema: JsonSchema): ValidateFunction {
  const known = compiled.get(schema);
  if (known !== undefined) return known;
  // A validator of its own for each schema: two agents may use one `$id`.
  const { Ajv2020 } = ajv();
  const validate = new Ajv2020({ allErrors: true, strict: false, validateFormats: false }).compile(schema);
  compiled.set(schema, validate);
  return validate;
}

/** A JSON Schema as a Standard Schema, for the input of an agent. */
export function standardSchema<Value>(schema: JsonSchema): StandardSchemaV1<unknown, Value> {
  return {
    "~standard": {
      version: 1,
      vendor: "ajv",
      jsonSchema: { input: () => ({ ...schema }) },
      validate: (value) => {
        const validate = compile(schema);
        if (validate(value)) return { value: value as Value };
        return {
          issues: (validate.errors ?? []).map((error) => ({
            message: schemaProblemText(error),
            path: error.instancePath.split("/").slice(1),
          })),
        };
      },
    },
  };
}

function describe(error: ErrorObject): string {
  return `${error.instancePath === "" ? "the value" : error.instancePath}: ${schemaProblemText(error)}`;
}
