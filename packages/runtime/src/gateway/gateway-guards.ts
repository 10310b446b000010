// Checks of a request to a run gateway before its route is looked up (`checkHead`, `tokenOf`). They are pure.
//
//   - A request names one Host, and it is the gateway's own. A name that an attacker points at this address
//     is refused (DNS rebinding).
//   - A request of a web page, which has an Origin, is refused. No executor is a page.
//   - A token is in a header. Executors of the earlier protocol send none, so it may also be at the beginning
//     of the path.

import { HoldfastError } from "@holdfast/core";
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";

/** The first segment of a path that begins with a token. */
export const JOB_PATH = "/job/";

/** @throws HoldfastError `bad_request` or `forbidden_origin`. */
export function checkHead(
  { url = "", headers, rawHeaders }: Pick<IncomingMessage, "url" | "headers" | "rawHeaders">,
  hosts: ReadonlySet<string>,
): void {
  if (!url.startsWith("/"))
    throw new HoldfastError("bad_request", "the request's target is not a path", {
      expected: "a path that begins with a slash",
    });
  const named = rawHeaders.filter((name, at) => at % 2 === 0 && name.toLowerCase() === "host").length;
  if (named !== 1)
    throw new HoldfastError("bad_request", "the request must name one host", {
      got: `${named} of them`,
      expected: "the header Host once",
    });
  const { host = "", origin } = headers;
  if (!hosts.has(host.toLowerCase()))
    throw new HoldfastError("forbidden_origin", "the gateway does not serve this host", {
      got: host.slice(0, 60),
      expected: "the address that the executor was given",
    });
  if (origin !== undefined)
    throw new HoldfastError("forbidden_origin", "web pages may not call the gateway", {
      expected: "a request without the header Origin",
    });
}

export interface Credentials {
  readonly token: string | undefined;
  /** The path without the token. */
  readonly path: string;
}

/** Model clients send their key in a header of their provider; here it is the token. */
export function credentialsOf(path: string, headers: IncomingHttpHeaders): Credentials {
  if (path.startsWith(JOB_PATH)) {
    const end = path.indexOf("/", JOB_PATH.length);
    const token = path.slice(JOB_PATH.length, end < 0 ? undefined : end);
    return { token, path: end < 0 ? "/" : path.slice(end) };
  }
  // Clients of a proxy take user and password from its URL.
  const [, basic] = /^Basic (\S+)$/i.exec(headers["proxy-authorization"] ?? "") ?? [];
  if (basic !== undefined) {
    const [, password] = /^[^:]*:(.*)$/.exec(Buffer.from(basic, "base64").toString()) ?? [];
    return { token: password, path };
  }
  const [, bearer] = /^Bearer (\S+)$/i.exec(headers.authorization ?? "") ?? [];
  const key = KEY_HEADERS.map((name) => headers[name]).find((value) => typeof value === "string");
  return { token: bearer ?? (typeof key === "string" ? key : undefined), path };
}

/** Headers in which model clients send a key. */
const KEY_HEADERS: readonly string[] = ["x-api-key", "api-key", "x-goog-api-key"];
