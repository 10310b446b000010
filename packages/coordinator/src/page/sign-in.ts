// `SignIns`: how a browser is signed in, by a cookie that holds its token.
//
//   sign-in-1. The cookie counts only together with the header `X-Holdfast-Page`. A form or an image of another page cannot send
//       that header. A script of another origin would have to ask first, which is refused (request-guards-2). Browsers
//       send cookies also to other ports of the same host, and take these for the same site.
//   sign-in-2. Scripts cannot read the cookie (`HttpOnly`), and pages of other sites do not send it (`SameSite=Strict`).
//   sign-in-3. A code stands for a token for a minute, and once. It is in the address that `holdfast ui` opens, and its token
//       never is.

import { randomBytes } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

/** The header that the page sends with every request. */
const PAGE_HEADER = "x-holdfast-page";
const CODE_MS = 60_000;
const TOKEN = /^[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]{1,500}$/;

export class SignIns {
  readonly #codes = new Map<string, { readonly token: string; readonly endsAt: number }>();
  readonly #monotonic: () => number;

  /** @param monotonic milliseconds that only grow. */
  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** A code that `take` exchanges for this token (sign-in-3). */
  newCode(token: string): string {
    const code = randomBytes(32).toString("base64url");
    this.#codes.set(code, { token, endsAt: this.#monotonic() + CODE_MS });
    return code;
  }

  take(code: string): string | undefined {
    const found = this.#codes.get(code);
    this.#codes.delete(code);
    return found === undefined || found.endsAt < this.#monotonic() ? undefined : found.token;
  }
}

/** Whether a cookie can hold this text. */
export function fitsCookie(token: string): boolean {
  return TOKEN.test(token);
}

/** The header Authorization that a request of the page stands for (sign-in-1). */
export function authorizationOf(headers: IncomingHttpHeaders): string | undefined {
  if (headers.authorization !== undefined || headers[PAGE_HEADER] === undefined) return headers.authorization;
  const name = `${cookieName(headers)}=`;
  const found = (headers.cookie ?? "").split(/;\s*/).find((pair) => pair.startsWith(name));
  const token = found?.slice(name.length);
  return token === undefined || token === "" ? undefined : `Bearer ${token}`;
}

/** The header Set-Cookie that signs in with a token, or out without one. */
export function cookieFor(
  headers: IncomingHttpHeaders,
  token: string | undefined,
  isSecure: boolean,
): string {
  const value = token === undefined ? "; Max-Age=0" : "";
  const secure = isSecure ? "; Secure" : "";
  return `${cookieName(headers)}=${token ?? ""}; Path=/; HttpOnly; SameSite=Strict${secure}${value}`;
}

/** Several servers of one machine share a host, and differ by their ports. */
function cookieName(headers: IncomingHttpHeaders): string {
  const host = headers.host ?? String(headers[":authority"] ?? "");
  return `holdfast_${/:(\d+)$/.exec(host)?.[1] ?? "page"}`;
}
