// The programs that Holdfast knows without a profile or a registry: `INCLUDED_PROGRAMS`. This module imports
// nothing, because the command reads the names at every start, and the adapters load slowly.

interface IncludedProgram {
  /** `own` is an adapter that Holdfast has for this program alone, and no registry replaces the program. */
  readonly adapter: "own" | "acp";
  /** The permission modes of its sessions. The first one is that of a session that asks for none. */
  readonly permissionModes: readonly ["default", ...string[]];
}

const INCLUDED_PROGRAMS = {
  "claude-code": { adapter: "own", permissionModes: ["default", "acceptEdits", "plan"] },
  codex: { adapter: "own", permissionModes: ["default", "acceptEdits", "plan"] },
  opencode: { adapter: "acp", permissionModes: ["default", "plan"] },
  gemini: { adapter: "acp", permissionModes: ["default", "acceptEdits", "plan"] },
  pi: { adapter: "own", permissionModes: ["default", "acceptEdits"] },
  "claude-acp": { adapter: "acp", permissionModes: ["default", "acceptEdits", "plan"] },
  "codex-acp": { adapter: "acp", permissionModes: ["default", "acceptEdits"] },
} as const satisfies Readonly<Record<string, IncludedProgram>>;

type Included = typeof INCLUDED_PROGRAMS;
/** The name of a program that Holdfast knows. */
export type IncludedName = keyof Included;

/** The programs with an adapter of this kind. */
export type IncludedWith<A extends IncludedProgram["adapter"]> = {
  [N in IncludedName]: Included[N]["adapter"] extends A ? N : never;
}[IncludedName];

/** The names of the program itself for its permission modes. */
export type ModesOf<N extends IncludedName> = Readonly<
  Record<Included[N]["permissionModes"][number], string>
>;

export const INCLUDED_NAMES = Object.keys(INCLUDED_PROGRAMS) as readonly IncludedName[];

export function isIncluded(name: string): name is IncludedName {
  return Object.hasOwn(INCLUDED_PROGRAMS, name);
}

export function hasOwnAdapter(name: string): name is IncludedWith<"own"> {
  return isIncluded(name) && INCLUDED_PROGRAMS[name].adapter === "own";
}

/** A program that is not included has the mode of every program alone. */
export function permissionModesOf(name: string): readonly ["default", ...string[]] {
  return isIncluded(name) ? INCLUDED_PROGRAMS[name].permissionModes : ["default"];
}
