// `fetchPage`: one GET of a public web page, for a model that names the address.
//
//   fetch-page-1. A private, local, reserved or metadata address is refused where it is dialled. The name is
//       resolved once for each connection, and the addresses that were checked are the ones that are dialled.
//       A name that changes its address gains nothing.
//   - A redirect is followed to the same host alone. A person permitted this host, and another one is another
//     question.
//   - The page has limits of size, time and redirects. The server chooses none of them.
//   - No cookie, no credential and no referrer is sent.

import { lookup as lookupByName, type LookupAddress } from "node:dns";
import type { IncomingMessage, RequestOptions } from "node:http";
import { isIP, type LookupFunction } from "node:net";
import { HoldfastError, MIB, UnavailableError } from "@holdfast/core";
import { addressKind } from "@holdfast/system/address-kind";

export const FETCH_LIMITS = {
  bytes: 4 * MIB,
  totalMs: 60_000,
  redirects: 5,
  urlChars: 4_000,
} as const;

export interface Page {
  readonly url: string;
  readonly status: number;
  /** `text/html`, without parameters. */
  readonly type: string;
  readonly charset: string;
  readonly body: Buffer;
  readonly isCut: boolean;
  /** Where the page has moved to, on another host. */
  readonly movedTo?: string;
}

/** The access to the network, which tests replace. */
export interface Network {
  readonly lookup: (host: string) => Promise<readonly LookupAddress[]>;
  /** Whether nobody may connect to this address. */
  readonly isRefused: (address: string) => boolean;
}

export const PUBLIC_NETWORK: Network = {
  lookup: (host) =>
    new Promise((resolve, reject) => {
      lookupByName(host, { all: true, verbatim: true }, (error, addresses) =>
        error === null ? resolve(addresses) : reject(error),
      );
    }),
  isRefused: (address) => addressKind(address) !== "public",
};

/**
 * @throws HoldfastError `invalid_input` for an address that is none, `policy_denied` for a host that is not
 *   public, `unavailable` for a server that does not answer.
 */
export async function fetchPage(text: string, signal: AbortSignal, network = PUBLIC_NETWORK): Promise<Page> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(FETCH_LIMITS.totalMs)]);
  let url = readUrl(text);
  for (let redirects = 0; redirects <= FETCH_LIMITS.redirects; redirects++) {
    const response = await get(url, limit, network).catch((error: unknown) => {
      signal.throwIfAborted();
      throw HoldfastError.is(error) ? error : unreachable(url, error);
    });
    const next = redirectOf(response, url);
    if (next === undefined) return readPage(url, response, { signal, limit });
    response.destroy();
    if (next.hostname !== url.hostname) return moved(url, response, next);
    url = next;
  }
  throw new HoldfastError("limit_exceeded", `${text} redirects more than ${FETCH_LIMITS.redirects} times`);
}

/** The host of an address, for rules. @throws HoldfastError `invalid_input` */
export function hostOf(text: string): string {
  return readUrl(text).hostname.replace(/\.$/, "");
}

function readUrl(text: string): URL {
  const url = text.length <= FETCH_LIMITS.urlChars && URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== "http:" && url.protocol !== "https:"))
    throw new HoldfastError("invalid_input", "the url is no address of a web page", {
      expected: "http://… or https://…",
    });
  if (url.username !== "" || url.password !== "")
    throw new HoldfastError("invalid_input", "the url holds a user name or a password");
  return url;
}

async function get(url: URL, signal: AbortSignal, network: Network): Promise<IncomingMessage> {
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  // The lookup is not called for an address.
  if (isIP(host) !== 0) refuseAddresses(host, [{ address: host, family: isIP(host) }], network);
  const options: RequestOptions = {
    method: "GET",
    agent: false, // No connection of before, whose address was checked for another host.
    signal,
    lookup: checkedLookup(network),
    headers: {
      accept: "text/html,application/xhtml+xml,text/*;q=0.9,application/json;q=0.9,*/*;q=0.1",
      "accept-encoding": "identity",
      "user-agent": "holdfast (web_fetch)",
    },
  };
  const { request: ask } = url.protocol === "https:" ? await import("node:https") : await import("node:http");
  return new Promise((resolve, reject) => {
    const request = ask(url, options, resolve);
    request.once("error", reject);
    request.end();
  });
}

/** fetch-page-1. */
function checkedLookup(network: Network): LookupFunction {
  return (host, { all }, callback) => {
    network
      .lookup(host)
      .then(
        (addresses) => {
          const [first, ...rest] = refuseAddresses(host, addresses, network);
          if (all === true) callback(null, [first, ...rest]);
          else callback(null, first.address, first.family);
        },
        (error: NodeJS.ErrnoException) => callback(error, ""),
      )
      .catch((error: NodeJS.ErrnoException) => callback(error, ""));
  };
}

/** @returns the addresses of the host. A single private address refuses the host, because a public host has none. */
function refuseAddresses(
  host: string,
  addresses: readonly LookupAddress[],
  { isRefused }: Network,
): readonly [LookupAddress, ...LookupAddress[]] {
  const [first, ...rest] = addresses;
  // mutant: private-page-fetched
  if (first !== undefined && !addresses.some(({ address }) => isRefused(address))) return [first, ...rest];
  throw new HoldfastError(
    "policy_denied",
    `${host} is no host of the public Internet: its address is private or reserved`,
    {
      fix: "use the shell for servers of this machine or network, if you may",
    },
  );
}

function redirectOf({ statusCode = 0, headers }: IncomingMessage, from: URL): URL | undefined {
  const { location } = headers;
  if (![301, 302, 303, 307, 308].includes(statusCode) || location === undefined) return undefined;
  if (!URL.canParse(location, from.href))
    throw new HoldfastError("invalid_input", `${from.href} redirects to an address that is none`);
  return readUrl(new URL(location, from.href).href);
}

function moved(url: URL, { statusCode = 0 }: IncomingMessage, to: URL): Page {
  const none = { type: "", charset: "utf-8", body: Buffer.alloc(0), isCut: false };
  return { url: url.href, status: statusCode, ...none, movedTo: to.href };
}

/** @param signal the caller's; `limit` is aborted at the end of the time as well. */
async function readPage(
  url: URL,
  response: IncomingMessage,
  { signal, limit }: { readonly signal: AbortSignal; readonly limit: AbortSignal },
): Promise<Page> {
  const { statusCode: status = 0, headers } = response;
  const encoding = headers["content-encoding"] ?? "identity";
  if (encoding !== "identity") {
    response.destroy();
    throw new HoldfastError(
      "invalid_output",
      `${url.href} is compressed (${encoding}), although that was not asked for`,
    );
  }
  const [type = "", ...parameters] = (headers["content-type"] ?? "").toLowerCase().split(";");
  const charset = /charset="?([\w-]+)/.exec(parameters.join(";"))?.[1] ?? "utf-8";
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      bytes += chunk.byteLength;
      if (bytes > FETCH_LIMITS.bytes) break; // The loop closes the connection.
    }
  } catch (error) {
    signal.throwIfAborted();
    throw unreachable(
      url,
      limit.aborted ? new Error(`it took longer than ${FETCH_LIMITS.totalMs} ms`) : error,
    );
  }
  const body = Buffer.concat(chunks).subarray(0, FETCH_LIMITS.bytes);
  return { url: url.href, status, type: type.trim(), charset, body, isCut: bytes > FETCH_LIMITS.bytes };
}

function unreachable(url: URL, error: unknown): UnavailableError {
  const { code, message } = error as NodeJS.ErrnoException;
  return new UnavailableError("unavailable", `${url.host} does not answer: ${code ?? message}`);
}
