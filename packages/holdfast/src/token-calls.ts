// `holdfast token`: asks a coordinator for tokens, as an admin.

import { HoldfastError, toHoldfastError, UsageError } from "@holdfast/core";
import { TokenService, type Token } from "@holdfast/proto";
import { CoordinatorConnection } from "@holdfast/storage/remote";
import type { Client } from "@connectrpc/connect";
import { parseDuration } from "./budget-text.ts";
import type { Arguments, Io } from "./command.ts";
import { findCoordinator } from "./coordinator-access.ts";
import { localTime, plainLine, table } from "./plain-text.ts";

const KINDS = ["user", "admin", "registration"];
const PAGE = 500;
const CELL_CHARS = 100;

/** @returns the exit code. */
export async function createToken(name: string, args: Arguments, io: Io): Promise<number> {
  const kind = args.text("kind") ?? "user";
  if (!KINDS.includes(kind))
    throw new UsageError(`"${kind}" is no kind of token`, { at: "--kind", expected: KINDS.join(", ") });
  const [ttl, owner] = [args.text("ttl"), args.text("owner")];
  const ttlMs = ttl === undefined ? undefined : parseDuration(ttl, "--ttl");
  const { token, secret } = await asAdmin(args, io, (tokens) =>
    tokens.create({
      kind,
      name,
      ...(ttlMs === undefined ? {} : { ttlMs: BigInt(ttlMs) }),
      ...(owner === undefined ? {} : { owner }),
    }),
  );
  io.result({ ...(token === undefined ? {} : tokenJson(token)), token: secret }, secret);
  io.note("it is shown this once: the coordinator keeps only its hash");
  return 0;
}

/** @returns the exit code. */
export async function listTokens(args: Arguments, io: Io): Promise<number> {
  const tokens: Token[] = [];
  await asAdmin(args, io, async (service) => {
    for (let cursor: string | undefined; ;) {
      const page = await service.list({ limit: PAGE, ...(cursor === undefined ? {} : { cursor }) });
      tokens.push(...page.tokens);
      cursor = page.nextCursor;
      if (cursor === undefined) return;
    }
  });
  const rows = tokens.map((token) => {
    const { tokenId, kind, name, owner, createdAt, expiresAt, lastUsedAt } = tokenJson(token);
    return [tokenId, kind, name, owner ?? "", localTime(createdAt), at(expiresAt), at(lastUsedAt)].map(
      (cell) => plainLine(cell, CELL_CHARS),
    );
  });
  const head = ["ID", "KIND", "NAME", "OWNER", "MADE", "GOOD UNTIL", "LAST USED"];
  io.show(tokens.map(tokenJson), table([head, ...rows]).join("\n"));
  return 0;
}

/** @returns the exit code. */
export async function revokeToken(tokenId: string, args: Arguments, io: Io): Promise<number> {
  await asAdmin(args, io, (tokens) => tokens.revoke({ tokenId }));
  io.result({ tokenId, status: "revoked" }, "");
  io.note(`token ${plainLine(tokenId, CELL_CHARS)} is nobody's any more`);
  return 0;
}

function at(ms: number | undefined): string {
  return ms === undefined ? "" : localTime(ms);
}

function tokenJson({ tokenId, kind, name, owner, createdAt, expiresAt, lastUsedAt }: Token) {
  return {
    tokenId,
    kind,
    name,
    ...(owner === undefined ? {} : { owner }),
    createdAt: Number(createdAt),
    ...(expiresAt === undefined ? {} : { expiresAt: Number(expiresAt) }),
    ...(lastUsedAt === undefined ? {} : { lastUsedAt: Number(lastUsedAt) }),
  };
}

async function asAdmin<T>(
  args: Arguments,
  io: Io,
  ask: (tokens: Client<typeof TokenService>) => Promise<T>,
): Promise<T> {
  const { url, token } = findCoordinator(args, io);
  const connection = new CoordinatorConnection({ url, token });
  try {
    return await connection.ask(() => ask(connection.client(TokenService)));
  } catch (thrown) {
    const error = toHoldfastError(thrown);
    if (error.code !== "unavailable" && error.code !== "storage_unavailable") throw error;
    throw new HoldfastError("unavailable", error.message, {
      at: url,
      ...(error.got === undefined ? {} : { got: error.got }),
      // Of a coordinator that does run, but is not believed, the connection knows better.
      fix:
        error.fix?.includes("NODE_EXTRA_CA_CERTS") === true
          ? error.fix
          : "start it with `holdfast coordinator`, or say where it is with --url",
      cause: error,
    });
  } finally {
    connection.close();
  }
}
