// `openApi` writes the contract as OpenAPI 3.1 from its descriptors: routes, schemas, constraints and
// comments.

import { ScalarType, type DescField, type DescMessage } from "@bufbuild/protobuf";
import { COMMENTS, SERVICES, type FieldRules } from "@holdfast/proto";
import { METHODS, type Method, type Rule } from "./contract.ts";
import { factsOf } from "./fields.ts";

type Schema = Readonly<Record<string, unknown>>;

interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required: boolean;
  readonly description?: string;
  readonly schema: Schema;
}

let written: string | undefined;

/** The document never changes, so it is made once. */
export function openApi(): string {
  written ??= JSON.stringify(document());
  return written;
}

function document(): Schema {
  const messages = new Map<string, DescMessage>();
  const paths: Record<string, Record<string, Schema>> = {};
  for (const method of METHODS) {
    for (const rule of method.rules) {
      (paths[rule.path.replace(/\{(\w+)\}/g, (_, name: string) => `{${jsonNameOf(method, name)}}`)] ??= {})[
        rule.verb.toLowerCase()
      ] = operation(method, rule, messages);
    }
  }
  const schemas: Record<string, Schema> = { Problem: PROBLEM };
  for (const [name, desc] of messages) schemas[name] = messageSchema(desc, messages); // The map grows during the loop.
  return {
    openapi: "3.1.0",
    info: {
      title: "Holdfast",
      version: "1",
      description: "Sessions of agents that must not lose their work.",
    },
    security: [{ token: [] }],
    tags: SERVICES.map((service) => ({ name: service.name, ...described(service.typeName) })),
    paths,
    components: { schemas, securitySchemes: { token: { type: "http", scheme: "bearer" } } },
  };
}

function operation(method: Method, rule: Rule, messages: Map<string, DescMessage>): Schema {
  const { input, output } = method.desc;
  const inPath = new Set([...rule.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name));
  const inBody = (field: DescField): boolean =>
    rule.body === "*" ? !inPath.has(field.name) : rule.body === field.name;
  const parameters: Parameter[] = input.fields
    .filter((field) => !inBody(field))
    .map((field) => ({
      name: field.jsonName,
      in: inPath.has(field.name) ? "path" : "query",
      required: inPath.has(field.name) || factsOf(field).isRequired,
      ...described(`${input.typeName}.${field.name}`),
      schema: fieldSchema(field, messages),
    }));
  parameters.push(...input.fields.flatMap(headerOf));
  const body = bodySchema(input, rule, inBody, messages);
  const isBodyRequired = input.fields.some((field) => inBody(field) && factsOf(field).isRequired);
  const type = method.isStream ? "text/event-stream" : "application/json";
  const content = { [type]: { schema: reference(output, messages) } };
  return {
    ...(rule === method.rules[0] ? { operationId: method.name } : {}), // Operation ids are unique.
    tags: [method.desc.parent.name],
    ...described(`${method.desc.parent.typeName}.${method.desc.name}`),
    ...(method.isOpen ? { security: [] } : {}),
    "x-roles": [...method.callers],
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined
      ? {}
      : { requestBody: { required: isBodyRequired, content: { "application/json": { schema: body } } } }),
    responses: {
      [method.status]: { description: "Done", content },
      ...(method.statusWhenDone === undefined
        ? {}
        : { [method.statusWhenDone]: { description: "Done already; nothing changed", content } }),
      default: {
        description: "Refused",
        content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } },
      },
    },
  };
}

/** The header that stands for a field as well. */
function headerOf(field: DescField): readonly Parameter[] {
  const { isIdempotencyKey, isLastEventId, rules } = factsOf(field);
  if (!isIdempotencyKey && !isLastEventId) return [];
  const name = isIdempotencyKey ? "Idempotency-Key" : "Last-Event-ID";
  const description = `The same as \`${field.jsonName}\`.`;
  return [{ name, in: "header", required: false, description, schema: scalarSchema(field, rules) }];
}

function bodySchema(
  input: DescMessage,
  rule: Rule,
  inBody: (field: DescField) => boolean,
  messages: Map<string, DescMessage>,
): Schema | undefined {
  if (rule.body === "") return undefined;
  const fields = input.fields.filter(inBody);
  if (rule.body !== "*") return fieldSchema(fields[0]!, messages);
  return fields.length === input.fields.length ? reference(input, messages) : objectSchema(fields, messages);
}

