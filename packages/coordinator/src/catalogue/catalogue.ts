// `Catalogue`: agent files, skills and scripts of a fleet by their versions, as documents of the storage.
//
//   - A content is stored by its hash, in the transaction that adds it to its item. It is never changed.
//   - The list of items is at most `KNOWN_MS` old. Changes that this coordinator stores are known at once.
//   - A damaged item is left out of the list, and breaks no other item.

import { createHash } from "node:crypto";
import {
  type AgentStorage,
  type Audit,
  type Change,
  type Clock,
  contentPathProblem,
  contentText,
  defined,
  HoldfastError,
  LimitError,
  NotFoundError,
  UsageError,
} from "@holdfast/core";

export type ItemKind = "agent" | "skill" | "script";

export interface StoredItem {
  readonly kind: ItemKind;
  readonly name: string;
  readonly description: string;
  readonly isActive: boolean;
  /** The hash of the current version. */
  readonly current: string;
  readonly tags: Readonly<Record<string, string>>;
  /** In the order in which they were pushed. */
  readonly versions: readonly StoredVersion[];
}

interface StoredVersion extends Partial<Declared> {
  readonly hash: string;
  readonly at: number;
  readonly by: string;
}

/** The environments and variables that a version of an agent file declares. */
export interface Declared {
  readonly environments: readonly string[];
  readonly variables: readonly string[];
}

export interface StoredFile {
  readonly path: string;
  readonly base64: string;
  readonly executable: boolean;
}

export interface Pushed extends Declared {
  readonly kind: ItemKind;
  readonly name: string;
  readonly description: string;
  readonly files: readonly StoredFile[];
  readonly tag: string | undefined;
  readonly by: string;
}

const ITEMS = "catalogue-item";
const CONTENTS = "catalogue-content";
const CONTENT_BYTES = 512 * 1024;
const ITEMS_MAX = 1_000;
/** The oldest versions of an item are forgotten, except for tagged ones. */
const VERSIONS_MAX = 100;
const TAGS_MAX = 100;
const LIKE_HASH = /^[0-9a-f]{4,}$/;
const PAGE = 500;
const KNOWN_MS = 1_000;
const HASH_CHARS_MIN = 4;
/** The command that lists the items of a kind. */
const LIST: Readonly<Record<string, string>> = {
  agent: "agents list --catalogue",
  skill: "skill list --catalogue",
  script: "script list --catalogue",
};
/** As `pushed-agents.ts` of the runner's machine names versions. */
const OFFERED_CHARS = 16;
/** The file that makes a folder a skill or a script. */
const MAIN_FILES = { skill: "SKILL.md", script: "script.json" } as const;

type Documents = Exclude<Change, { type: "audited" }>;

export class Catalogue {
  readonly #storage: AgentStorage;
  readonly #clock: Clock;
  #known: readonly StoredItem[] = [];
  #readAt = -Infinity;
  #reading: Promise<void> | undefined;

  constructor({ storage, clock }: { readonly storage: AgentStorage; readonly clock: Clock }) {
    this.#storage = storage;
    this.#clock = clock;
  }

  /** By kind and name. */
  async items(): Promise<readonly StoredItem[]> {
    if (this.#clock.monotonic() - this.#readAt >= KNOWN_MS) {
      this.#reading ??= this.#readAll().finally(() => (this.#reading = undefined));
      await this.#reading;
    }
    return this.#known;
  }

