// Tokens: who somebody is, from 256 random bits that only they have.
//
//   tokens-1. A token is `hf_` + its kind + `_` + 64 hex digits + 8 of a checksum: scanners find leaked ones, and what
//       cannot be one is refused without asking storage.
//   tokens-2. Only its SHA-256 is stored, as the id of a document, and compared in constant time (X11). The text is
//       told once, to whoever had it made, and is in no log, no error and no audit row.
//   tokens-3. What storage said of a token is believed for `BELIEVED_MS`. So a revoked one is refused within that, by
//       every coordinator of one storage; by the one that revoked it at once. A stream asks again every four seconds:
//       five are promised.
//   tokens-4. A registration token is used once: whoever comes second finds its document used. The process that used it
//       may have lost the answer: for `AGAIN_MS` it gets the same one. What that brings, its runner's token, is not
//       kept for it but made again, of what is stored and of what only the process knows (X11).
//   tokens-6. A job's token is one of a claim and goes with it: it stands in a collection of its own, is listed and
//       revoked by nobody, and is removed by `sweepJobs` some time after its claim is over. Whether that is over is
//       asked at each use, not here (X4).
//   tokens-5. When it was last used is written at most every `USED_EVERY_MS`.
//
// It knows no requests and no roles: what a kind may do is the contract's.

import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import {
  HoldfastError,
  type AgentStorage,
  type Audit,
  type Change,
  type ChangeResult,
  type Clock,
  type Random,
} from "@holdfast/core";

export type TokenKind = "admin" | "user" | "runner" | "job" | "registration";

const PREFIXES: { readonly [kind in TokenKind]: string } = {
  admin: "adm",
  user: "usr",
  runner: "rnr",
  job: "job",
  registration: "reg",
};

/** What is stored of a token. Times in epoch milliseconds. */
export interface StoredToken {
  /** SHA-256 of its text. */
  readonly hash: string;
  readonly kind: TokenKind;
  /** What people call it. */
  readonly name: string;
  /** Whose it is: of a user token, and of what a runner registered with it takes alone. */
  readonly user?: string;
  /** Of a runner token. */
  readonly runnerId?: string;
  /** Of a job token: the claim it is good for, of this session and by the runner above. */
  readonly sessionId?: string;
  readonly claimToken?: number;
  readonly createdAt: number;
  readonly expiresAt?: number;
  readonly lastUsedAt?: number;
  readonly revokedAt?: number;
  /** Of a registration token. */
  readonly usedAt?: number;
  readonly use?: RegistrationUse;
}

/** What became of a registration token (tokens-4). */
interface RegistrationUse {
  readonly runnerId: string;
  /** SHA-256 of what the process calls itself. */
  readonly process: string;
  /** Makes the runner's token, together with what the process calls itself. */
  readonly salt: string;
}

/** Why a token is refused. */
export type Refusal = "unknown" | "expired" | "revoked" | "used";

export interface TokensHost {
  readonly storage: AgentStorage;
  readonly clock: Clock;
  readonly random: Random;
}

export interface NewToken {
  readonly kind: TokenKind;
  readonly name: string;
  readonly user?: string;
  readonly runnerId?: string;
  readonly sessionId?: string;
  readonly claimToken?: number;
  /** From now on. */
  readonly ttlMs?: number;
}

const COLLECTION = "token";
/** tokens-6. */
const JOBS = "job_token";
const SWEEP_PAGE = 500;
const BELIEVED_MS = 900;
const USED_EVERY_MS = 10 * 60_000;
const AGAIN_MS = 10 * 60_000;
/** Of tokens that somebody guesses nothing is remembered; of real ones at most so many. */
const BELIEVED_MAX = 10_000;
/** A registration token lives at most so long. */
export const REGISTRATION_MS_MAX = 60 * 60_000;

export class Tokens {
  readonly #host: TokensHost;
  readonly #believed = new Map<
    string,
    { readonly token: StoredToken; readonly version: number; readonly until: number }
  >();

  constructor(host: TokensHost) {
    this.#host = host;
  }

