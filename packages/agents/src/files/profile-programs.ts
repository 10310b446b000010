// The part of a profile that makes it an agent of its own (`ProfileProgram`): a remote agent, a tool, a
// program, or a harness.
//
// A profile has at most one of them, and then no field that belongs to the program of another agent.

import { join } from "node:path";
import { z } from "zod";

const text = z.string().trim().min(1).max(1_000);
const variable = z.string().regex(/^[A-Za-z_]\w{0,127}$/, "expected the name of a variable");
const command = z.tuple([text], text);
/** Places that a program needs in a sandbox. */
const place = z
  .string()
  .regex(/^(~\/|\/)[^\0]*$/, "expected an absolute path, or one that begins with ~/")
  .max(1_000);
const places = z.array(place).max(50).default([]);
const folders = z.strictObject({ written: places, read: places }).optional();
const variables = z.array(variable).max(50).optional();

/** The fields by which a profile chooses the program of an agent that Holdfast knows, and what this program gets. */
export const CHOICE_FIELDS = {
  program: z
    .string()
    .regex(/^(\/[^\0]+|[^/\0]+)$/, "expected an absolute path, or a name on the PATH")
    .max(1_000)
    .optional(),
  variables,
  keys: variables,
  folders,
};

/** The fields, by their names in the file. */
export const PROGRAM_FIELDS = {
  a2a: z
    .strictObject({
      url: z.url({ protocol: /^https?$/ }),
      /** The variable that holds the bearer token. */
      tokenVariable: variable.optional(),
    })
    .optional(),
  mcp: z
    .strictObject({
      command,
      tool: text,
      prompt: text.optional(),
      arguments: z.record(z.string(), z.unknown()).optional(),
      reply: z.strictObject({ tool: text, argument: text, field: text }).optional(),
      variables,
      keys: variables,
    })
    .optional(),
  custom: z
    .strictObject({
      command,
      protocol: z.enum(["acp", "lines"]),
      resumes: z.boolean(),
      variables,
      keys: variables,
      folders,
    })
    .optional(),
  harness: z
    .strictObject({
      /** The path of a module, from the folder of the profiles. */
      module: text,
      variables,
      keys: variables,
      folders,
    })
    .optional(),
};

export type ProfileProgram = z.output<z.ZodObject<typeof PROGRAM_FIELDS>>;

interface WithFolders {
  readonly folders?: { readonly written: readonly string[]; readonly read: readonly string[] } | undefined;
}

/** The fields with absolute paths. */
export function atHome<Fields extends WithFolders>(fields: Fields, home: string): Fields {
  const { folders: named } = fields;
  if (named === undefined) return fields;
  const whole = (path: string): string => (path.startsWith("~/") ? join(home, path.slice(2)) : path);
  return { ...fields, folders: { written: named.written.map(whole), read: named.read.map(whole) } };
}

/** The fields that stand beside them. */
const BESIDE = ["description", "agents", "deletesSessions", ...Object.keys(PROGRAM_FIELDS)];
/** The programs that get the tools by which an agent starts others. */
const STARTING = ["custom", "harness"];

/** Whether the fields of a profile make it an agent of its own. */
export function isProgram(fields: object): boolean {
  return programsOf(fields).length > 0;
}

/** @returns why a field cannot stand in a profile that is an agent of its own. */
export function whyNotBeside(field: string, fields: Readonly<Record<string, unknown>>): string | undefined {
  if (!isProgram(fields)) {
    if (field === "program" && fields["agent"] === undefined)
      return "not without `agent`: a program speaks the protocol of one agent";
    return field === "description" ? "only for a profile with a2a, mcp, custom or harness" : undefined;
  }
  if (!BESIDE.includes(field)) return "not in a profile that is an agent of its own";
  const [first = ""] = programsOf(fields);
  if (field === "agents" || field === "deletesSessions")
    return STARTING.includes(first) ? undefined : `not beside ${first}`;
  return field === "description" || field === first ? undefined : `not beside ${first}`;
}

function programsOf(fields: object): readonly string[] {
  return Object.entries(fields).flatMap(([name, value]) =>
    Object.hasOwn(PROGRAM_FIELDS, name) && value !== undefined ? [name] : [],
  );
}
