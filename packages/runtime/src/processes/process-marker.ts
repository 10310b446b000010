// The marker that each supervised process carries in its environment, and all that it starts: `EXECUTION_MARKER`.
//
// A process that is itself supervised adds a part to the marker that it was given (`m/n`). The marker of a process
// therefore finds everything below it, also after processes in between have died.

/** The environment variable that marks a supervised process and every process it starts. */
export const EXECUTION_MARKER = "HOLDFAST_EXECUTION";
/** The environment variable with the name that a caller gave (`tag`). */
export const TAG_MARKER = "HOLDFAST_TAG";

/**
 * Whether an environment, as /proc has it, carries the marker or one below it.
 *
 * @param marker an entry `NAME=value`
 */
export function isMarkedBy(environment: string, marker: string): boolean {
  const text = `\0${environment}\0`;
  return text.includes(`\0${marker}\0`) || text.includes(`\0${marker}/`);
}

/** The markers of an environment, as entries `NAME=value`. */
export function markersIn(environment: string): readonly string[] {
  return environment.split("\0").filter((variable) => variable.startsWith(`${EXECUTION_MARKER}=`));
}
