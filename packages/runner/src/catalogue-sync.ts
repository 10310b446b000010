// `keepCatalogue` keeps the agents of a runner as the catalogue of its coordinator says, as far as the
// runner's owner allows.
//
//   - A content is used only if its files have the hash that the catalogue names, and paths that lead nowhere
//     else.
//   - A catalogue that cannot be read changes nothing. The runner keeps the agents that it has, and reads
//     again.

import { createHash } from "node:crypto";
import {
  type Clock,
  contentPathProblem,
  contentText,
  repeat,
  toError,
  UnavailableError,
} from "@holdfast/core";
import { CatalogueService, type CatalogueItem } from "@holdfast/proto";
import type { Agent } from "@holdfast/runtime";
import type { CoordinatorConnection } from "@holdfast/storage/remote";
import type { RefusedAgent } from "./announced-agent.ts";

/** A file of a content whose hash was compared. */
interface CatalogueFile {
  /** From the folder, with `/`. */
  readonly path: string;
  readonly bytes: Buffer;
  readonly isExecutable: boolean;
}

export interface Catalogue {
  readonly items: readonly CatalogueItem[];
  /** The files of a version, or the problem of a content that is not what the catalogue says. */
  content(
    item: CatalogueItem,
    hash: string,
  ): Promise<{ readonly files: readonly CatalogueFile[] } | { readonly problem: string }>;
}

/** The offers and the refusals that a runner makes of a catalogue. */
export interface CatalogueOffers {
  /** The agents that it offers beside its own. */
  readonly agents: readonly Agent[];
  /** The current versions among `agents`. */
  readonly current: readonly Agent[];
  /** The agents whose current version it does not offer, with reasons for people at the coordinator. */
  readonly refused: readonly RefusedAgent[];
  /** The environments of the coordinator that an agent names; `undefined` for an agent that gets none of them. */
  readonly environmentsOf?: (agent: Agent) => readonly string[] | undefined;
}

/** Makes the offers of a runner. It is called again after each change of the catalogue. May throw. */
export type CatalogueAgents = (catalogue: Catalogue) => Promise<CatalogueOffers>;

export interface CatalogueHost {
  readonly connection: CoordinatorConnection;
  readonly clock: Clock;
  readonly agentsOf: CatalogueAgents;
  /** Called with the offers of the whole catalogue, after each change. */
  readonly offer: (offers: CatalogueOffers) => Promise<void>;
  /** Ends the reading. */
  readonly signal: AbortSignal;
}

const READ_EVERY_MS = 2_000;

/** Reads the catalogue once, and then again and again until the signal. Resolves after the first time. */
export async function keepCatalogue(host: CatalogueHost): Promise<void> {
  const { clock, signal } = host;
  let revision = await readCatalogue(host, "");
  if (signal.aborted) return;
  const looks = repeat({
    clock,
    pauseMs: () => READ_EVERY_MS,
    look: async () => (revision = await readCatalogue(host, revision)),
  });
  signal.addEventListener("abort", looks.close, { once: true });
}

/** @returns the revision that is offered now. */
async function readCatalogue({ connection, agentsOf, offer }: CatalogueHost, known: string): Promise<string> {
  try {
    const { items, revision } = await connection.ask(() => connection.client(CatalogueService).list({}));
    if (revision === known) return known;
    const content: Catalogue["content"] = (item, hash) => contentOf(connection, item, hash);
    await offer(await agentsOf({ items, content }));
    return revision;
  } catch {
    return known; // The poll loop reports a coordinator that is away.
  }
}

async function contentOf(
  connection: CoordinatorConnection,
  { kind, name }: CatalogueItem,
  hash: string,
): ReturnType<Catalogue["content"]> {
  let answer;
  try {
    answer = await connection.ask(() => connection.client(CatalogueService).getContent({ kind, name, hash }));
  } catch (error) {
    if (error instanceof UnavailableError) throw error; // The whole catalogue is read again.
    return { problem: `it could not be read: ${toError(error).message}` };
  }
  const files = answer.files.map(({ path, base64, executable }) => ({
    path,
    bytes: Buffer.from(base64, "base64"),
    isExecutable: executable,
  }));
  const problem = contentPathProblem(files.map(({ path }) => path));
  if (problem !== undefined) return { problem };
  const hashed = files.map(({ path, bytes, isExecutable }) => ({
    path,
    sha256: createHash("sha256").update(bytes).digest("hex"),
    isExecutable,
  }));
  if (createHash("sha256").update(contentText(hashed)).digest("hex") !== hash)
    return { problem: "its files are not those of the version that the catalogue names" };
  return { files };
}
