// `readManifest`: the fields of a script, from the file `script.json` of its content.
//
//   - A manifest with a field that is unknown or wrong is refused, so that no limit of its author is dropped.
//   - The file that runs is one of the script's own files.

import {
  didYouMean,
  EFFECT_CLASSES,
  type EffectClass,
  HOUR_MS,
  jsonSyntaxProblem,
  MIB,
  parseDuration,
  type JsonSchema,
} from "@holdfast/core";
import { z } from "zod";

import { demandsOf, demandsValue, type Demands } from "../record/demands.ts";
import { FileProblem } from "../format/front-matter.ts";
import { checkJsonSchema } from "../format/schema-check.ts";
import type { FolderContent } from "../contents/folder-content.ts";

export interface ScriptManifest {
  readonly name: string;
  readonly description: string;
  /** The file that runs, by its path in the folder of the script. */
  readonly file: string;
  /** The program that runs the file, with its first arguments. */
  readonly interpreter: readonly string[];
  /** The schema of an object whose properties are the parameters. It permits no other properties. */
  readonly parameters: JsonSchema;
  readonly effect: EffectClass;
  readonly timeoutMs: number;
  readonly outputBytes: number;
  /** Labels that a runner must have. */
  readonly demands: Demands;
}

export const MANIFEST = "script.json";
/** The beginning of the names of the tools of scripts. */
export const SCRIPT_TOOL_PREFIX = "script__";

const SCRIPT_LIMITS = {
  /** A script without a time limit of its own. */
  timeoutMs: 120_000,
  timeoutMaxMs: HOUR_MS,
  /** The output that is kept, both streams together. */
  outputBytes: 256 * 1024,
  outputMaxBytes: 10 * MIB,
  parameters: 50,
  /** The name is a part of a tool's name, which servers limit. */
  nameChars: 48,
} as const;

/** The programs that run files with these endings. */
const INTERPRETERS: Readonly<Record<string, readonly string[]>> = {
  sh: ["sh"],
  bash: ["bash"],
  py: ["python3"],
  js: ["node"],
  mjs: ["node"],
  cjs: ["node"],
  ts: ["node"],
  mts: ["node"],
};

const fields = z.strictObject({
  name: z.string(),
  description: z.string().trim().min(1).max(1_024),
  script_file: z.string().min(1).max(255),
  interpreter: z.array(z.string().min(1)).min(1).max(10).optional(),
  parameters_schema: z.record(z.string(), z.unknown()).optional(),
  effect: z.enum(EFFECT_CLASSES).optional(),
  timeout: z.string().optional(),
  demands: demandsValue.optional(),
  output_bytes: z.int().min(1_024).max(SCRIPT_LIMITS.outputMaxBytes).optional(),
});

/** @param name the name of the folder, which is the name of the script. @throws FileProblem */
export function readManifest(content: FolderContent, name: string): ScriptManifest {
  const given = parse(content);
  const checked = fields.safeParse(given);
  if (!checked.success) throw fieldProblem(checked.error);
  const { data } = checked;
  refuseName(data.name, name);
  const parameters = parametersOf(data.parameters_schema);
  refuseFile(data.script_file, content);
  return {
    name,
    description: data.description,
    file: data.script_file,
    interpreter: data.interpreter ?? interpreterOf(data.script_file, content),
    parameters,
    effect: data.effect ?? "once",
    timeoutMs: data.timeout === undefined ? SCRIPT_LIMITS.timeoutMs : timeoutOf(data.timeout),
    outputBytes: data.output_bytes ?? SCRIPT_LIMITS.outputBytes,
    demands: data.demands === undefined ? {} : demandsOf(data.demands),
  };
}

export function isScriptName(name: string): boolean {
  return /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(name) && name.length <= SCRIPT_LIMITS.nameChars;
}

function parse({ files }: FolderContent): unknown {
  const bytes = files.find(({ path }) => path === MANIFEST)?.bytes;
  if (bytes === undefined)
    throw new FileProblem(`it has no ${MANIFEST}`, "write it: name, description, script_file");
  const text = new TextDecoder().decode(bytes);
  try {
    return JSON.parse(text);
  } catch {
    throw new FileProblem(`${MANIFEST} is not JSON: ${jsonSyntaxProblem(text)}`, "correct that line");
  }
}