  /** @throws NotFoundError */
  async item(kind: string, name: string): Promise<StoredItem> {
    const item = (await this.#read(kind, name))?.item;
    if (item !== undefined) return item;
    throw noItem(kind, name);
  }

  /** The agent of this name that is in the catalogue, if any. */
  async agent(name: string): Promise<StoredItem | undefined> {
    return (await this.items()).find((item) => item.kind === "agent" && item.name === name);
  }

  /** @throws NotFoundError */
  async content(kind: string, name: string, hash: string): Promise<readonly StoredFile[]> {
    const { versions } = await this.item(kind, name);
    const isThere = versions.some((version) => version.hash === hash);
    const document = isThere ? await this.#storage.reader.document(CONTENTS, hash) : undefined;
    if (document === undefined)
      throw new NotFoundError("not_found", `the ${kind} ${name} has no version ${hash}`, {
        expected: `one of ${versions.map((version) => version.hash.slice(0, 12)).join(", ")}`,
      });
    return (JSON.parse(document.body) as { readonly files: readonly StoredFile[] }).files;
  }

  async push(
    { kind, name, description, files, tag, by, environments, variables }: Pushed,
    audit: Audit,
  ): Promise<StoredItem> {
    const hash = hashOf(files);
    refuseWrongFiles(kind, name, files);
    const body = JSON.stringify({ files });
    const content: Documents = { type: "put_document", collection: CONTENTS, id: hash, body };
    if ((await this.items()).length >= ITEMS_MAX && (await this.#read(kind, name)) === undefined)
      throw new LimitError("items", `the catalogue already has ${ITEMS_MAX} items`, {
        expected: `at most ${ITEMS_MAX}`,
      });
    return this.#change(kind, name, audit, [content], (before) => {
      const tags = withTag(before?.tags ?? {}, tag, hash);
      const others = (before?.versions ?? []).filter((version) => version.hash !== hash);
      const versions = [...others, { hash, at: this.#clock.now(), by, environments, variables }];
      return {
        kind,
        name,
        description,
        isActive: before?.isActive ?? true,
        current: hash,
        tags,
        versions: newest(versions, tags),
      };
    });
  }

  /** @throws NotFoundError */
  async change({ kind, name, version, tag, active }: ItemChange, audit: Audit): Promise<StoredItem> {
    await this.item(kind, name);
    return this.#change(kind, name, audit, [], (before) => {
      if (before === undefined) throw noItem(kind, name);
      const chosen = version === undefined ? before.current : versionOfItem(before, version);
      if (chosen === undefined) throw noVersion(before, version ?? "");
      return {
        ...before,
        isActive: active ?? before.isActive,
        ...(tag === undefined ? { current: chosen } : { tags: withTag(before.tags, tag, chosen) }),
      };
    });
  }

  async #change(
    kind: string,
    name: string,
    audit: Audit,
    first: readonly Documents[],
    make: (before: StoredItem | undefined) => StoredItem,
  ): Promise<StoredItem> {
    for (;;) {
      const known = await this.#read(kind, name);
      const made = make(known?.item);
      const put: Documents = {
        type: "put_document",
        collection: ITEMS,
        id: idOf(kind, name),
        body: JSON.stringify(made),
        expected: known?.version ?? 0,
      };
      const changes: Change[] = [...first, { type: "audited", change: put, audit }];
      const result = (await this.#storage.commit(changes, this.#clock.now())).at(-1);
      if (result?.status === "conflict" || result?.status === "not_found") continue;
      if (result?.status !== "done")
        throw new HoldfastError("internal", `storing an item: storage answered "${result?.status}"`);
      this.#readAt = -Infinity; // The next read sees the change of this coordinator at once.
      return made;
    }
  }

  async #read(
    kind: string,
    name: string,
  ): Promise<{ readonly item: StoredItem; readonly version: number } | undefined> {
    const document = await this.#storage.reader.document(ITEMS, idOf(kind, name));
    if (document === undefined) return undefined;
    return { item: JSON.parse(document.body) as StoredItem, version: document.version };
  }

  async #readAll(): Promise<void> {
    const items: StoredItem[] = [];
    for (let after: string | undefined; ;) {
      const page = await this.#storage.reader.documents({
        collection: ITEMS,
        limit: PAGE,
        ...defined({ after }),
      });
      items.push(...page.flatMap(({ body }) => parseItem(body) ?? []));
      after = page.at(-1)?.id;
      if (page.length < PAGE) break;
    }
    this.#known = items;
    this.#readAt = this.#clock.monotonic();
  }
}

export interface ItemChange {
  readonly kind: string;
  readonly name: string;
  readonly version: string | undefined;
  readonly tag: string | undefined;
  readonly active: boolean | undefined;
}

function parseItem(body: string): StoredItem | undefined {
  try {
    return JSON.parse(body) as StoredItem;
  } catch {
    return undefined;
  }
}

/** @throws HoldfastError for a tag that could be taken for a version, and for one too many. */
function withTag(
  tags: StoredItem["tags"],
  tag: string | undefined,
  hash: string,
): Readonly<Record<string, string>> {
  if (tag === undefined) return tags;
  if (LIKE_HASH.test(tag))
    throw new UsageError(`the tag ${tag} could be the beginning of a version's hash`, {
      at: "tag",
      expected: "a name with another character than the digits and the letters a to f",
    });
  if (!Object.hasOwn(tags, tag) && Object.keys(tags).length >= TAGS_MAX)
    throw new LimitError("tags", `the item already has ${TAGS_MAX} tags`, {
      at: "tag",
      expected: `at most ${TAGS_MAX}; an existing tag can be set on another version`,
    });
  return { ...tags, [tag]: hash };
}