  /** Make one. The text is told here and never again (tokens-2). @param made one that was made before, which may be there already. */
  async create(
    wanted: NewToken,
    audit: Audit,
    made?: string,
  ): Promise<{ readonly text: string; readonly token: StoredToken }> {
    const { text, token, change } = this.prepare(wanted, made);
    const result = await this.#commit({
      type: "audited",
      change,
      audit: { ...audit, object: objectOf(token) },
    });
    if (made === undefined || result.status !== "conflict") expectDone(result);
    return { text, token };
  }

  /** A token, and the change that stores it: for who stores something else with it. */
  prepare(
    { ttlMs, ...wanted }: NewToken,
    made?: string,
  ): {
    readonly text: string;
    readonly token: StoredToken;
    readonly change: PutDocument;
  } {
    const { clock, random } = this.#host;
    const text = made ?? mintToken(wanted.kind, () => random.u32());
    const createdAt = clock.now();
    const end = ttlMs === undefined ? {} : { expiresAt: createdAt + ttlMs };
    const token: StoredToken = { hash: hashOf(text), createdAt, ...end, ...wanted };
    return { text, token, change: putOf(token, 0) };
  }

  /** Who has this token, or why it is nobody's. */
  async check(text: string): Promise<StoredToken | Refusal> {
    const kind = kindOf(text);
    if (kind === undefined) return "unknown"; // tokens-1.
    const hash = hashOf(text);
    const found = await this.#find(hash, collectionOf(kind));
    if (found === undefined || !isSameHash(found.token.hash, hash)) return "unknown";
    const refusal = this.#refusalOf(found.token);
    if (refusal !== undefined) return refusal;
    this.#noteUse(found);
    return found.token;
  }

  /**
   * Use a registration token up (tokens-4).
   *
   * @param process what the process calls itself that uses it; without that nobody gets the same answer again.
   * @returns the runner it is for, and the text of its token where that is to be the same again; or why it cannot be used.
   */
  async use(
    id: string,
    { runnerId, process }: { readonly runnerId: string; readonly process: string | undefined },
    audit: Audit,
  ): Promise<Refusal | { readonly runnerId: string; readonly text?: string }> {
    const { clock, random } = this.#host;
    const found = await this.#withId(id);
    if (found === undefined) return "unknown";
    const { token, version } = found;
    const refusal = this.#refusalOf(token);
    if (refusal !== undefined) return refusal;
    if (token.usedAt !== undefined) return process === undefined ? "used" : usedBy(token, process);
    const use: RegistrationUse | undefined =
      process === undefined
        ? undefined
        : { runnerId, process: hashOf(process), salt: secretOf(() => random.u32()) };
    const used = { ...token, usedAt: clock.now(), ...(use === undefined ? {} : { use }) };
    this.#believed.delete(token.hash);
    const result = await this.#commit({ type: "audited", change: putOf(used, version), audit });
    if (result.status === "conflict") return this.use(id, { runnerId, process }, audit); // Somebody used it: perhaps this process.
    expectDone(result);
    return process === undefined ? { runnerId } : usedBy(used, process);
  }

  /** @param id the hash, or its beginning as lists show it. @returns whether there is one. */
  async revoke(id: string, audit: Audit): Promise<boolean> {
    const found = await this.#withId(id);
    if (found === undefined) return false;
    const { token, version } = found;
    if (token.revokedAt !== undefined) return true;
    const change = putOf({ ...token, revokedAt: this.#host.clock.now() }, version);
    const { status } = await this.#commit({
      type: "audited",
      change,
      audit: { ...audit, object: objectOf(token) },
    });
    this.#believed.delete(token.hash);
    if (status === "conflict") return this.revoke(id, audit); // Its last use was noted in between.
    expectDone({ status } as ChangeResult);
    return true;
  }

  /** The same, by the text of the token. */
  revokeText(text: string, audit: Audit): Promise<boolean> {
    return this.revoke(hashOf(text), audit);
  }

  /** Those of a runner, whether or not it is there. @returns whether any was good until now. */
  async revokeOf(runnerId: string, audit: Audit): Promise<boolean> {
    let isAny = false;
    for (let after: string | undefined; ;) {
      const page = await this.list(after, SWEEP_PAGE);
      for (const { hash, runnerId: of, revokedAt } of page)
        if (of === runnerId && revokedAt === undefined) isAny = (await this.revoke(hash, audit)) || isAny;
      after = page.at(-1)?.hash;
      if (page.length < SWEEP_PAGE) return isAny;
    }
  }

  async list(after: string | undefined, limit: number): Promise<readonly StoredToken[]> {
    const { reader } = this.#host.storage;
    const documents = await reader.documents({
      collection: COLLECTION,
      limit,
      ...(after === undefined ? {} : { after }),
    });
    return documents.map(({ body }) => JSON.parse(body) as StoredToken);
  }

  /** tokens-6. Forget the tokens of claims that are over. */
  async sweepJobs(isOver: (token: StoredToken) => Promise<boolean>): Promise<void> {
    for (let after = ""; ;) {
      const { reader } = this.#host.storage;
      const page = await reader.documents({ collection: JOBS, limit: SWEEP_PAGE, after });
      for (const { id, body } of page)
        if (await isOver(JSON.parse(body) as StoredToken))
          await this.#commit({ type: "remove_document", collection: JOBS, id });
      after = page.at(-1)?.id ?? after;
      if (page.length < SWEEP_PAGE) return;
    }
  }

  #refusalOf({ revokedAt, usedAt, use, expiresAt }: StoredToken): Refusal | undefined {
    const now = this.#host.clock.now();
    if (revokedAt !== undefined) return "revoked";
    if (usedAt !== undefined && (use === undefined || now - usedAt >= AGAIN_MS)) return "used";
    return expiresAt !== undefined && expiresAt <= now ? "expired" : undefined;
  }

  async #find(hash: string, collection: string): Promise<Found | undefined> {
    const believed = this.#believed.get(hash);
    if (believed !== undefined && believed.until > this.#host.clock.monotonic()) return believed;
    this.#believed.delete(hash);
    const found = await this.#read(hash, collection);
    if (found !== undefined) this.#believe(found);
    return found;
  }

  #believe(found: Found): void {
    for (const oldest of this.#believed.keys()) {
      if (this.#believed.size < BELIEVED_MAX) break;
      this.#believed.delete(oldest);
    }
    this.#believed.set(found.token.hash, { ...found, until: this.#host.clock.monotonic() + BELIEVED_MS });
  }

  async #read(hash: string, collection = COLLECTION): Promise<Found | undefined> {
    const document = await this.#host.storage.reader.document(collection, hash);
    if (document === undefined) return undefined;
    return { token: JSON.parse(document.body) as StoredToken, version: document.version };
  }

  async #withId(id: string): Promise<Found | undefined> {
    if (!/^[0-9a-f]{16,64}$/.test(id)) return undefined;
    if (id.length === 64) return this.#read(id);
    const [first] = await this.#host.storage.reader.documents({
      collection: COLLECTION,
      after: id,
      limit: 1,
    });
    if (first === undefined || !first.id.startsWith(id)) return undefined;
    return { token: JSON.parse(first.body) as StoredToken, version: first.version };
  }

  /** tokens-5. Nobody waits for it, and a conflict is another use. */
  #noteUse({ token, version }: Found): void {
    const now = this.#host.clock.now();
    if (
      token.kind === "registration" ||
      token.kind === "job" ||
      now - (token.lastUsedAt ?? 0) < USED_EVERY_MS
    )
      return;
    const used = { ...token, lastUsedAt: now };
    this.#believe({ token: used, version: version + 1 });
    this.#commit(putOf(used, version)).catch(() => {});
  }

  async #commit(change: Change): Promise<ChangeResult> {
    const [result] = await this.#host.storage.commit([change], this.#host.clock.now());
    return result!;
  }
}