function fieldProblem(error: z.ZodError): FileProblem {
  const [issue] = error.issues;
  if (issue?.code === "unrecognized_keys") {
    const [key = ""] = issue.keys;
    const isTop = issue.path.length === 0;
    const known = Object.keys(isTop ? fields.shape : demandsValue.shape);
    return problemAt(
      [...issue.path, key],
      `Holdfast knows no field "${key}" of ${isTop ? "a script" : "demands"}${didYouMean(key, known)}`,
    );
  }
  return problemAt(issue?.path ?? [], issue?.message ?? "it does not fit");
}

function problemAt(path: readonly PropertyKey[], why: string): FileProblem {
  return new FileProblem(
    `${MANIFEST} is wrong at /${path.map(String).join("/")}: ${why}`,
    "correct this field; docs/scripts.md has all fields",
  );
}

function refuseName(name: string, folder: string): void {
  if (!isScriptName(folder))
    throw new FileProblem(
      `${JSON.stringify(folder)} is no name of a script`,
      `name the folder with a small letter first, then up to ${SCRIPT_LIMITS.nameChars} small letters, digits and single hyphens between them`,
    );
  if (name !== folder) throw problemAt(["name"], `the folder of the script is ${folder}; give both one name`);
}

function refuseFile(file: string, { files }: FolderContent): void {
  const paths = files.map(({ path }) => path).filter((path) => path !== MANIFEST);
  if (paths.includes(file)) return;
  throw problemAt(
    ["script_file"],
    `the script has no file ${JSON.stringify(file)}${didYouMean(file, paths) || "."} Its files are: ${paths.join(", ") || "none"}`,
  );
}

function interpreterOf(file: string, { files }: FolderContent): readonly string[] {
  const text = files.find(({ path }) => path === file)?.bytes.toString("utf8") ?? "";
  // A file in Python that declares its dependencies in a comment needs the program that reads them.
  if (file.endsWith(".py") && /^# \/\/\/ script$/m.test(text)) return ["uv", "run", "--script"];
  const ending = file.split(".").at(-1) ?? "";
  const interpreter = Object.hasOwn(INTERPRETERS, ending) ? INTERPRETERS[ending] : undefined;
  if (interpreter !== undefined) return interpreter;
  throw problemAt(
    ["script_file"],
    `no program is known that runs ${JSON.stringify(file)}; name it under "interpreter", such as ["ruby"], or use an ending of ${Object.keys(INTERPRETERS).join(", ")}`,
  );
}

function timeoutOf(text: string): number {
  let ms: number;
  try {
    ms = parseDuration(text, "timeout");
  } catch (error) {
    throw problemAt(["timeout"], (error as Error).message);
  }
  if (ms > 0 && ms <= SCRIPT_LIMITS.timeoutMaxMs) return ms;
  throw problemAt(["timeout"], `${text} is not between 1ms and 1h`);
}

/** Parameters are flags of a command, so the schema is that of an object whose properties have plain names. */
function parametersOf(schema: JsonSchema = {}): JsonSchema {
  const wrong = (path: readonly string[], why: string): FileProblem =>
    problemAt(["parameters_schema", ...path], why);
  const problem = checkJsonSchema(schema);
  if (problem !== undefined) throw wrong([], `it is no JSON Schema: ${problem}`);
  if (schema["type"] !== undefined && schema["type"] !== "object")
    throw wrong(["type"], "parameters are the properties of an object");
  if (schema["additionalProperties"] !== undefined && schema["additionalProperties"] !== false)
    throw wrong(["additionalProperties"], "a script has the parameters of `properties` alone; leave it out");
  const properties = schema["properties"] ?? {};
  const names = Object.keys(properties);
  if (names.length > SCRIPT_LIMITS.parameters)
    throw wrong(
      ["properties"],
      `there are ${names.length} parameters, and ${SCRIPT_LIMITS.parameters} is the limit`,
    );
  const bad = names.find((one) => !/^[A-Za-z][\w-]{0,63}$/.test(one) || one === "check" || one === "help");
  if (bad !== undefined)
    throw wrong(
      ["properties", bad],
      "a parameter begins with a letter and has letters, digits, _ and -; `check` and `help` are taken",
    );
  const missing = requiredOf(schema).find((one) => !names.includes(one));
  if (missing !== undefined) throw wrong(["required"], `there is no parameter "${missing}"`);
  return { ...schema, type: "object", properties, additionalProperties: false };
}

function requiredOf(schema: JsonSchema): readonly string[] {
  return (schema["required"] as readonly string[] | undefined) ?? [];
}
