// `TokenService`: tokens that are created, listed and revoked through the API.

import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { defined, NotFoundError, UsageError, type Clock } from "@holdfast/core";
import type {
  CreateTokenRequest,
  ListTokensRequest,
  RevokeTokenRequest,
  TokenSchema,
  TokenService as Contract,
} from "@holdfast/proto";
import { invalid } from "../call/refusal.ts";
import { REGISTRATION_MS_MAX, tokenId, type StoredToken, type Tokens } from "../call/tokens.ts";
import { auditOf, callOf } from "../call/call.ts";
import { unknownCursor, type ServiceHost } from "./service-host.ts";

const PAGE = 100;

export class TokenService implements ServiceImpl<typeof Contract> {
  readonly #tokens: Tokens;
  readonly #clock: Clock;

  constructor({ tokens, clock }: Pick<ServiceHost, "tokens" | "clock">) {
    this.#tokens = tokens;
    this.#clock = clock;
  }

  async create({ kind, name, ttlMs, owner, projects }: CreateTokenRequest, context: HandlerContext) {
    const isRegistration = kind === "registration";
    if (owner !== undefined && !isRegistration)
      throw new UsageError(`a token of the kind "${kind}" has no owner other than its name`, {
        at: "owner",
        fix: 'leave the owner out, or ask for a token of the kind "registration"',
      });
    if (projects.length > 0 && kind !== "user")
      throw new UsageError(`a token of the kind "${kind}" is for no project`, {
        at: "projects",
        fix: 'leave the projects out, or ask for a token of the kind "user"',
      });
    const ttl = lifeOf(ttlMs, isRegistration, this.#clock.now());
    const { text, token } = await this.#tokens.create(
      {
        kind: kind as "admin" | "user" | "registration" | "metrics",
        name,
        ...(kind === "user" ? { user: name } : owner === undefined ? {} : { user: owner }),
        ...(projects.length === 0 ? {} : { projects }),
        ...defined({ ttlMs: ttl }),
      },
      auditOf(callOf(context), "token.create", ""),
    );
    return { token: tokenMessage(token), secret: text };
  }

  async list({ limit = PAGE, cursor }: ListTokensRequest) {
    if (cursor !== undefined && !/^[0-9a-f]{64}$/.test(cursor)) throw unknownCursor();
    const page = await this.#tokens.list(cursor, limit);
    const next = page.length < limit ? undefined : page.at(-1)?.hash;
    return {
      tokens: page
        .filter(({ revokedAt, usedAt }) => revokedAt === undefined && usedAt === undefined)
        .map(tokenMessage),
      ...defined({ nextCursor: next }),
    };
  }

  async revoke({ tokenId: id }: RevokeTokenRequest, context: HandlerContext) {
    if (!(await this.#tokens.revoke(id, auditOf(callOf(context), "token.revoke", ""))))
      // The error does not repeat the given id, because it may be a token.
      throw new NotFoundError("token_not_found", "there is no token of this id", {
        fix: "list the tokens to see which there are; a token's own text is not its id",
      });
    return {};
  }
}

/**
 * Lifetime of a token in milliseconds; `undefined` for no end. @throws Refusal for longer than it may be, or
 * than an integer can tell.
 */
function lifeOf(ttlMs: bigint | undefined, isRegistration: boolean, now: number): number | undefined {
  const most = isRegistration ? REGISTRATION_MS_MAX : Number.MAX_SAFE_INTEGER - now;
  const ms = ttlMs === undefined ? undefined : Number(ttlMs);
  if (ms === undefined) return isRegistration ? REGISTRATION_MS_MAX : undefined;
  if (ms <= most) return ms;
  throw invalid([
    { pointer: "/ttlMs", code: "too_large", message: `is ${ms}; at most ${Math.floor(most)} is expected` },
  ]);
}

function tokenMessage(token: StoredToken): MessageInitShape<typeof TokenSchema> {
  const { kind, name, user, projects = [], runnerId, createdAt, expiresAt, lastUsedAt } = token;
  return {
    tokenId: tokenId(token),
    kind,
    name,
    ...defined({ owner: user, runnerId }),
    projects: [...projects],
    createdAt: BigInt(createdAt),
    ...(expiresAt === undefined ? {} : { expiresAt: BigInt(expiresAt) }),
    ...(lastUsedAt === undefined ? {} : { lastUsedAt: BigInt(lastUsedAt) }),
  };
}
