// `unofferedAgents` and `partlyOfferedAgents`: the agents of a catalogue whose current version no runner
// offers, or not each, and the reasons, for people.
//
// Pure, over plain JSON, so that a command and the page say the same. Problems are texts of other machines:
// nothing here makes text safe for a terminal or for HTML.

/** An item of the catalogue. */
export interface PlainItem {
  readonly kind: string;
  readonly name: string;
  /** The hash of its current version. */
  readonly current: string;
  readonly active?: boolean;
}

export interface PlainRunner {
  readonly name: string;
  readonly status: string;
  readonly agents?: readonly { readonly name: string; readonly version?: string | undefined }[];
  /** The agents whose current version it does not offer. */
  readonly refusedAgents?: readonly { readonly name: string; readonly problem: string }[];
}

export interface UnofferedAgent {
  readonly name: string;
  /** Each is a clause about the agent, which `unofferedText` joins. */
  readonly reasons: readonly string[];
}

/** The beginning of a hash by which runners offer a version of the catalogue. */
const VERSION_CHARS = 16;
/** The runners that are named for one problem. */
const NAMED_MAX = 3;

export function unofferedAgents(
  items: readonly PlainItem[],
  runners: readonly PlainRunner[],
): readonly UnofferedAgent[] {
  const online = runners.filter(({ status }) => status === "online");
  return items
    .filter((item) => item.kind === "agent" && (item.active !== true || !isOffered(item, online)))
    .map((item) => ({ name: item.name, reasons: reasonsOf(item, online) }));
}

/** The agents whose current version some runners offer, and others refuse although their policy allows the name. */
export function partlyOfferedAgents(
  items: readonly PlainItem[],
  runners: readonly PlainRunner[],
): readonly UnofferedAgent[] {
  const online = runners.filter(({ status }) => status === "online");
  return items
    .filter((item) => item.kind === "agent" && item.active === true && isOffered(item, online))
    .map(({ name }) => ({ name, reasons: refusalsOf(name, online) }))
    .filter(({ reasons }) => reasons.length > 0);
}

export function partlyOfferedText({ name, reasons }: UnofferedAgent): string {
  return `the current version of ${name} is not offered by every runner: ${reasons.join("; ")}`;
}

export function unofferedText({ name, reasons }: UnofferedAgent): string {
  return `the current version of ${name} is not offered: ${reasons.join("; ")}`;
}

function isOffered({ name, current }: PlainItem, online: readonly PlainRunner[]): boolean {
  const version = current.slice(0, VERSION_CHARS);
  return online.some(({ agents = [] }) =>
    agents.some(
      (offered) => offered.name === name && (offered.version === undefined || offered.version === version),
    ),
  );
}

function reasonsOf({ name, active }: PlainItem, online: readonly PlainRunner[]): readonly string[] {
  if (active !== true) return [`it is inactive, and \`holdfast agents activate ${name}\` activates it`];
  if (online.length === 0) return ["no runner is online"];
  const refusals = refusalsOf(name, online);
  if (refusals.length > 0) return refusals;
  const are = online.length === 1 ? "one runner is online" : `${online.length} runners are online`;
  return [
    `${are}, and no policy there allows it: \`agentFiles\` of a runner's policy allows a pushed agent by its name, or all by \`*\``,
  ];
}

function refusalsOf(name: string, online: readonly PlainRunner[]): readonly string[] {
  const namesByProblem = new Map<string, string[]>();
  for (const runner of online)
    for (const { problem } of (runner.refusedAgents ?? []).filter((refused) => refused.name === name))
      namesByProblem.set(problem, [...(namesByProblem.get(problem) ?? []), runner.name]);
  return [...namesByProblem].map(([problem, names]) => `${refusers(names)} it: ${problem}`);
}

function refusers(names: readonly string[]): string {
  if (names.length === 1) return `runner ${names[0]} refuses`;
  const more = names.length - NAMED_MAX;
  return `runners ${names.slice(0, NAMED_MAX).join(", ")}${more > 0 ? ` and ${more} more` : ""} refuse`;
}
