// Demands of agents and scripts: labels that the runner of their sessions must have (`demandsValue`,
// `unmetDemands`).
//
//   demands-1. A runner offers no agent whose demands it does not meet, so that no session of it begins
//       there. The demands of its scripts are among them. Demands do not concern a process of the user, nor
//       the local stack.

import { z } from "zod";

/** The end of the verdict about demands. */
export const DEMANDS_TEXT = "by runners with --label; a process of your own and the local stack ignore them";

export type Demands = Readonly<Record<string, string | number | boolean>>;

/** Demands as folders of agents and scripts have them. A tag is a label that is true. */
export const demandsValue = z
  .strictObject({
    hostname: z.string().nullish(),
    project_dir: z.string().nullish(),
    executor_profile: z.string().nullish(),
    executor_type: z.string().nullish(),
    tags: z.array(z.string().min(1)).default([]),
  })
  .describe("demands: hostname, project_dir, executor_profile, executor_type, tags");

export function demandsOf({ tags, ...demands }: z.output<typeof demandsValue>): Demands {
  const given = Object.entries(demands).flatMap(([name, value]) =>
    value === null || value === undefined ? [] : [[name, value] as const],
  );
  return { ...Object.fromEntries(given), ...Object.fromEntries(tags.map((tag) => [tag, true])) };
}

/** @returns the demands that these labels do not meet, such as `gpu=a100`. A tag is met by any value but `false`. */
export function unmetDemands(
  demands: Readonly<Record<string, unknown>>,
  labels: Readonly<Record<string, string>>,
): readonly string[] {
  return Object.entries(demands).flatMap(([name, wanted]) => {
    const label = Object.hasOwn(labels, name) ? labels[name] : undefined;
    const isMet = wanted === true ? label !== undefined && label !== "false" : label === String(wanted);
    return isMet ? [] : [wanted === true ? name : `${name}=${String(wanted)}`];
  });
}
