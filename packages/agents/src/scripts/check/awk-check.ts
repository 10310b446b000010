// `awkCheck`: the schema of a script's parameters as a program in awk, which checks a call in a shell. Pure.
//
//   - It finds a call wrong exactly where `findProblems` does (`awk-check.test.ts` compares both).
//   - A keyword or a pattern without a translation makes no program, and its name is the answer.
//   - Each schema is one function `f`, also where schemas lead back to themselves. Constants are `C`.

import type { JsonSchema } from "@holdfast/core";
import type { Parameter } from "../script-parameters.ts";
import { awkPattern } from "./awk-pattern.ts";
import { AWK_RUNTIME } from "./awk-runtime.ts";
import { listOf, schemaAt, type Schema } from "./schema-at.ts";

export type AwkCheck =
  | { readonly program: string }
  /** The keyword or pattern without a translation, for people. */
  | { readonly beyond: string };

/** Keywords that Ajv checks, and this program does not. */
const BEYOND = [
  "unevaluatedItems",
  "unevaluatedProperties",
  "dependencies",
  "nullable",
  "$anchor",
  "$dynamicAnchor",
  "$dynamicRef",
  "$recursiveAnchor",
  "$recursiveRef",
];

export function awkCheck(schema: JsonSchema, parameters: readonly Parameter[]): AwkCheck {
  try {
    const { functions, constants, root } = new AwkSchema(schema).translate();
    const kinds = parameters.flatMap(({ name, type, isRequired }) => [
      `KIND[${text(name)}] = ${text(type)}`,
      // A switch that is not there is off. The emulated shell has only the elements that were assigned.
      ...(isRequired && type === "switch" ? [`NEEDED[${text(name)}] = 1`] : []),
    ]);
    const begin = [
      'WIDE = (length("é") == 1)',
      ...constants,
      ...kinds,
      "top = call()",
      `if (SAID == "") ${root}(top, "")`,
      'if (SAID != "") { printf "%s", SAID; exit 1 }',
    ];
    return { program: [AWK_RUNTIME.trim(), ...functions, `BEGIN {\n  ${begin.join("\n  ")}\n}`].join("\n") };
  } catch (error) {
    if (error instanceof Beyond) return { beyond: error.message };
    throw error;
  }
}

class Beyond extends Error {}

class AwkSchema {
  readonly #root: JsonSchema;
  readonly #functions: string[] = [];
  readonly #constants: string[] = [];
  readonly #names = new Map<Schema, string>();

  constructor(root: JsonSchema) {
    this.#root = root;
  }

