// `SignIns`: how a browser is signed in, by a cookie that holds its token encrypted, and by the key, which
// the page keeps.
//
//   - The cookie counts only together with the header `X-Holdfast-Page`, which has the key. A form or an
//     image of another page cannot send that header. A script of another origin would have to ask first,
//     which is refused (request-guards-2). Browsers send cookies also to other ports of the same host, and
//     take these for the same site. The storage of a page is that of its port alone, so the server of another
//     port gets a cookie that it cannot use.
//   - Scripts cannot read the cookie (`HttpOnly`), and pages of other sites do not send it
//     (`SameSite=Strict`).
//   - A code stands for a token for a minute, and once. It is in the address that `holdfast ui` opens, and
//     its token never is.

import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

/** The header that the page sends with every request: the key of its cookie. */
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

  /** A code that `take` exchanges for this token. */
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

/** Whether a header can hold this text. */
export function fitsHeader(token: string): boolean {
  return TOKEN.test(token);
}

const CIPHER = "aes-256-gcm";
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** A token for a cookie, and the key for the page. Each sign-in has a key of its own, which no server keeps. */
export function sealToken(token: string): { readonly sealed: string; readonly key: string } {
  const key = randomBytes(KEY_BYTES);
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce);
  const text = Buffer.concat([cipher.update(token, "utf8"), cipher.final()]);
  const sealed = Buffer.concat([nonce, cipher.getAuthTag(), text]).toString("base64url");
  return { sealed, key: key.toString("base64url") };
}

/** @returns `undefined` for a cookie and a key that do not belong together. */
function openToken(sealed: string, key: string): string | undefined {
  try {
    const bytes = Buffer.from(sealed, "base64url");
    const end = NONCE_BYTES + TAG_BYTES;
    const nonce = bytes.subarray(0, NONCE_BYTES);
    const decipher = createDecipheriv(CIPHER, Buffer.from(key, "base64url"), nonce, {
      authTagLength: TAG_BYTES,
    });
    decipher.setAuthTag(bytes.subarray(NONCE_BYTES, end));
    return Buffer.concat([decipher.update(bytes.subarray(end)), decipher.final()]).toString("utf8");
  } catch {
    return undefined; // Other lengths, or bytes that somebody has changed.
  }
}

/** The header Authorization that a request of the page stands for. */
export function authorizationOf(headers: IncomingHttpHeaders): string | undefined {
  const key = headers[PAGE_HEADER];
  if (headers.authorization !== undefined || typeof key !== "string") return headers.authorization;
  const name = `${cookieName(headers)}=`;
  const found = (headers.cookie ?? "").split(/;\s*/).find((pair) => pair.startsWith(name));
  const token = found === undefined ? undefined : openToken(found.slice(name.length), key);
  return token === undefined ? undefined : `Bearer ${token}`;
}

/** The header Set-Cookie that signs in with a token (`sealToken`), or out without one. */
export function cookieFor(
  headers: IncomingHttpHeaders,
  sealed: string | undefined,
  isSecure: boolean,
): string {
  const end = sealed === undefined ? "; Max-Age=0" : "";
  const secure = isSecure ? "; Secure" : "";
  return `${cookieName(headers)}=${sealed ?? ""}; Path=/; HttpOnly; SameSite=Strict${secure}${end}`;
}

/** Several servers of one machine share a host, and differ by their ports. */
function cookieName(headers: IncomingHttpHeaders): string {
  const host = headers.host ?? String(headers[":authority"] ?? "");
  return `holdfast_${/:(\d+)$/.exec(host)?.[1] ?? "page"}`;
}
