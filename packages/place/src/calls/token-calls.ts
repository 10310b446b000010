// `holdfast token`: asks a coordinator for tokens, as an admin.

import { defined, HoldfastError, parseDuration, UsageError } from "@holdfast/core";
import { resolve } from "node:path";
import { createPrivate } from "@holdfast/system";
import { TokenService, type Token } from "@holdfast/proto";
import type { Client } from "@connectrpc/connect";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { askCoordinator } from "./coordinator-call.ts";
import { unwritable } from "@holdfast/terminal/frame/new-file";
import { localTime, plainLine, table } from "@holdfast/terminal/frame/plain-text";

const KINDS = ["user", "admin", "registration", "metrics"];
const PAGE = 500;
const CELL_CHARS = 100;

/** @returns the exit code. */
export async function createToken(name: string, args: Arguments, io: Io): Promise<number> {
  const kind = args.text("kind") ?? "user";
  if (!KINDS.includes(kind))
    throw new UsageError(`"${kind}" is no kind of token`, { at: "--kind", expected: KINDS.join(", ") });
  const [ttl, owner] = [args.text("ttl"), args.text("owner")];
  const ttlMs = ttl === undefined ? undefined : parseDuration(ttl, "--ttl");
  const wanted = args.text("output");
  const path = wanted === undefined ? undefined : resolve(io.cwd, wanted);
  const { token, secret } = await asAdmin(args, io, (tokens) =>
    tokens.create({
      kind,
      name,
      ...(ttlMs === undefined ? {} : { ttlMs: BigInt(ttlMs) }),
      ...defined({ owner }),
      projects: [...args.texts("project")],
    }),
  );
  try {
    if (path !== undefined) createPrivate(path, `${secret}\n`);
  } catch (error) {
    await asAdmin(args, io, (tokens) => tokens.revoke({ tokenId: token?.tokenId ?? "" })); // Nobody has it.
    throw HoldfastError.is(error) ? error : unwritable(path!, error as NodeJS.ErrnoException);
  }
  if (path !== undefined) {
    io.result({ ...(token === undefined ? {} : tokenJson(token)), file: path }, path);
    return 0;
  }
  io.result({ ...(token === undefined ? {} : tokenJson(token)), token: secret }, secret);
  io.note("the token is shown only this once: the coordinator keeps only its hash");
  return 0;
}

/** @returns the exit code. */
export async function listTokens(args: Arguments, io: Io): Promise<number> {
  const tokens: Token[] = [];
  await asAdmin(args, io, async (service) => {
    for (let cursor: string | undefined; ;) {
      const page = await service.list({ limit: PAGE, ...defined({ cursor }) });
      tokens.push(...page.tokens);
      cursor = page.nextCursor;
      if (cursor === undefined) return;
    }
  });
  const rows = tokens.map((token) => {
    const { tokenId, kind, name, owner = "", runnerId = "", ...times } = tokenJson(token);
    const { createdAt, expiresAt, lastUsedAt } = times;
    return [tokenId, kind, name, runnerId, owner, localTime(createdAt), at(expiresAt), at(lastUsedAt)].map(
      (cell) => plainLine(cell, CELL_CHARS),
    );
  });
  const head = ["ID", "KIND", "NAME", "RUNNER", "OWNER", "MADE", "GOOD UNTIL", "LAST USED"];
  io.show(tokens.map(tokenJson), table([head, ...rows]).join("\n"));
  return 0;
}

/** @returns the exit code. */
export async function revokeToken(tokenId: string, args: Arguments, io: Io): Promise<number> {
  await asAdmin(args, io, (tokens) => tokens.revoke({ tokenId }));
  io.result({ tokenId, status: "revoked" }, "");
  io.note(`token ${plainLine(tokenId, CELL_CHARS)} is revoked`);
  return 0;
}

function at(ms: number | undefined): string {
  return ms === undefined ? "" : localTime(ms);
}

function tokenJson(token: Token) {
  const { tokenId, kind, name, owner, runnerId, projects, createdAt, expiresAt, lastUsedAt } = token;
  return {
    tokenId,
    kind,
    name,
    ...defined({ owner, runnerId }),
    ...(projects.length === 0 ? {} : { projects }),
    createdAt: Number(createdAt),
    ...(expiresAt === undefined ? {} : { expiresAt: Number(expiresAt) }),
    ...(lastUsedAt === undefined ? {} : { lastUsedAt: Number(lastUsedAt) }),
  };
}

function asAdmin<T>(
  args: Arguments,
  io: Io,
  ask: (tokens: Client<typeof TokenService>) => Promise<T>,
): Promise<T> {
  return askCoordinator(args, io, (connection) => ask(connection.client(TokenService)));
}
