// `push | list | history | rollback | tag | activate | deactivate` of agent files, skills and scripts of a
// fleet, at its coordinator.

import { defined, UsageError } from "@holdfast/core";
import { CatalogueService, RunnerService, type CatalogueItem } from "@holdfast/proto";
import {
  partlyOfferedAgents,
  partlyOfferedText,
  unofferedAgents,
  unofferedText,
  type UnofferedAgent,
} from "@holdfast/proto/view";
import type { CoordinatorConnection } from "@holdfast/storage/remote";
import type { Client } from "@connectrpc/connect";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { cutTo, localTime, plain, plainLine, table } from "@holdfast/terminal/frame/plain-text";
import { noneTagged } from "@holdfast/terminal/frame/labels";
import { allRunners, askCoordinator } from "./coordinator-call.ts";

export type Kind = "agent" | "skill" | "script";

const HASH_CHARS = 12;
const CELL_CHARS = 60;
const UNOFFERED_CHARS = 2_000;

export interface PushedContent {
  readonly kind: Kind;
  readonly name: string;
  readonly description: string;
  /** The environments and variables that an agent file declares. Its sessions get no others of the coordinator. */
  readonly environments?: readonly string[];
  readonly variables?: readonly string[];
  readonly files: readonly { readonly path: string; readonly base64: string; readonly executable: boolean }[];
}

export async function pushContents(
  contents: readonly PushedContent[],
  args: Arguments,
  io: Io,
): Promise<number> {
  const tag = args.text("tag");
  const items = await asAdmin(args, io, async (catalogue) => {
    const pushed: CatalogueItem[] = [];
    for (const { files, environments = [], variables = [], ...content } of contents)
      pushed.push(
        await catalogue.push({
          ...content,
          files: [...files],
          environments: [...environments],
          variables: [...variables],
          ...defined({ tag }),
        }),
      );
    return pushed;
  });
  const lines = items.map(({ name, current, active }) => {
    const tagged = tag === undefined ? "" : `, tagged ${tag}`;
    return `${name} has version ${current.slice(0, HASH_CHARS)} at the coordinator${tagged}${active ? "" : "; it is inactive"}`;
  });
  io.show(items.map(itemJson), lines.join("\n"));
  io.note(NOTES[contents[0]?.kind ?? "agent"]);
  return 0;
}

const NOTES: Readonly<Record<Kind, string>> = {
  agent: "runners offer it where the policy of their machine allows agent files (`agentFiles`)",
  skill: "agent files of the coordinator get it when they name it under `skills`",
  script:
    "agent files of the coordinator get it when they name it under `scripts`, where the policy of the machine takes it (`allowScripts`)",
};

/** The command of a kind, and how it says that it means the coordinator. */
const COMMANDS: Readonly<Record<Kind, (action: string) => string>> = {
  agent: (action) => `agents ${action}`,
  skill: (action) => `skill ${action} --catalogue`,
  script: (action) => `script ${action} --catalogue`,
};

/** @param wanted tags that each agent of the list has: as a tag of a version, or in its file while a runner offers it. */
export async function listPushed(
  kind: Kind,
  args: Arguments,
  io: Io,
  wanted: readonly string[] = [],
): Promise<number> {
  const { items, known, offers } = await askCoordinator(args, io, async (connection) => {
    const listed = await connection.client(CatalogueService).list({ kind });
    const words = wanted.length === 0 ? [] : (await connection.client(RunnerService).listAgents({})).agents;
    const tagsOf = ({ name, tags }: CatalogueItem): readonly string[] => [
      ...Object.keys(tags),
      ...words.flatMap((agent) => (agent.name === name ? agent.tags : [])),
    ];
    const tagged = listed.items.filter((item) => wanted.every((tag) => tagsOf(item).includes(tag)));
    return {
      items: tagged,
      known: listed.items.map(tagsOf),
      offers: await offersOf(tagged, connection),
    };
  });
  const rows = items.map((item) =>
    [
      item.name,
      item.active ? "active" : "inactive",
      item.current.slice(0, HASH_CHARS),
      tagsText(item),
      item.description,
    ].map((cell) => plainLine(cell, CELL_CHARS, io.results.symbols.cut)),
  );
  const text =
    rows.length === 0
      ? (noneTagged(wanted, known) ?? `the coordinator has no ${kind}s`)
      : [
          ...table([["NAME", "STATUS", "VERSION", "TAGS", ""], ...rows]).map((line) =>
            cutTo(line, io.results.columns, io.results.symbols.cut),
          ),
          ...offers.lines,
        ].join("\n");
  io.show(
    items.map((item) => ({ ...itemJson(item), ...offersJson(item, offers) })),
    text,
  );
  return 0;
}

export async function showHistory(kind: Kind, name: string, args: Arguments, io: Io): Promise<number> {
  const { item, offers } = await askCoordinator(args, io, async (connection) => {
    const found = await connection.client(CatalogueService).get({ kind, name });
    return { item: found, offers: await offersOf([found], connection) };
  });
  const rows = item.versions.toReversed().map(({ hash, pushedAt, pushedBy }) => {
    const tags = Object.entries(item.tags).filter(([, tagged]) => tagged === hash);
    const marks = [...(hash === item.current ? ["current"] : []), ...tags.map(([tag]) => tag)];
    return [
      hash.slice(0, HASH_CHARS),
      localTime(Number(pushedAt)),
      plainLine(pushedBy, CELL_CHARS),
      marks.join(", "),
    ];
  });
  const lines = table([["VERSION", "PUSHED", "BY", ""], ...rows]);
  const isSaid = item.active || offers.lines.length > 0;
  const notes = [...offers.lines, ...(isSaid ? [] : [`${name} is inactive`])];
  io.show({ ...itemJson(item), ...offersJson(item, offers) }, [...lines, ...notes].join("\n"));
  return 0;
}

