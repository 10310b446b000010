// `Tokens` creates, checks and revokes tokens: 256 random bits that identify their bearer.
//
//   - A token is `hf_` + its kind + `_` + 64 hex digits + 8 of a checksum. Scanners can find leaked tokens,
//     and a malformed text is refused without asking storage.
//   - Only a token's SHA-256 is stored, as the id of a document, and compared in constant time (X11). The
//     text is returned once, when the token is made, and is in no log, error or audit row.
//   tokens-3. An answer of storage about a token is cached for `BELIEVED_MS`. Every coordinator therefore
//       refuses a revoked token within that time, and the one that revoked it at once. A stream checks its
//       token every four seconds; the promise is five.
//   tokens-4. A registration token is used once: a second process finds its document used. The process that
//       used it may have lost the answer, and gets the same one again for `AGAIN_MS`. The runner's token in
//       that answer is not stored. It is derived again from a stored salt and from a secret that only the
//       process knows (X11).
//   - A job's token belongs to a claim and ends with it. It is in a collection of its own, cannot be listed
//     or revoked, and is removed by `sweepJobs` after its claim has ended. Whether the claim has ended is
//     checked at each use, outside this class (X4).
//   - The time of a token's last use is written at most every `USED_EVERY_MS`.
//
// This class knows no requests and no roles. The contract says what each kind may do.

import { createHmac, hash as digestOf, timingSafeEqual } from "node:crypto";
import {
  defined,
  HoldfastError,
  type AgentStorage,
  type Audit,
  type Change,
  type ChangeResult,
  type Clock,
  HOUR_MS,
  MINUTE_MS,
  type Random,
} from "@holdfast/core";

export type TokenKind = "admin" | "user" | "runner" | "job" | "registration" | "metrics";

const PREFIXES: { readonly [kind in TokenKind]: string } = {
  admin: "adm",
  user: "usr",
  runner: "rnr",
  job: "job",
  registration: "reg",
  metrics: "met",
};

/** A token as it is stored. Times are epoch milliseconds. */
export interface StoredToken {
  /** The SHA-256 of the token's text. */
  readonly hash: string;
  readonly kind: TokenKind;
  /** The name that people see. */
  readonly name: string;
  /**
   * The user of a user token, or the only owner whose sessions a runner takes that registers with this token.
   */
  readonly user?: string;
  /** The only projects that sessions of a user token may demand; any when absent. */
  readonly projects?: readonly string[];
  /** The runner, for a runner token or a job token. */
  readonly runnerId?: string;
  /** The session and claim that a job token is valid for. */
  readonly sessionId?: string;
  readonly claimToken?: number;
  readonly createdAt: number;
  readonly expiresAt?: number;
  readonly lastUsedAt?: number;
  readonly revokedAt?: number;
  /** When a registration token was used, and its use. */
  readonly usedAt?: number;
  readonly use?: RegistrationUse;
}

/** The use of a registration token (tokens-4). */
interface RegistrationUse {
  readonly runnerId: string;
  /** The SHA-256 of the process's secret name. */
  readonly process: string;
  /**
   * The stored part from which the runner's token is derived; the other part is the process's secret name.
   */
  readonly salt: string;
}

/** The reason why a token is refused. */
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
  readonly projects?: readonly string[];
  readonly runnerId?: string;
  readonly sessionId?: string;
  readonly claimToken?: number;
  /** How long the token is valid from now on. */
  readonly ttlMs?: number;
}

const COLLECTION = "token";
/** The collection of job tokens. */
const JOBS = "job_token";
const SWEEP_PAGE = 500;
const BELIEVED_MS = 900;
const USED_EVERY_MS = 10 * MINUTE_MS;
const AGAIN_MS = 10 * MINUTE_MS;
/** The most tokens whose check is cached. Guessed tokens are not cached. */
const BELIEVED_MAX = 10_000;
/** The longest life of a registration token. */
export const REGISTRATION_MS_MAX = HOUR_MS;

export class Tokens {
  readonly #host: TokensHost;
  readonly #believed = new Map<
    string,
    { readonly token: StoredToken; readonly version: number; readonly until: number }
  >();

  constructor(host: TokensHost) {
    this.#host = host;
  }

  /**
   * Makes a token. Only this call returns its text. @param made the text of a token that may be stored
   * already.
   */
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

  /**
   * A new token and the change that stores it, for callers that store something else in the same transaction.
   */
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

  /** The stored token of this text, or why the text is refused. */
  async check(text: string): Promise<StoredToken | Refusal> {
    const kind = kindOf(text);
    if (kind === undefined) return "unknown"; // A malformed text is refused without a question to storage.
    const hash = hashOf(text);
    const found = await this.#find(hash, collectionOf(kind));
    if (found === undefined || !isSameHash(found.token.hash, hash)) return "unknown";
    const refusal = this.#refusalOf(found.token);
    if (refusal !== undefined) return refusal;
    this.#noteUse(found);
    return found.token;
  }

  /**
   * Uses a registration token (tokens-4).
   *
   * @param process the secret name of the process. Without it, a lost answer cannot be repeated.
   * @returns the runner's id and, if a repeated answer must be the same, the text of its token; or why the
   * token is refused.
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
    // mutant: token-used-twice
    if (token.usedAt !== undefined) return process === undefined ? "used" : usedBy(token, process);
    const use: RegistrationUse | undefined =
      process === undefined
        ? undefined
        : { runnerId, process: hashOf(process), salt: secretOf(() => random.u32()) };
    const used = { ...token, usedAt: clock.now(), ...defined({ use }) };
    this.#believed.delete(token.hash);
    const result = await this.#commit({ type: "audited", change: putOf(used, version), audit });
    if (result.status === "conflict") return this.use(id, { runnerId, process }, audit); // The token was used meanwhile, perhaps by this process.
    expectDone(result);
    return process === undefined ? { runnerId } : usedBy(used, process);
  }

  /**
   * Revokes a token. @param id its hash, or the part of it that lists show. @returns whether there is such a
   * token.
   */
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
    if (status === "conflict") return this.revoke(id, audit); // The time of its last use was written in between.
    expectDone({ status } as ChangeResult);
    return true;
  }

  /** Revokes a token by its text. */
  revokeText(text: string, audit: Audit): Promise<boolean> {
    return this.revoke(hashOf(text), audit);
  }

  /**
   * Revokes the tokens of a runner, even if the runner no longer exists. @returns whether any of them was
   * valid.
   */
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
      ...defined({ after }),
    });
    return documents.map(({ body }) => JSON.parse(body) as StoredToken);
  }

  /** Removes the tokens of claims that have ended. */
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
    // mutant: revoked-token-accepted
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

  /** Runs in the background. A conflict means that another use was written. */
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

/**
 * The id of a token in lists, audit rows and `revoke`: the beginning of its hash, from which the token cannot
 * be derived.
 */
export function tokenId({ hash }: Pick<StoredToken, "hash">): string {
  return hash.slice(0, 16);
}

/** The kind that a text names; `undefined` when the text is no token. */
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
  return digestOf("sha256", text);
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
