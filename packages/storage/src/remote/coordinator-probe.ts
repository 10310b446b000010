// tlsThere and otherServerThere: why a call to a coordinator got no answer in our protocol. TLS or none is
// spoken at its URL, or another server answers there.
//
//   - A probe sends no token, gives up after two seconds, and never throws: without a finding it answers
//     nothing.
//   - Only an answer that no retry changes is held against a server. The answer of a proxy whose coordinator
//     is away is not.

import { ERROR_TABLE, HoldfastError, UsageError } from "@holdfast/core";
import { ErrorDetailSchema, SessionService } from "@holdfast/proto";
import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { clearTimeout, setTimeout } from "node:timers";
import { connect } from "node:tls";

const PROBE_MS = 2_000;
/** A refusal of ours is some hundred bytes. */
const ANSWER_BYTES = 64 * 1024;

/** As TLS says that what it was answered is none. */
const NO_TLS = /wrong version number|packet length too long/i;

/** Whether a call over https failed because plain HTTP is spoken there. */
export function isPlainThere(url: string, reason: string): boolean {
  return url.startsWith("https:") && NO_TLS.test(reason);
}

export function plainThere(url: string): UsageError {
  return new UsageError(`the URL says https, and plain HTTP is spoken at ${new URL(url).host}`, {
    at: url,
    got: "an answer that is no TLS",
    fix: `say ${url.replace(/^https:/, "http:")}, or have the coordinator serve TLS (\`tls\` in its configuration)`,
  });
}

/**
 * The error of a URL with http for a server that speaks TLS. Such a server cuts the connection without an
 * error.
 */
export async function tlsThere(url: string): Promise<UsageError | undefined> {
  const { protocol, hostname, port, host } = new URL(url);
  if (protocol !== "http:" || !(await speaksTls(hostname.replace(/^\[|\]$/g, ""), Number(port || 80))))
    return;
  return new UsageError(`the URL says http, and TLS is spoken at ${host}`, {
    at: url,
    got: "a TLS handshake",
    fix: `say ${url.replace(/^http:/, "https:")}`,
  });
}

/** Nothing is sent but a greeting, so nobody has to be believed. */
function speaksTls(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, rejectUnauthorized: false, timeout: PROBE_MS });
    const end = (isTls: boolean): void => {
      socket.destroy();
      resolve(isTls);
    };
    socket.on("secureConnect", () => end(true));
    for (const event of ["error", "timeout", "close"]) socket.on(event, () => end(false));
  });
}

/** Statuses that may change in a moment, or after a login at a proxy. */
const PASSING: ReadonlySet<number> = new Set([401, 403, 408, 425, 429, 500, 502, 503, 504]);

/** The error of a URL where something else answers than a coordinator. */
export async function otherServerThere(url: string): Promise<HoldfastError | undefined> {
  const answer = await askWithoutToken(url);
  if (answer === undefined || answer.isOurs || PASSING.has(answer.status)) return undefined;
  const { host } = new URL(url);
  return new HoldfastError("not_a_coordinator", `${host} answers, but is not a Holdfast coordinator`, {
    at: url,
    got: answer.got,
    expected: "a coordinator, as `holdfast coordinator` starts one",
    fix: "correct the URL: its port, or its path behind a proxy",
  });
}

interface Answer {
  readonly status: number;
  readonly got: string;
  /** It is a refusal in our words. */
  readonly isOurs: boolean;
}

interface BadAnswer extends Error {
  readonly code?: string;
  readonly rawPacket?: Uint8Array;
}

/** The type of a server's first frame in HTTP/2. A server of HTTP/2 alone cannot be judged by HTTP/1.1. */
const HTTP2_SETTINGS = 4;

/** A call that every coordinator refuses in our words, as it has no token. */
function askWithoutToken(url: string): Promise<Answer | undefined> {
  return new Promise((resolve) => {
    const { protocol } = new URL(url);
    const path = `${url.replace(/\/+$/, "")}/${SessionService.typeName}/Get`;
    const headers = { "content-type": "application/json", "connect-protocol-version": "1" };
    const options = { method: "POST", headers, timeout: PROBE_MS, agent: false };
    const request = (protocol === "https:" ? requestHttps : requestHttp)(path, options);
    const give = (answer: Answer | undefined): void => {
      clearTimeout(timer);
      request.destroy();
      resolve(answer);
    };
    const timer = setTimeout(() => give(undefined), PROBE_MS);
    request.on("error", (error: BadAnswer) => {
      const isNoHttp = error.code?.startsWith("HPE_") === true && error.rawPacket?.[3] !== HTTP2_SETTINGS;
      give(isNoHttp ? { status: 0, got: "an answer that is no HTTP", isOurs: false } : undefined);
    });
    request.on("response", (response) => {
      const { statusCode: status = 0 } = response;
      const type = (response.headers["content-type"] ?? "no content type").slice(0, 80);
      let text = "";
      const end = (): void => give({ status, got: `HTTP ${status}, ${type}`, isOurs: isOurs(text) });
      response.setEncoding("utf8").on("data", (piece: string) => {
        text += piece;
        if (text.length > ANSWER_BYTES) end();
      });
      response.on("end", end).on("error", () => give(undefined));
    });
    request.end("{}");
  });
}

/**
 * Whether this is an error as Connect has it, with our detail, or one of REST's problems with a code of
 * ours.
 */
function isOurs(text: string): boolean {
  try {
    const { code, details } = JSON.parse(text) as { code?: unknown; details?: unknown };
    if (Array.isArray(details))
      return details.some(
        (detail) => (detail as { type?: unknown } | null)?.type === ErrorDetailSchema.typeName,
      );
    return typeof code === "string" && Object.hasOwn(ERROR_TABLE, code);
  } catch {
    return false;
  }
}