function reference(desc: DescMessage, messages: Map<string, DescMessage>): Schema {
  messages.set(desc.name, desc);
  return { $ref: `#/components/schemas/${desc.name}` };
}

function messageSchema(desc: DescMessage, messages: Map<string, DescMessage>): Schema {
  return { ...described(desc.typeName), ...objectSchema(desc.fields, messages) };
}

/** The contract's comment on a service, method, message or field. */
function described(fullName: string): { readonly description?: string } {
  const description = COMMENTS[fullName];
  return description === undefined ? {} : { description };
}

function objectSchema(fields: readonly DescField[], messages: Map<string, DescMessage>): Schema {
  const required = fields.filter((field) => factsOf(field).isRequired).map(({ jsonName }) => jsonName);
  return {
    type: "object",
    properties: Object.fromEntries(
      fields.map((field) => [
        field.jsonName,
        { ...fieldSchema(field, messages), ...described(`${field.parent.typeName}.${field.name}`) },
      ]),
    ),
    additionalProperties: false,
    ...(required.length === 0 ? {} : { required }),
  };
}

function fieldSchema(field: DescField, messages: Map<string, DescMessage>): Schema {
  const rules = factsOf(field).rules;
  switch (field.fieldKind) {
    case "list": {
      const { maxItems = 0n, items } = rules?.type.case === "repeated" ? rules.type.value : {};
      const item =
        field.listKind === "message" ? reference(field.message, messages) : scalarSchema(field, items);
      return { type: "array", items: item, ...(maxItems === 0n ? {} : { maxItems: Number(maxItems) }) };
    }
    case "map": {
      const { maxPairs = 0n, keys, values } = rules?.type.case === "map" ? rules.type.value : {};
      return {
        type: "object",
        ...(maxPairs === 0n ? {} : { maxProperties: Number(maxPairs) }),
        ...(keys === undefined ? {} : { propertyNames: textSchema(keys) }),
        additionalProperties: textSchema(values),
      };
    }
    case "message":
      return reference(field.message, messages);
    default:
      return scalarSchema(field, rules);
  }
}

function scalarSchema(field: DescField, rules: FieldRules | undefined): Schema {
  // Any JSON.
  if (factsOf(field).isJson) return {};
  switch (field.scalar) {
    case ScalarType.BOOL:
      return { type: "boolean" };
    case ScalarType.INT32:
    case ScalarType.INT64: {
      const { greaterThan, lessThan } =
        rules?.type.case === "int32" || rules?.type.case === "int64" ? rules.type.value : {};
      return {
        type: "integer",
        ...(greaterThan?.case === "gte" ? { minimum: Number(greaterThan.value) } : {}),
        ...(lessThan?.case === "lte" ? { maximum: Number(lessThan.value) } : {}),
      };
    }
    default:
      return textSchema(rules);
  }
}

function textSchema(rules: FieldRules | undefined): Schema {
  const {
    in: allowed = [],
    pattern = "",
    maxLen = 0n,
  } = rules?.type.case === "string" ? rules.type.value : {};
  return {
    type: "string",
    ...(allowed.length === 0 ? {} : { enum: allowed }),
    ...(pattern === "" ? {} : { pattern }),
    ...(maxLen === 0n ? {} : { maxLength: Number(maxLen) }),
  };
}

function jsonNameOf({ desc }: Method, name: string): string {
  return desc.input.fields.find((field) => field.name === name)?.jsonName ?? name;
}

const TEXT = { type: "string" } as const;

/** The problem of RFC 9457, with our additional members. */
const PROBLEM: Schema = {
  type: "object",
  properties: {
    type: TEXT,
    title: TEXT,
    status: { type: "integer" },
    detail: TEXT,
    instance: TEXT,
    code: TEXT,
    at: TEXT,
    got: TEXT,
    expected: TEXT,
    fix: TEXT,
    errors: {
      type: "array",
      items: { type: "object", properties: { pointer: TEXT, code: TEXT, message: TEXT } },
    },
  },
  required: ["type", "title", "status", "detail", "instance", "code"],
};