  translate() {
    const root = this.#check(this.#root);
    return { root, functions: this.#functions, constants: this.#constants };
  }

  /** @returns the name of the function of a schema. */
  #check(schema: Schema): string {
    if (schema === true) return "yes";
    if (schema === false) return "no";
    const known = this.#names.get(schema);
    if (known !== undefined) return known;
    const name = `f${this.#names.size + 1}`;
    this.#names.set(schema, name);
    const beyond = BEYOND.find((one) => Object.hasOwn(schema, one));
    if (beyond !== undefined) throw new Beyond(beyond);
    if (schema["$id"] !== undefined && schema !== this.#root) throw new Beyond("$id inside of a schema");
    const lines = [
      ...this.#references(schema),
      ...this.#values(schema),
      ...within("string", this.#strings(schema)),
      ...within("number", this.#numbers(schema)),
      ...within("array", this.#arrays(schema)),
      ...within("object", this.#objects(schema)),
      ...this.#combinations(schema),
    ];
    const body = ["ok = 1", ...lines, "return ok"].map((line) => `  ${line}`).join("\n");
    this.#functions.push(`function ${name}(n, p,   ok, i, j, k, q) {\n${body}\n}`);
    return name;
  }

  #references({ $ref }: JsonSchema): readonly string[] {
    if (typeof $ref !== "string") return [];
    const found = schemaAt(this.#root, $ref);
    if (found === undefined) throw new Beyond(`$ref ${$ref}`);
    return [need(`${this.#check(found)}(n, p)`)];
  }

  #values(schema: JsonSchema): readonly string[] {
    const { type } = schema;
    const lines: string[] = [];
    if (type !== undefined) {
      const types = listOf(type) as readonly string[];
      const words = types.map((one) => TYPE_WORDS[one] ?? one).join(" or ");
      lines.push(
        `if (!(${types.map(typeTest).join(" || ")})) {`,
        `  fail(p, "is " shown(n) ${text(`, and it is ${words}`)})`,
        "  return 0",
        "}",
      );
    }
    const lists = [
      ...(Object.hasOwn(schema, "const") ? [[schema["const"]]] : []),
      ...(Array.isArray(schema["enum"]) ? [schema["enum"] as readonly unknown[]] : []),
    ];
    const one = (choices: readonly unknown[]) => {
      const tests = choices.map((choice) => `same(n, ${this.#constant(choice)})`);
      const words = choices.map((choice) => (typeof choice === "string" ? choice : JSON.stringify(choice)));
      const why = `"is " shown(n) ${text(`, and it is one of ${words.join(", ")}`)}`;
      return rule(tests.join(" || "), why);
    };
    return [...lines, ...lists.map(one)];
  }

  #constant(value: unknown): string {
    const name = `C${this.#constants.length + 1}`;
    this.#constants.push(`${name} = json(${text(JSON.stringify(value))})`);
    return name;
  }

  #strings({ minLength, maxLength, pattern }: JsonSchema): readonly string[] {
    const length = "length(plain(V[n]))";
    return [
      ...bound(minLength, (least) => rule(`${length} >= ${least}`, `"has less than ${least} characters"`)),
      ...bound(maxLength, (most) => rule(`${length} <= ${most}`, `"has more than ${most} characters"`)),
      ...(typeof pattern === "string"
        ? [rule(matches("V[n]", pattern), text(`does not match the pattern ${pattern}`))]
        : []),
    ];
  }

  #numbers(schema: JsonSchema): readonly string[] {
    const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema;
    return [
      ...bound(minimum, (least) => rule(`V[n] + 0 >= ${least}`, `"is less than ${least}"`)),
      ...bound(maximum, (most) => rule(`V[n] + 0 <= ${most}`, `"is more than ${most}"`)),
      ...bound(exclusiveMinimum, (least) => rule(`V[n] + 0 > ${least}`, `"is not more than ${least}"`)),
      ...bound(exclusiveMaximum, (most) => rule(`V[n] + 0 < ${most}`, `"is not less than ${most}"`)),
      ...bound(multipleOf, (step) => rule(`isWhole(V[n] / ${step})`, `"is no multiple of ${step}"`)),
    ];
  }

  #arrays(schema: JsonSchema): readonly string[] {
    const { minItems, maxItems, uniqueItems, contains, minContains, maxContains } = schema;
    const first = (schema["prefixItems"] ?? []) as readonly Schema[];
    const items = schema["items"] as Schema | undefined;
    const element = (check: string, index: number | string) => `${check}(H[n, ${index}], p "/" ${index})`;
    const least = typeof minContains === "number" ? minContains : 1;
    return [
      ...bound(minItems, (few) => rule(`N[n] >= ${few}`, `"has less than ${few} items"`)),
      ...bound(maxItems, (many) => rule(`N[n] <= ${many}`, `"has more than ${many} items"`)),
      ...(uniqueItems === true ? [`if (twice(n)) ok = fail(p, "has one item twice")`] : []),
      ...first.map((one, index) => `if (N[n] > ${index}) ${need(element(this.#check(one), index))}`),
      ...(items === undefined
        ? []
        : [`for (i = ${first.length}; i < N[n]; i++) ${need(element(this.#check(items), "i"))}`]),
      ...(contains === undefined
        ? []
        : [
            `q = QUIET; QUIET = 1; j = 0`,
            `for (i = 0; i < N[n]; i++) j += ${this.#check(contains as Schema)}(H[n, i], p)`,
            `QUIET = q`,
            rule(`j >= ${least}`, `"has less than ${least} items of a kind that it needs"`),
            ...bound(maxContains, (most) =>
              rule(`j <= ${most}`, `"has more than ${most} items of one kind"`),
            ),
          ]),
    ];
  }

