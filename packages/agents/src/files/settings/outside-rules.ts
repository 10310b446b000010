// `OutsideRules`: the rules of a tool that stand outside of its agent files, from every place where the tool
// looks for them.
//
//   - They restrict every agent that is read from a folder of the tool. They allow only where the user's own
//     files say so, or the files of a project that the user trusts.
//   - The rules of all layers of a project count.
//   - Rules that cannot be kept refuse the agent's file, and a verdict says why.

import { relative } from "node:path";
import { z } from "zod";

import { layerOf, type AgentPlaces, type PlacedDialect } from "../../places/agent-places.ts";
import type { AgentDraft } from "../../format/agent-draft.ts";
import type { FieldReport } from "../../format/field-report.ts";
import { areTrustedRules, isTrusted } from "../../trust/trusted-folders.ts";
import { claudeRules, claudeSettings, type OutsideOptions, type RuledField } from "./claude-rules.ts";
import { otherRules } from "./other-rules.ts";
import { opencodeRules, opencodeSettings } from "./opencode-rules.ts";
import type { SettingsFile } from "../../places/settings-file.ts";

/** The settings are read once. A change of them counts for the next one of these. */
export class OutsideRules {
  readonly #places: AgentPlaces;
  readonly #files = new Map<PlacedDialect, readonly SettingsFile[]>();
  readonly #believed = new Map<string, boolean>();

  constructor(places: AgentPlaces) {
    this.#places = places;
  }

  /**
   * Adds the rules to an agent before its own fields are read.
   *
   * @param values the fields of the agent's file.
   * @returns the fields that are still to be read.
   */
  apply(
    dialect: PlacedDialect,
    values: Readonly<Record<string, unknown>>,
    draft: AgentDraft,
    report: FieldReport,
  ): Readonly<Record<string, unknown>> {
    if (dialect !== "opencode") return values;
    const files = this.#filesOf("opencode", opencodeSettings);
    const { fields, left } = opencodeRules(files, values, draft, this.#options);
    this.#report(fields, report);
    return left;
  }

  /** Adds the rules to an agent whose own fields are read. */
  restrict(
    dialect: PlacedDialect,
    values: Readonly<Record<string, unknown>>,
    draft: AgentDraft,
    report: FieldReport,
  ): void {
    if (dialect === "claude") {
      this.#report(claudeRules(this.#filesOf("claude", claudeSettings), draft, this.#options), report);
    } else if (dialect === "codex" || dialect === "gemini" || dialect === "copilot") {
      this.#report(otherRules(dialect, this.#places, values, draft), report);
    }
  }

  /**
   * The files of a trusted project whose rules that allow do not count, because the file has changed since it was
   * trusted.
   */
  changedFiles(dialect: string): readonly string[] {
    const files =
      dialect === "claude"
        ? this.#filesOf("claude", claudeSettings)
        : dialect === "opencode"
          ? this.#filesOf("opencode", opencodeSettings)
          : [];
    const { trustFile } = this.#places;
    return files
      .filter(({ layer, values }) => layer !== undefined && mayAllow(values) && isTrusted(trustFile, layer))
      .filter((file) => !this.#isBelieved(file))
      .map(({ path }) => path);
  }

  get #options(): OutsideOptions {
    return { places: this.#places, isBelieved: this.#isBelieved };
  }

  #filesOf(
    dialect: PlacedDialect,
    read: (places: AgentPlaces) => readonly SettingsFile[],
  ): readonly SettingsFile[] {
    const known = this.#files.get(dialect) ?? read(this.#places);
    this.#files.set(dialect, known);
    return known;
  }

  /** Whether what a file allows counts: a project's file has the content that the user trusts. */
  readonly #isBelieved = ({ path, owner }: SettingsFile): boolean => {
    const { trustFile, project, trustsProject = false } = layerOf(this.#places, path);
    const known = this.#believed.get(path);
    if (known !== undefined) return known;
    const isOwn = owner !== "project" || trustsProject;
    const isBelieved = isOwn || (isTrusted(trustFile, project) && areTrustedRules(trustFile, project, path));
    this.#believed.set(path, isBelieved);
    return isBelieved;
  };

  #report(fields: readonly RuledField[], report: FieldReport): void {
    for (const { file, field, ruling } of fields)
      report.add([`${this.#shown(file.path)}: ${field}`], ...ruling);
  }

  #shown(path: string): string {
    const inside = relative(this.#places.project, path);
    return inside.startsWith("..") ? path : inside;
  }
}

const allowing = z.looseObject({ permissions: z.looseObject({ allow: z.array(z.unknown()).min(1) }) });

/** Whether a file of Claude Code or of OpenCode has a rule that allows calls. */
function mayAllow(values: SettingsFile["values"]): boolean {
  return allowing.safeParse(values).success || /:"allow"/.test(JSON.stringify(values));
}
