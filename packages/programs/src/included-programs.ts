// The programs that Holdfast knows without a profile or a registry: `INCLUDED_PROGRAMS`. This module imports
// nothing, because the command reads the names at every start, and the adapters load slowly.

interface IncludedProgram {
  /** `own` is an adapter that Holdfast has for this program alone, and no registry replaces the program. */
  readonly adapter: "own" | "acp";
  /** The permission modes of its sessions. The first one is that of a session that asks for none. */
  readonly permissionModes: readonly ["default", ...string[]];
  /** Whether it has commands of its own (`/name …`) that a message may call. */
  readonly hasCommands: boolean;
}

const INCLUDED_PROGRAMS = {
  "claude-code": { adapter: "own", permissionModes: ["default", "acceptEdits", "plan"], hasCommands: true },
  codex: { adapter: "own", permissionModes: ["default", "acceptEdits", "plan"], hasCommands: false },
  opencode: { adapter: "acp", permissionModes: ["default", "plan"], hasCommands: true },
  gemini: { adapter: "acp", permissionModes: ["default", "acceptEdits", "plan"], hasCommands: true },
  pi: { adapter: "own", permissionModes: ["default", "acceptEdits"], hasCommands: true },
  "claude-acp": { adapter: "acp", permissionModes: ["default", "acceptEdits", "plan"], hasCommands: true },
  "codex-acp": { adapter: "acp", permissionModes: ["default", "acceptEdits"], hasCommands: true },
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

/** Whether a message can call a command of the program. */
export function hasCommands(name: string): boolean {
  return isIncluded(name) && INCLUDED_PROGRAMS[name].hasCommands;
}
