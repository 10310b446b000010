// `projectOf`: the project that a session belongs to, whose environments it has. `refuseForeignProject`: a caller
// whose token is for some projects starts no session of another one.

import { defined, HoldfastError, type Placement, type Session } from "@holdfast/core";
import type { Caller } from "../../call/caller.ts";
import type { ServiceHost } from "../service-host.ts";

/** The demand by which a start says to which project its session belongs. */
const PROJECT_DEMAND = "project";

/**
 * The project that the first session of a tree demands. An agent at work starts the sessions below it, and could
 * otherwise take the environments of another project.
 */
export async function projectOf(
  { storage }: Pick<ServiceHost, "storage">,
  {
    placement,
    parent,
  }: {
    readonly placement?: Session["placement"] | undefined;
    readonly parent?: Pick<Session, "sessionId"> | undefined;
  },
): Promise<string | undefined> {
  const seen = new Set<string>();
  let [first, above] = [placement, parent?.sessionId];
  while (above !== undefined && !seen.has(above)) {
    seen.add(above); // Imported rows may form a cycle of parents.
    const session: Session | undefined = await storage.reader.session(above);
    if (session === undefined || session.placement?.owner !== placement?.owner) return undefined;
    // mutant: project-of-a-child
    [first, above] = [session.placement, session.parent?.sessionId];
  }
  return first?.demands?.[PROJECT_DEMAND];
}

/**
 * The demands of a session without a parent that another session creates, such as its successor. It has the
 * project of that session, whatever project it demands.
 */
export function inProject(project: string | undefined, demands: Placement["demands"]): Placement["demands"] {
  // mutant: project-of-a-successor
  if (demands?.[PROJECT_DEMAND] === undefined) return demands;
  const { [PROJECT_DEMAND]: _wanted, ...others } = demands;
  return { ...others, ...defined({ [PROJECT_DEMAND]: project }) };
}

/**
 * The same for a session that a caller creates below another one, whose project it has. @throws HoldfastError
 * `insufficient_scope`
 */
export async function refuseForeignTree(
  host: Pick<ServiceHost, "storage">,
  { projects, owner }: Pick<Caller, "projects" | "owner">,
  {
    placement,
    parent,
  }: {
    readonly placement?: Placement | undefined;
    readonly parent?: Pick<Session, "sessionId"> | undefined;
  },
  at: string,
): Promise<void> {
  if (projects === undefined || parent === undefined) return;
  const project = await projectOf(host, { placement: { ...placement, ...defined({ owner }) }, parent });
  // mutant: project-below-of-other-tokens
  refuseForeignProject({ projects }, { demands: defined({ [PROJECT_DEMAND]: project }) }, at);
}

/** @param at the place of the demands in the request. @throws HoldfastError `insufficient_scope` */
export function refuseForeignProject(
  { projects }: Pick<Caller, "projects">,
  placement: Placement | undefined,
  at: string,
): void {
  const project = placement?.demands?.[PROJECT_DEMAND];
  // mutant: project-of-other-tokens
  if (projects === undefined || project === undefined || projects.includes(project)) return;
  throw new HoldfastError("insufficient_scope", `the token is not for sessions of the project ${project}`, {
    at,
    expected: `one of ${projects.join(", ")}, or no project`,
    fix: "demand another project, or have an admin make a token for this one",
  });
}