interface Found {
  readonly token: StoredToken;
  readonly version: number;
}

type PutDocument = Extract<Change, { type: "put_document" }>;

/** What lists, audit rows and `revoke` call a token: the beginning of its hash, which leads to nothing. */
export function tokenId({ hash }: Pick<StoredToken, "hash">): string {
  return hash.slice(0, 16);
}

/** The kind a text says it is; `undefined` when it is no token (tokens-1). */
export function kindOf(text: string): TokenKind | undefined {
  const [, prefix, secret, sum] = /^hf_([a-z]{3})_([0-9a-f]{64})([0-9a-f]{8})$/.exec(text) ?? [];
  if (prefix === undefined || sum !== checksum(`hf_${prefix}_${secret}`)) return undefined;
  return (Object.keys(PREFIXES) as TokenKind[]).find((kind) => PREFIXES[kind] === prefix);
}

export function mintToken(kind: TokenKind, randomU32: () => number): string {
  return tokenOf(kind, secretOf(randomU32));
}

/** 256 bits in hex. */
function secretOf(randomU32: () => number): string {
  return Array.from({ length: 8 }, () => randomU32().toString(16).padStart(8, "0")).join("");
}

function tokenOf(kind: TokenKind, secret: string): string {
  const text = `hf_${PREFIXES[kind]}_${secret}`;
  return text + checksum(text);
}

/** tokens-4. */
function usedBy(
  { use }: StoredToken,
  process: string,
): Refusal | { readonly runnerId: string; readonly text: string } {
  if (use === undefined || !isSameHash(use.process, hashOf(process))) return "used";
  const secret = createHmac("sha256", use.salt).update(process).digest("hex");
  return { runnerId: use.runnerId, text: tokenOf("runner", secret) };
}

function checksum(text: string): string {
  return hashOf(text).slice(0, 8);
}

export function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function isSameHash(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a, "hex"), Buffer.from(b, "hex")];
  return left.length === right.length && timingSafeEqual(left, right);
}

function putOf(token: StoredToken, expected: number): PutDocument {
  return {
    type: "put_document",
    collection: collectionOf(token.kind),
    id: token.hash,
    body: JSON.stringify(token),
    expected,
  };
}

function collectionOf(kind: TokenKind): string {
  return kind === "job" ? JOBS : COLLECTION;
}

function objectOf(token: StoredToken): string {
  return `token:${tokenId(token)}`;
}

function expectDone({ status }: ChangeResult): void {
  if (status !== "done") throw new HoldfastError("internal", `storing a token: storage answered "${status}"`);
}
