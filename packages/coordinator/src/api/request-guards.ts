// `checkHead` and `checkBody` refuse requests by their heads alone, before routing. All checks are pure.
//
//   request-guards-1. A request names one Host, and it is ours. A name that an attacker points at this
//       address is refused (DNS rebinding).
//   request-guards-2. A web page of another origin, or of no origin (`null`), is refused. No answer allows
//       all origins to read it.
//   - A body is JSON and is not compressed. A body whose declared length is too large is refused before it is
//     read.
//   - A header that may appear once appears once. If there were two tokens or types, a proxy might have
//     checked the other one.

import { Refusal } from "../call/refusal.ts";

/** A request's head, of either version of HTTP. */
export interface Head {
  /** The target as it was sent: a path with its query, in a valid request. */
  readonly target: string;
  /** Names and values in turn, as they were sent. */
  readonly rawHeaders: readonly string[];
  readonly isHttp2: boolean;
}

export interface GuardPolicy {
  /** The accepted values of Host, in lower case, with their port. */
  readonly hosts: ReadonlySet<string>;
  /** Origins besides those of the accepted hosts, for example of a page that is served elsewhere. */
  readonly origins: ReadonlySet<string>;
  readonly headerBytes: number;
}

/** @throws Refusal with the reason. */
export function checkHead(head: Head, policy: GuardPolicy): void {
  const { rawHeaders, target, isHttp2 } = head;
  const bytes = rawHeaders.reduce((sum, text) => sum + text.length + 2, target.length);
  if (bytes > policy.headerBytes) {
    throw new Refusal("headers_too_large", "the headers are too large", {
      got: `${bytes} bytes`,
      expected: `at most ${policy.headerBytes}`,
    });
  }
  if (!target.startsWith("/")) {
    throw new Refusal("bad_request", "the request's target is not a path", {
      expected: "a path that begins with a slash; the coordinator is no proxy",
    });
  }
  const hosts = hostsOf(rawHeaders, isHttp2);
  if (hosts.length !== 1) {
    throw new Refusal("bad_request", "the request must name one host", {
      got: `${hosts.length} of them`,
      expected: "the header Host once, and with HTTP/2 the same as :authority",
    });
  }
  if (!policy.hosts.has(hosts[0]!.toLowerCase())) {
    throw new Refusal("forbidden_origin", "the coordinator does not serve this host", {
      got: hosts[0]!.slice(0, 60),
      expected: "the coordinator's address, or one of its configured hosts",
      fix: "use one of these; behind a proxy, forward the original Host header, and name that host in `hosts`",
    });
  }
  checkOrigin(valuesOf(rawHeaders, "origin"), policy);
  checkRepeated(rawHeaders);
}

/** In HTTP/2 the authority. A proxy may use the Host header instead, as in HTTP/1.1 (RFC 9113, 8.3.1). */
function hostsOf(rawHeaders: readonly string[], isHttp2: boolean): readonly string[] {
  const named = valuesOf(rawHeaders, "host");
  return isHttp2 ? [...new Set([...valuesOf(rawHeaders, ":authority"), ...named])] : named;
}

const SAID_ONCE: ReadonlySet<string> = new Set([
  "authorization",
  "content-type",
  "content-encoding",
  "last-event-id",
  "idempotency-key",
]);

function checkRepeated(rawHeaders: readonly string[]): void {
  const seen = new Set<string>();
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!.toLowerCase();
    if (seen.has(name))
      throw new Refusal("bad_request", `the header ${name} is given more than once`, { expected: "it once" });
    if (SAID_ONCE.has(name)) seen.add(name);
  }
}

function checkOrigin(origins: readonly string[], policy: GuardPolicy): void {
  const isOurs = (origin: string): boolean => {
    const host = /^https?:\/\/([^/]+)$/.exec(origin.toLowerCase())?.[1];
    return (host !== undefined && policy.hosts.has(host)) || policy.origins.has(origin.toLowerCase());
  };
  // mutant: foreign-origin-allowed
  if (origins.length > 1 || !origins.every(isOurs)) {
    throw new Refusal("forbidden_origin", "pages of this origin may not call", {
      expected: "no Origin, the coordinator's own, or a configured one",
    });
  }
}

/** Headers that name an encoding of the body, and the values that mean none. */
const ENCODINGS = [
  ["content-encoding", "identity"],
  ["transfer-encoding", "chunked"],
] as const;

/** Checks the head of a request with a body. @throws Refusal `unsupported_media_type` or `too_large`. */
export function checkBody(rawHeaders: readonly string[], maxBytes: number): void {
  for (const [name, plain] of ENCODINGS) {
    const [encoding] = valuesOf(rawHeaders, name);
    if (encoding === undefined || encoding.toLowerCase() === plain) continue;
    throw new Refusal("unsupported_media_type", "the body is compressed", {
      got: `${name}: ${encoding.slice(0, 40)}`,
      expected: "a body without compression",
    });
  }
  const length = valuesOf(rawHeaders, "content-length")[0];
  if (length !== undefined && Number(length) > maxBytes) throw tooLarge(Number(length), maxBytes);
}

export function isJsonType(type: string): boolean {
  return /^application\/json\s*(;\s*charset="?utf-8"?\s*)?$/i.test(type);
}

/** @throws Refusal `unsupported_media_type`. */
export function checkJsonType(rawHeaders: readonly string[]): void {
  const [type = "none"] = valuesOf(rawHeaders, "content-type");
  if (isJsonType(type)) return;
  throw new Refusal("unsupported_media_type", "the body must be JSON", {
    got: `Content-Type: ${type.slice(0, 60)}`,
    expected: "Content-Type: application/json",
  });
}

export function tooLarge(bytes: number, maxBytes: number): Refusal {
  return new Refusal("too_large", `the body has at least ${bytes} bytes; the limit is ${maxBytes}`, {
    got: `${bytes} bytes`,
    expected: `at most ${maxBytes}`,
  });
}

export function valuesOf(rawHeaders: readonly string[], name: string): string[] {
  return rawHeaders.filter((_, index) => index % 2 === 1 && rawHeaders[index - 1]!.toLowerCase() === name);
}