export interface ItemChange {
  readonly version?: string;
  readonly tag?: string;
  readonly active?: boolean;
}

export async function changeItem(
  kind: Kind,
  name: string,
  change: ItemChange,
  args: Arguments,
  io: Io,
): Promise<number> {
  const item = await asAdmin(args, io, (catalogue) => catalogue.change({ kind, name, ...change }));
  const version = item.current.slice(0, HASH_CHARS);
  const { tag } = change;
  const text =
    tag === undefined
      ? `${name} has version ${version}${item.active ? "" : ` and is inactive: ${INACTIVE[kind]}`}`
      : `the tag ${tag} of ${name} is version ${(item.tags[tag] ?? "").slice(0, HASH_CHARS)}`;
  io.show(itemJson(item), text);
  return 0;
}

const INACTIVE: Readonly<Record<Kind, string>> = {
  agent: "no session of it can be started",
  skill: "no session that needs it can be started",
  script: "no session that needs it can be started",
};

/** The version before the current one. */
export async function rollBack(
  kind: Kind,
  name: string,
  version: string | undefined,
  args: Arguments,
  io: Io,
): Promise<number> {
  if (version !== undefined) return changeItem(kind, name, { version }, args, io);
  const item = await asAdmin(args, io, (catalogue) => catalogue.get({ kind, name }));
  const at = item.versions.findIndex(({ hash }) => hash === item.current);
  const before = item.versions[at - 1];
  if (before === undefined)
    throw new UsageError(`${name} has no version before its present one`, {
      fix: `see its versions: ${io.call(COMMANDS[kind](`history ${name}`))}`,
    });
  return changeItem(kind, name, { version: before.hash }, args, io);
}

interface Offers {
  readonly none: readonly UnofferedAgent[];
  readonly partly: readonly UnofferedAgent[];
  readonly lines: readonly string[];
}

/**
 * The agents that no runner offers, or not each, with the reasons. Nothing for a caller who may not see
 * runners.
 */
async function offersOf(items: readonly CatalogueItem[], connection: CoordinatorConnection): Promise<Offers> {
  if (items.every(({ kind }) => kind !== "agent")) return NO_OFFERS;
  try {
    const runners = await allRunners(connection.client(RunnerService));
    const none = unofferedAgents(items, runners);
    const partly = partlyOfferedAgents(items, runners);
    const texts = [...none.map(unofferedText), ...partly.map(partlyOfferedText)];
    return { none, partly, lines: texts.map((text) => plainLine(text, UNOFFERED_CHARS)) };
  } catch (thrown) {
    if ((await connection.explained(thrown)).code === "insufficient_scope") return NO_OFFERS;
    throw thrown;
  }
}

const NO_OFFERS: Offers = { none: [], partly: [], lines: [] };

function offersJson({ kind, name }: CatalogueItem, { none, partly }: Offers) {
  const of = (agents: readonly UnofferedAgent[]) =>
    kind === "agent" ? agents.find((agent) => agent.name === name)?.reasons : undefined;
  return defined({ notOffered: of(none), partlyRefused: of(partly) });
}

function tagsText({ tags }: CatalogueItem): string {
  return Object.keys(tags).toSorted().join(", ");
}

function itemJson({ kind, name, description, current, active, tags, versions }: CatalogueItem) {
  return {
    kind,
    name,
    description,
    current,
    active,
    tags: { ...tags },
    versions: versions.map(({ hash, pushedAt, pushedBy }) => ({
      hash,
      pushedAt: Number(pushedAt),
      pushedBy,
    })),
  };
}

/** The files of a version, the current one without `version`. */
export async function showPushed(
  kind: Kind,
  name: string,
  mainFile: string,
  args: Arguments,
  io: Io,
): Promise<number> {
  const { item, files } = await asAdmin(args, io, async (catalogue) => {
    const found = await catalogue.get({ kind, name });
    return { item: found, ...(await catalogue.getContent({ kind, name, hash: found.current })) };
  });
  const main = files.find(({ path }) => path === mainFile);
  const text = Buffer.from(main?.base64 ?? "", "base64").toString("utf8");
  const paths = files.map(({ path }) => path);
  io.show(
    { ...itemJson(item), files: paths, text },
    [
      `${io.results.paint.bold(plainLine(name, CELL_CHARS))} (${kind} at the coordinator), ${item.active ? "active" : "inactive"}`,
      `  version: ${item.current}`,
      `  files: ${plainLine(paths.join(", "), 2_000)}`,
      "",
      plain(text).trimEnd(),
    ].join("\n"),
  );
  return 0;
}

function asAdmin<T>(
  args: Arguments,
  io: Io,
  ask: (catalogue: Client<typeof CatalogueService>) => Promise<T>,
): Promise<T> {
  return askCoordinator(args, io, (connection) => ask(connection.client(CatalogueService)));
}
