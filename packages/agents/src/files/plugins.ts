// `findPlugins`: the Agent Plugins of a project and its user, from `.agents/plugins`. A plugin has skills and
// MCP servers. The format is version 1.0.0 of agent-plugins.org.
//
//   - A plugin whose `plugin.json` is wrong is refused as a whole. Unknown fields of it are ignored, as the
//     specification says.
//   - Plugins of a project that the user does not trust are listed, and not read.
//   - A plugin of a project lies inside the project, also when links are followed.
//   - A plugin of the project goes before one of the user with its name, which is hidden.

import { existsSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { z } from "zod";
import { layersOf, namesIn, realPath, requireInside, type AgentPlaces } from "../places/agent-places.ts";
import { newDraft } from "../format/agent-draft.ts";
import { FieldReport, type FieldVerdict } from "../format/field-report.ts";
import { field, HONOURED, ignored, readFields, refused, type FieldTable } from "../format/fields.ts";
import { FileProblem, readJson } from "../format/front-matter.ts";
import type { ProjectPath } from "../places/project-inputs.ts";
import { isTrusted } from "../trust/trusted-folders.ts";

export interface Plugin {
  /** The path of its `plugin.json`. */
  readonly path: string;
  readonly folder: string;
  /** The name of its folder where it was not read. */
  readonly name: string;
  readonly description: string;
  readonly scope: "project" | "user";
  readonly status: "loaded" | "refused" | "untrusted" | "hidden";
  readonly verdicts: readonly FieldVerdict[];
  /** The reason why the file as a whole cannot be used. */
  readonly problem: string | null;
}

export const PLUGINS = ".agents/plugins" satisfies ProjectPath;
const MANIFEST = "plugin.json";
const SCHEMA = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json";

const FOR_PEOPLE = "it is for people";
const text = (what: string) => field(z.string().describe(what), () => ignored(FOR_PEOPLE));

const TABLE: FieldTable = {
  restricting: [],
  owner: "of an Agent Plugin",
  rules: {
    $schema: field(z.unknown(), (value) =>
      value === SCHEMA ? HONOURED : refused(`Holdfast reads version 1.0.0 of the format alone: ${SCHEMA}`),
    ),
    name: field(z.string().describe("the name of the plugin"), (value, draft) => {
      const isName = /^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/.test(value) && !/--|\.\./.test(value);
      if (!isName || value.length > 64)
        return refused(
          "a plugin's name has up to 64 small letters, digits, and single hyphens and periods between them",
        );
      draft.name = value;
      return HONOURED;
    }),
    description: field(z.string().describe("what the plugin does"), (value, draft) => {
      draft.description = value.trim();
      return HONOURED;
    }),
    version: text("the version of the plugin"),
    author: field(z.record(z.string(), z.unknown()).describe("name, email, url"), () => ignored(FOR_PEOPLE)),
    homepage: text("an address"),
    repository: text("an address"),
    license: text("the name of a license"),
    keywords: field(z.array(z.string()).describe("words"), () => ignored(FOR_PEOPLE)),
    extensions: field(z.unknown(), () => ignored("they are for other programs")),
  },
};

/** @throws HoldfastError `config_invalid` when the file of trusted folders cannot be used. */
export function findPlugins(places: AgentPlaces): readonly Plugin[] {
  const { home } = places;
  const ofUser = home === undefined ? [] : manifestsIn(home);
  const known = new Set<string>();
  return [
    ...layersOf(places).flatMap(pluginsOfLayer),
    ...ofUser.map((path) => readPlugin(path, "user", undefined)),
  ].map((plugin) => {
    if (plugin.status !== "loaded") return plugin;
    // A plugin of the project goes before one of the user with its name.
    if (known.has(plugin.name)) return { ...plugin, status: "hidden" };
    known.add(plugin.name);
    return plugin;
  });
}

function pluginsOfLayer({ project, home, trustFile, trustsProject = false }: AgentPlaces): readonly Plugin[] {
  const root = realPath(project);
  const isHome = home !== undefined && realPath(home) === root;
  const found = isHome ? [] : manifestsIn(project);
  const isRead = found.length > 0 && (trustsProject || isTrusted(trustFile, project));
  return found.map((path) => (isRead ? readPlugin(path, "project", root) : untrusted(path)));
}

/** The files `NAME/SKILL.md` in the folder `skills` of a plugin, unless the plugin may not be used. */
export function skillsOfPlugin({ folder, status }: Plugin, file: string): readonly string[] {
  if (status === "refused" || status === "hidden") return [];
  const skills = join(folder, "skills");
  return namesIn(skills)
    .map((name) => join(skills, name, file))
    .filter((path) => existsSync(path));
}

function manifestsIn(root: string): readonly string[] {
  return namesIn(join(root, PLUGINS))
    .map((name) => join(root, PLUGINS, name, MANIFEST))
    .filter((path) => existsSync(path));
}

function untrusted(path: string): Plugin {
  return { ...unread(path, "project"), status: "untrusted" };
}

function unread(path: string, scope: Plugin["scope"]): Omit<Plugin, "status"> {
  const folder = dirname(path);
  return { path, folder, name: basename(folder), description: "", scope, verdicts: [], problem: null };
}

/** @param within the folder that the plugin must lie in; `undefined` for one of the user. */
function readPlugin(path: string, scope: Plugin["scope"], within: string | undefined): Plugin {
  const plugin = unread(path, scope);
  try {
    requireInside(path, within, { what: "plugin" });
    const values = readJson(path);
    const draft = newDraft(plugin.name, "");
    const report = new FieldReport();
    readFields(values, TABLE, draft, report);
    if (!Object.hasOwn(values, "$schema"))
      report.add(["$schema"], "refused", `it is missing: write "${SCHEMA}"`);
    if (!Object.hasOwn(values, "name"))
      report.add(["name"], "refused", "it is missing: give the plugin a name");
    const { verdicts } = report;
    const status = verdicts.some(({ verdict }) => verdict === "refused") ? "refused" : "loaded";
    return { ...plugin, name: draft.name, description: draft.description, verdicts, status };
  } catch (error) {
    if (!(error instanceof FileProblem)) throw error;
    return { ...plugin, status: "refused", problem: error.message };
  }
}
