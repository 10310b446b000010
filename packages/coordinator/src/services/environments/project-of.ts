// `projectOf`: the project that a session belongs to, whose environments it has.

import type { Session } from "@holdfast/core";
import type { ServiceHost } from "../service-host.ts";

/** The demand by which a start says to which project its session belongs. */
const PROJECT_DEMAND = "project";

/** The project of a session, which the sessions below it belong to as well. */
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
  let project = placement?.demands?.[PROJECT_DEMAND];
  for (let above = parent?.sessionId; project === undefined && above !== undefined && !seen.has(above);) {
    seen.add(above); // Imported rows may form a cycle of parents.
    const session: Session | undefined = await storage.reader.session(above);
    if (session === undefined || session.placement?.owner !== placement?.owner) return undefined;
    project = session.placement?.demands?.[PROJECT_DEMAND];
    above = session.parent?.sessionId;
  }
  return project;
}