  #objects(schema: JsonSchema): readonly string[] {
    const { minProperties, maxProperties, propertyNames, additionalProperties } = schema;
    const part = (name: keyof JsonSchema) => Object.entries((schema[name] ?? {}) as Record<string, Schema>);
    const properties = part("properties");
    const patterns = part("patternProperties");
    const has = (name: string) => `((n, ${text(name)}) in H)`;
    const needs = (name: string) =>
      rule(has(name), `(p == "" ? ${text(`--${name} is missing`)} : ${text(`has no ${name}`)})`);
    const child = (check: string) => need(`${check}(H[n, k], at(p, k))`);
    const each = "for (i = 1; i <= N[n]; i++) { k = K[n, i]; ";
    const known = [
      ...properties.map(([name]) => `k == ${text(name)}`),
      ...patterns.map(([pattern]) => matches("k", pattern)),
    ];
    return [
      ...((schema["required"] ?? []) as readonly string[]).map(needs),
      ...bound(minProperties, (few) => rule(`N[n] >= ${few}`, `"has less than ${few} properties"`)),
      ...bound(maxProperties, (many) => rule(`N[n] <= ${many}`, `"has more than ${many} properties"`)),
      ...properties.map(([name, one]) => `k = ${text(name)}; if ((n, k) in H) ${child(this.#check(one))}`),
      ...patterns.map(
        ([pattern, one]) => `${each}if (${matches("k", pattern)}) ${child(this.#check(one))} }`,
      ),
      ...(additionalProperties === undefined || additionalProperties === true
        ? []
        : [
            `${each}if (!(${known.length === 0 ? "0" : known.join(" || ")})) ${child(this.#check(additionalProperties as Schema))} }`,
          ]),
      ...(propertyNames === undefined
        ? []
        : [
            `${each}j = node("string", k); ${need(`${this.#check(propertyNames as Schema)}(j, at(p, k))`)} }`,
          ]),
      ...part("dependentRequired").flatMap(([name, others]) =>
        (others as unknown as readonly string[]).map((other) => `if ${has(name)} ${needs(other)}`),
      ),
      ...part("dependentSchemas").map(
        ([name, one]) => `if ${has(name)} ${need(`${this.#check(one)}(n, p)`)}`,
      ),
    ];
  }

  #combinations(schema: JsonSchema): readonly string[] {
    const list = (name: string) =>
      (schema[name] as readonly Schema[] | undefined)?.map((one) => this.#check(one));
    const tried = (expression: string) => `q = QUIET; QUIET = 1; i = (${expression}); QUIET = q`;
    const calls = (checks: readonly string[]) => checks.map((check) => `${check}(n, p)`);
    const any = list("anyOf");
    const one = list("oneOf");
    const not = schema["not"] as Schema | undefined;
    const lines = calls(list("allOf") ?? []).map(need);
    if (any !== undefined)
      lines.push(tried(calls(any).join(" || ")), rule("i", '"fits none of the forms that it can have"'));
    if (one !== undefined)
      lines.push(
        tried(calls(one).join(" + ")),
        rule("i == 1", '"does not fit exactly one of the forms that it can have"'),
      );
    if (not !== undefined)
      lines.push(tried(`${this.#check(not)}(n, p)`), rule("!i", '"has a form that it must not have"'));
    if (schema["if"] === undefined) return lines;
    const branch = (name: "then" | "else") =>
      schema[name] === undefined ? "1" : `${this.#check(schema[name] as Schema)}(n, p)`;
    lines.push(
      tried(`${this.#check(schema["if"] as Schema)}(n, p)`),
      `if (i) { ${need(branch("then"))} } else { ${need(branch("else"))} }`,
    );
    return lines;
  }
}

const TYPE_WORDS: Readonly<Record<string, string>> = {
  string: "text",
  integer: "a whole number",
  number: "a number",
  boolean: "true or false",
  object: "an object",
  array: "a list",
};

function typeTest(type: string): string {
  return type === "integer" ? '(T[n] == "number" && isWhole(V[n]))' : `T[n] == ${text(type)}`;
}

function within(type: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : [`if (T[n] == ${text(type)}) {`, ...lines.map((line) => `  ${line}`), "}"];
}

function need(expression: string): string {
  return `if (!${expression}) ok = 0`;
}

function rule(holds: string, why: string): string {
  return `if (!(${holds})) ok = fail(p, ${why})`;
}

function bound(value: unknown, line: (value: number) => string): readonly string[] {
  return typeof value === "number" ? [line(value)] : [];
}

function matches(subject: string, pattern: string): string {
  const translated = awkPattern(pattern);
  if (translated === undefined) throw new Beyond(`the pattern ${pattern}`);
  return translated === "" ? "1" : `plain(${subject}) ~ ${text(translated)}`;
}

/** A text as a literal of awk, in one line. */
function text(value: string): string {
  const quoted = value.replaceAll(/[\\"]/g, String.raw`\$&`);
  // Awk reads bytes behind 127 as they stand.
  const escaped = quoted.replaceAll(/(?=\p{ASCII})\p{Cc}/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return `\\${code.toString(8).padStart(3, "0")}`;
  });
  return `"${escaped}"`;
}
