// `inputInFolder`: the input of a session whose caller names the folder to work in (`project_dir`).
//
//   - Only an agent that takes a folder gets one. An agent without a schema, such as an executor, gets it
//     beside its parameters. A schema takes it by the property `project_dir`. The owner of a runner decides
//     in which folders an executor may work.
//   - The call is refused for every other agent, because its session would work in another folder without a
//     word.

import { UsageError } from "@holdfast/core";

const NAME = "project_dir";

export interface WantedFolder {
  readonly agent: string;
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly folder: string;
  /** The JSON Schema of the agent's input; `undefined` for an agent that has none. */
  readonly schema: unknown;
}

/** @throws UsageError */
export function inputInFolder({ agent, parameters, folder, schema }: WantedFolder): unknown {
  const besideParameters = { parameters, [NAME]: folder };
  if (schema === undefined) return besideParameters;
  if (hasProperty(schema, NAME))
    return hasProperty(schema, "parameters") ? besideParameters : { ...parameters, [NAME]: folder };
  throw new UsageError(`agent "${agent}" takes no ${NAME}`, {
    at: NAME,
    got: folder.slice(0, 200),
    expected: `an executor, or an agent whose parameters have the property ${NAME}`,
    fix: `leave ${NAME} out: the agent works in the folder of its runner. For another folder, start a runner there, and choose it by a label (X-Additional-Demands)`,
  });
}

/** Whether the schema, or an alternative in it, names the property. A schema that permits any property names none. */
function hasProperty(schema: unknown, name: string): boolean {
  if (typeof schema !== "object" || schema === null) return false;
  const { properties, anyOf, oneOf, allOf } = schema as Readonly<Record<string, unknown>>;
  if (typeof properties === "object" && properties !== null && Object.hasOwn(properties, name)) return true;
  return [anyOf, oneOf, allOf].some(
    (parts) => Array.isArray(parts) && parts.some((part) => hasProperty(part, name)),
  );
}
