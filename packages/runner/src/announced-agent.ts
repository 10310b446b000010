// `announcementOf`: what a runner tells its coordinator of an agent, so that inputs are checked before a
// session exists. `announcedRefusals`: the agents of the catalogue that the runner does not offer.

import { defined, type Budget } from "@holdfast/core";
import type { Agent } from "@holdfast/runtime";

export interface AnnouncedAgent {
  readonly name: string;
  readonly version: string;
  /** The JSON Schema of its input as text. Absent where the agent has none, or one without such a form. */
  readonly inputSchema?: string;
  /** Its sessions can be started without an input. */
  readonly inputOptional?: true;
  /** The purpose of the agent, for people who start sessions. */
  readonly description?: string;
  /** Words by which a list of agents is filtered. */
  readonly tags?: string[];
  /** The budget of each session that is started without one. */
  readonly budget?: Budget;
  /** Names of the variables that each start gives. */
  readonly requiredVariables?: string[];
  /** Set for an agent that gets environments of the coordinator: the names that its machine has none for. */
  readonly environments?: { readonly names: string[] };
}

/** An agent of the catalogue that a runner does not offer in its current version. */
export interface RefusedAgent {
  readonly name: string;
  /** The reason, for people at the coordinator. */
  readonly problem: string;
}

const DESCRIPTION_CHARS = 4_000;
const TAGS_MAX = 50;
const VARIABLES_MAX = 100;
const REFUSALS_MAX = 1_000;
const PROBLEM_CHARS = 1_000;
/** The bytes of all problems of a runner, which fit into a registration beside the schemas. */
const PROBLEM_BYTES = 262_144;

/** The bytes of all schemas of a runner. A coordinator refuses more. */
export const SCHEMA_BYTES = 262_144;

/**
 * @param bytesLeft a larger schema is not announced.
 * @param environments those of the coordinator; absent where the agent gets none.
 */
export function announcementOf(
  { name, version, input, description, tags, budget, requiredVariables }: Agent,
  bytesLeft: number,
  environments?: readonly string[],
): AnnouncedAgent {
  const purpose = description?.slice(0, DESCRIPTION_CHARS);
  const announced = {
    name,
    version,
    ...defined({ description: purpose, budget }),
    ...(tags.length === 0 ? {} : { tags: tags.slice(0, TAGS_MAX) }),
    ...(requiredVariables.length === 0
      ? {}
      : { requiredVariables: requiredVariables.slice(0, VARIABLES_MAX) }),
    ...(environments === undefined ? {} : { environments: { names: [...environments] } }),
  };
  const inputSchema = schemaText(input);
  if (input === undefined || inputSchema === undefined || Buffer.byteLength(inputSchema) > bytesLeft)
    return announced;
  return { ...announced, inputSchema, ...(takesNothing(input) ? { inputOptional: true } : {}) };
}

/**
 * Within the limits of a registration, because a coordinator refuses the whole registration otherwise. The
 * rest is left out.
 */
export function announcedRefusals(refused: readonly RefusedAgent[]): readonly RefusedAgent[] {
  let bytes = 0;
  return refused
    .slice(0, REFUSALS_MAX)
    .map(({ name, problem }) => {
      const line = problem.replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ").trim();
      return { name, problem: line === "" ? "it gave no reason" : line.slice(0, PROBLEM_CHARS) };
    })
    .filter(({ problem }) => (bytes += Buffer.byteLength(problem)) <= PROBLEM_BYTES);
}

function schemaText(input: Agent["input"]): string | undefined {
  try {
    const schema = input?.["~standard"].jsonSchema?.input({ target: "draft-2020-12" });
    if (schema === undefined) return undefined;
    const { $schema: _, ...rest } = schema;
    return JSON.stringify(rest);
  } catch {
    return undefined; // The schema has no such form.
  }
}

/** Whether the schema accepts a missing input. A schema that answers later may do so. */
function takesNothing(input: NonNullable<Agent["input"]>): boolean {
  try {
    const result = input["~standard"].validate(undefined);
    return result instanceof Promise || result.issues === undefined;
  } catch {
    return true;
  }
}
