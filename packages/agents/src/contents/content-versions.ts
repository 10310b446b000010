// `VersionsFile`: the versions of scripts or skills that the user has pushed or approved. The file lies in
// the user's data folder, never in a project.
//
//   - The file names versions by the hashes of their contents. A version that is added again moves to the
//     end.
//   - A tag names one version. It stays there until the user moves it.

import { dirname } from "node:path";
import { makePrivateFolder, readUserFile, replacePrivate } from "@holdfast/system";
import { z } from "zod";

export interface ContentVersions {
  /** The hash of the version that agents use; `null` before the first one. */
  readonly current: string | null;
  /** In the order in which they were added. */
  readonly versions: readonly ContentVersion[];
  /** Hashes by the names of tags. */
  readonly tags: Readonly<Record<string, string>>;
}

interface ContentVersion {
  readonly hash: string;
  /** When it was added last, in milliseconds since 1970. */
  readonly at: number;
}

export const NO_VERSIONS: ContentVersions = { current: null, versions: [], tags: {} };

/**
 * Versions of one content. The oldest ones without a tag are forgotten, and their contents stay for the
 * sessions that use them.
 */
const VERSIONS_MAX = 100;
/** The fewest characters of a hash that name a version. */
const HASH_CHARS_MIN = 4;
/** How much of a hash people see. */
export const HASH_CHARS = 12;

const hash = z.string().regex(/^[0-9a-f]{64}$/);
const entry = z.strictObject({
  current: hash,
  versions: z.array(z.strictObject({ hash, at: z.number() })),
  tags: z.record(z.string(), hash).optional(),
});
const entries = z.record(z.string(), z.record(z.string(), entry));

type Entries = z.output<typeof entries>;

export class VersionsFile {
  readonly #path: string;
  readonly #kind: "scripts" | "skills";

  constructor(path: string, kind: "scripts" | "skills") {
    this.#path = path;
    this.#kind = kind;
  }

  /** @param owner the real path of a project, or `user`. @throws HoldfastError `config_invalid` */
  read(owner: string, name: string): ContentVersions {
    return versionsIn(ownEntry(this.#all(), owner) ?? {}, name);
  }

  /** Adds a version, which is the current one then. @throws HoldfastError `config_invalid` */
  add(owner: string, name: string, added: ContentVersion): void {
    this.addAll(owner, [[name, added]]);
  }

  /**
   * Adds a version of each of several contents by one write: a project may have a thousand of them.
   *
   * @throws HoldfastError `config_invalid`
   */
  addAll(owner: string, added: readonly (readonly [name: string, version: ContentVersion])[]): void {
    this.#change(owner, added, (known, version) => {
      const others = known.versions.filter((one) => one.hash !== version.hash);
      const tagged = new Set(Object.values(known.tags));
      const forgotten = others
        .filter((one) => !tagged.has(one.hash))
        .slice(0, Math.max(0, others.length + 1 - VERSIONS_MAX));
      const versions = [...others.filter((one) => !forgotten.includes(one)), version];
      return { ...known, current: version.hash, versions };
    });
  }

  /** @param chosen the hash of one of its versions. @throws HoldfastError `config_invalid` */
  choose(owner: string, name: string, chosen: string): void {
    this.#change(owner, [[name, chosen]], (known, current) => ({ ...known, current }));
  }

  /** Puts a tag on one of its versions. @throws HoldfastError `config_invalid` */
  tag(owner: string, name: string, tag: string, tagged: string): void {
    this.#change(owner, [[name, tagged]], (known, hashOfTag) => ({
      ...known,
      tags: { ...known.tags, [tag]: hashOfTag },
    }));
  }

  #change<Value>(
    owner: string,
    values: readonly (readonly [name: string, value: Value])[],
    change: (known: ContentVersions, value: Value) => ContentVersions,
  ): void {
    if (values.length === 0) return;
    makePrivateFolder(dirname(this.#path));
    const before = this.#all();
    const own = ownEntry(before, owner) ?? {};
    const changed = values.map(([name, value]) => {
      const { current, versions, tags } = change(versionsIn(own, name), value);
      return [name, { current, versions, ...(Object.keys(tags).length === 0 ? {} : { tags }) }] as const;
    });
    const after = { ...before, [owner]: { ...own, ...Object.fromEntries(changed) } };
    replacePrivate(this.#path, `${JSON.stringify({ [this.#kind]: after }, null, 2)}\n`);
  }

  #all(): Entries {
    const kind = this.#kind;
    const found = readUserFile(this.#path, {
      what: `versions of ${kind}`,
      expected: `{ "${kind}": { "/path/of/a/project": { "NAME": { "current": "HASH", "versions": [] } } } }`,
      fix: `remove the file, and then ${kind === "scripts" ? "push the scripts again: `holdfast script push`" : "approve the skills again: `holdfast skill approve`"}`,
      schema: z.strictObject({ [kind]: entries }),
    });
    return found?.[kind] ?? {};
  }
}

function versionsIn(own: Entries[string], name: string): ContentVersions {
  const found = ownEntry(own, name);
  return found === undefined ? NO_VERSIONS : { ...found, tags: found.tags ?? {} };
}

/** The hash of the version that a tag or the beginning of a hash names. */
export function hashOfVersion({ versions, tags }: ContentVersions, wanted: string): string | undefined {
  const tagged = ownEntry(tags, wanted);
  if (tagged !== undefined) return tagged;
  const named = versions.filter(({ hash: one }) => one.startsWith(wanted));
  return wanted.length >= HASH_CHARS_MIN && named.length === 1 ? named[0]?.hash : undefined;
}

/** The versions for an error, the newest first, each with its tags. */
export function versionsText({ versions, tags }: ContentVersions): string {
  const texts = versions.toReversed().map(({ hash: one }) => {
    const names = Object.keys(tags).filter((tag) => tags[tag] === one);
    return `${one.slice(0, HASH_CHARS)}${names.length === 0 ? "" : ` (${names.join(", ")})`}`;
  });
  return texts.join(", ");
}

/** A tag is no text that could be the beginning of a hash. */
export function isTag(text: string): boolean {
  return /^[A-Za-z0-9][\w.-]{0,63}$/.test(text) && !/^[0-9a-f]{4,}$/.test(text);
}

function ownEntry<Value>(all: Readonly<Record<string, Value>>, name: string): Value | undefined {
  return Object.hasOwn(all, name) ? all[name] : undefined;
}