/** The hash of a version that is named by a tag, its hash, or the beginning of one. */
export function versionOfItem({ tags, versions }: StoredItem, text: string): string | undefined {
  if (Object.hasOwn(tags, text)) return tags[text];
  if (text.length < HASH_CHARS_MIN) return undefined;
  const found = versions.filter(({ hash }) => hash.startsWith(text));
  return found.length === 1 ? found[0]?.hash : undefined;
}

/** The environments and variables of a session's version of its agent; `undefined` for an agent that is not in the catalogue. */
export function declaredBy(item: StoredItem | undefined, version: string): Declared | undefined {
  const found = item?.versions.find(({ hash }) => offeredVersion(hash) === version);
  if (found === undefined) return undefined;
  const { environments = [], variables = [] } = found;
  return { environments, variables };
}

/** The version by which runners offer a content: the beginning of its hash. */
export function offeredVersion(hash: string): string {
  return hash.slice(0, OFFERED_CHARS);
}

/** @param at the field of the request. */
export function noVersion(
  { kind, name, tags, versions }: StoredItem,
  text: string,
  at = "version",
): NotFoundError {
  const known = [...Object.keys(tags), ...versions.slice(-5).map(({ hash }) => hash.slice(0, 12))];
  return new NotFoundError("not_found", `the ${kind} ${name} has no version or tag ${text.slice(0, 64)}`, {
    at,
    expected: known.join(", "),
  });
}

function noItem(kind: string, name: string): NotFoundError {
  return new NotFoundError("not_found", `the catalogue has no ${kind} ${name}`, {
    fix: `see what the coordinator has: \`holdfast ${LIST[kind] ?? "agents list --catalogue"}\``,
  });
}

function idOf(kind: string, name: string): string {
  return `${kind}/${name}`;
}

function newest(
  versions: readonly StoredVersion[],
  tags: Readonly<Record<string, string>>,
): readonly StoredVersion[] {
  const tagged = new Set(Object.values(tags));
  return versions.filter(({ hash }, at) => versions.length - at <= VERSIONS_MAX || tagged.has(hash));
}

/** @throws UsageError for a content that no runner could use under this name. */
function refuseWrongFiles(kind: ItemKind, name: string, files: readonly StoredFile[]): void {
  if (!/^[A-Za-z0-9]/.test(name) || contentPathProblem([name]) !== undefined)
    throw new UsageError(`${name} is no name of an item`, {
      at: "name",
      expected: "a name that begins with a letter or a digit and is no device of an operating system",
    });
  const file = kind === "agent" ? `${name}.md` : MAIN_FILES[kind];
  const isThere = files.some(({ path }) => path === file);
  if (!isThere || (kind === "agent" && files.length > 1))
    throw new UsageError(`the content of the ${kind} ${name} is not complete`, {
      at: "files",
      got: files
        .map(({ path }) => path)
        .join(", ")
        .slice(0, 200),
      expected: kind === "agent" ? `one file, ${file}` : `a file ${file}, and others`,
    });
}

/** @throws UsageError for files that cannot be a content. */
function hashOf(files: readonly StoredFile[]): string {
  if (files.length === 0) throw new UsageError("the content has no files", { at: "files" });
  const problem = contentPathProblem(files.map(({ path }) => path));
  if (problem !== undefined)
    throw new UsageError(problem, { at: "files", fix: "rename or remove the file; nothing was stored" });
  let total = 0;
  const hashed = files.map(({ path, base64, executable }, at) => {
    const bytes = Buffer.from(base64, "base64");
    total += bytes.length;
    if (bytes.toString("base64") !== base64)
      throw new UsageError(`the bytes of ${path} are no base64`, { at: `files/${at}/base64` });
    return { path, sha256: createHash("sha256").update(bytes).digest("hex"), isExecutable: executable };
  });
  if (total > CONTENT_BYTES)
    throw new LimitError("content", `the files have ${total} bytes`, {
      at: "files",
      expected: `at most ${CONTENT_BYTES} bytes together, at a coordinator`,
      fix: "move what is large out of the folder",
    });
  return createHash("sha256").update(contentText(hashed)).digest("hex");
}
