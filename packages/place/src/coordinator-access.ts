// Finds the coordinator that a command calls, and the token for the call.
//
// Tokens come from the environment or from a file, never from the command line itself, where others of this
// machine would see them.

import { existsSync } from "node:fs";
import {
  defined,
  HoldfastError,
  NotFoundError,
  toHoldfastError,
  UsageError,
  type ErrorCode,
} from "@holdfast/core";
import { checkUrl } from "@holdfast/storage/coordinator-url";
import type { ReadPatience } from "@holdfast/storage/remote";
import { adminTokenFile, readToken } from "./admin-token.ts";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { dataFolder } from "@holdfast/system";
import { checkTrusted } from "@holdfast/terminal/frame/given-file";
import { findRunningStack } from "./local-stack.ts";
import type { Origin } from "@holdfast/terminal/frame/origin";

/** The port of a coordinator where nothing names another. */
export const PORT = 8765;

export interface CoordinatorAccess {
  readonly url: string;
  readonly token: string;
  /** The source of the token: a variable or a file. */
  readonly tokenFrom: string;
  /** The local stack starts its coordinator again when that dies, so a read waits for it. */
  readonly patience?: ReadPatience;
}

const VARIABLE = "HOLDFAST_URL";
/** The URL of a coordinator on this machine with the default port. */
export const URL_DEFAULT = "http://127.0.0.1:8765";

interface NamedUrl {
  readonly url: string;
  readonly origin: Origin;
  readonly from: string;
}

/** The coordinator that somebody named in place of a database; nothing when nobody did. */
export function namedCoordinator(args: Arguments, io: Pick<Io, "env">): NamedUrl | undefined {
  return args.has("db") && args.text("url") === undefined ? undefined : namedUrl(args, io);
}

/**
 * The coordinator for commands that need one. It is the named one, else the local stack's if that runs, else
 * the one that would be started here.
 */
export function findCoordinator(args: Arguments, io: Pick<Io, "env" | "cwd">): CoordinatorAccess {
  const url = namedUrl(args, io)?.url ?? findRunningStack(io)?.url ?? URL_DEFAULT;
  return { url, ...coordinatorToken(args, io) };
}

function namedUrl(args: Arguments, { env }: Pick<Io, "env">): NamedUrl | undefined {
  const flag = args.text("url");
  if (flag !== undefined) return { url: checkedUrl(flag, "--url"), origin: "flag", from: "--url" };
  const variable = env[VARIABLE];
  if (variable === undefined || variable === "") return undefined;
  return { url: checkedUrl(variable, VARIABLE), origin: "environment", from: VARIABLE };
}

/**
 * A URL from a flag or a variable, which an error names. @throws UsageError before anything else is looked
 * at, also the token.
 */
export function checkedUrl(url: string, from: string, insecure = false): string {
  try {
    checkUrl(url, insecure);
    return url;
  } catch (thrown) {
    const { message, got, expected, fix } = toHoldfastError(thrown);
    throw new UsageError(`${from} is not the address of a coordinator: ${message}`, {
      at: from,
      ...defined({ got, expected, fix }),
    });
  }
}

/** @throws HoldfastError `unauthenticated` when there is none. */
export function coordinatorToken(
  args: Arguments,
  io: Pick<Io, "env" | "cwd">,
): Pick<CoordinatorAccess, "token" | "tokenFrom"> {
  const variable = io.env["HOLDFAST_TOKEN"];
  const file = args.text("token-file");
  if (file === undefined && variable !== undefined && variable !== "")
    return { token: checkToken(variable, "HOLDFAST_TOKEN"), tokenFrom: "HOLDFAST_TOKEN" };
  const path = file ?? adminTokenFile(dataFolder(io));
  checkTrusted(path);
  const token = readToken(path);
  if (token !== undefined && token !== "") return { token: checkToken(token, path), tokenFrom: path };
  if (file !== undefined && !existsSync(path))
    throw new NotFoundError("file_not_found", `there is no file ${path}, which --token-file names`, {
      at: path,
      expected: "a file that holds one token",
      fix: "check the path",
    });
  if (!existsSync(path))
    throw new HoldfastError("unauthenticated", `no token is known here: no coordinator has written ${path}`, {
      at: path,
      expected: "a token in HOLDFAST_TOKEN, in --token-file, or in the file of a coordinator of this user",
      fix: "start a coordinator here with `holdfast coordinator`, or give the token of another one by --token-file FILE",
    });
  throw new HoldfastError("unauthenticated", `there is no token in ${path}`, {
    at: path,
    expected:
      "a token in HOLDFAST_TOKEN or in a file, such as the admin-token that a coordinator writes when it first starts",
    fix: "name the file with --token-file; `holdfast token create NAME` makes a token for a user",
  });
}

/** A text that no header can carry is no token. @throws UsageError, which does not contain the text. */
export function checkToken(token: string, at: string): string {
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw new UsageError("the token contains characters that tokens never contain", {
    at,
    expected: "a token of one line that begins with hf_",
    fix: "give the token exactly as it was made",
  });
}

const OF_TOKEN: ReadonlySet<string> = new Set<ErrorCode>([
  "unauthenticated",
  "token_revoked",
  "insufficient_scope",
]);

/** An error of asking it, with where its token came from. */
export function asAsked(thrown: unknown, { url, tokenFrom, patience }: CoordinatorAccess): HoldfastError {
  const error = toHoldfastError(thrown);
  const { code, message, got, expected, fix } = error;
  if (patience !== undefined && code === "storage_unavailable")
    return new HoldfastError("unavailable", `the local stack does not answer: ${url}`, {
      at: url,
      expected: `an answer within ${patience.waitMs / 1_000} s`,
      fix: "run `holdfast local status` and `holdfast local logs` to see why",
      cause: thrown,
    });
  const isOfToken = OF_TOKEN.has(code);
  const at = isOfToken ? `the token in ${tokenFrom}` : undefined;
  if (at === undefined) return error;
  const where =
    "check the token's source: --token-file, else HOLDFAST_TOKEN, else the admin-token of a coordinator here";
  const fixes = [fix, isOfToken ? where : undefined].filter((text) => text !== undefined);
  return new HoldfastError(code, message, {
    at,
    ...defined({ got, expected }),
    ...(fixes.length === 0 ? {} : { fix: fixes.join("; ") }),
    cause: thrown,
  });
}
