// `syncContents` brings the skills and scripts that agents of a coordinator name onto this machine, as far as
// its policy takes them.
//
//   - Only contents that an agent names are fetched, and no content that the policy does not take.
//   - The newest versions are kept beside the current one. A session thus goes on in the versions that it
//     began with, also on another machine.

import {
  readSkill,
  scriptsOfHooks,
  SKILL_FILE,
  type AgentPlaces,
  type AgentRecord,
  type PushedItem,
} from "@holdfast/agents";
import type { Catalogue } from "@holdfast/runner";
import { join } from "node:path";

export type Item = Catalogue["items"][number];
type Pushed = NonNullable<AgentPlaces["pushed"]>;

const VERSIONS_OFFERED = 10;

/** The current one first, then the tagged ones, then the newest. */
export function offeredVersions({ current, tags, versions }: Item): readonly string[] {
  const newest = versions.toReversed().map(({ hash }) => hash);
  return [...new Set([current, ...Object.values(tags), ...newest])].slice(0, VERSIONS_OFFERED);
}

/** @returns the contents that cannot be used, with the reasons. */
export async function syncContents(
  agents: readonly AgentRecord[],
  catalogue: Catalogue,
  pushed: Pushed,
): Promise<readonly { readonly what: string; readonly reason: string }[]> {
  const skills = new Set(agents.flatMap((agent) => agent.skills ?? []));
  const scripts = new Set(agents.flatMap((agent) => [...agent.scripts, ...scriptsOfHooks(agent)]));
  const problems = [
    ...(await syncKind("skill", skills, catalogue, pushed.skills)),
    ...(await syncKind("script", scripts, catalogue, pushed.scripts)),
  ];
  return problems;
}

async function syncKind(
  kind: "skill" | "script",
  wanted: ReadonlySet<string>,
  { items, content }: Catalogue,
  contents: Pushed["skills"],
): Promise<readonly { readonly what: string; readonly reason: string }[]> {
  const problems: { what: string; reason: string }[] = [];
  const named = items.filter((item) => item.kind === kind && wanted.has(item.name));
  const present: PushedItem[] = [];
  for (const item of named) {
    for (const hash of offeredVersions(item).filter((one) => contents.takes(one))) {
      const reason = await fetchContent(item, hash, content, contents);
      if (reason !== undefined)
        problems.push({ what: `${kind} ${item.name} (${hash.slice(0, 12)})`, reason });
    }
    present.push({ name: item.name, hash: item.current, isActive: item.active });
  }
  contents.replace(present);
  return problems;
}

/** @returns why the content cannot be used. */
async function fetchContent(
  item: Item,
  hash: string,
  content: Catalogue["content"],
  contents: Pushed["skills"],
): Promise<string | undefined> {
  if (contents.content(hash) !== undefined) return undefined;
  const found = await content(item, hash);
  if ("problem" in found) return found.problem;
  contents.keep({ hash, files: found.files });
  if (contents.content(hash) === undefined)
    return "its files are not those of one skill or script: too many, too large or too deep";
  if (item.kind !== "skill") return undefined;
  const { status, problem, verdicts } = readSkill(join(contents.folder, hash, SKILL_FILE), {
    name: item.name,
    scope: "coordinator",
    isRead: true,
    within: null,
  });
  if (status !== "refused") return undefined;
  return problem ?? verdicts.find(({ verdict }) => verdict === "refused")?.text ?? "it is refused";
}
