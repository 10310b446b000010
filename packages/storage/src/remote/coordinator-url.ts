// A coordinator's URL: what may be one, and whether what answers there speaks as it says.

import { UsageError } from "@holdfast/core";
import { connect } from "node:tls";

const EXPECTED = "http://127.0.0.1:8765, or https://HOST:PORT";
const PROBE_MS = 2_000;

/** A token goes over plain HTTP to this machine only, unless somebody says that the network is safe. @throws UsageError */
export function checkUrl(url: string, insecure: boolean): URL {
  if (typeof url !== "string" || url === "")
    throw new UsageError("a coordinator's URL is missing", { at: "url", got: show(url), expected: EXPECTED });
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(url)?.[1]?.toLowerCase();
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (scheme !== "http" && scheme !== "https") {
    const rest = scheme === undefined ? url : url.slice(scheme.length + "://".length);
    throw new UsageError(
      scheme === undefined
        ? `"${url}" is not a coordinator's URL: it does not begin with http:// or https://`
        : `a coordinator is called over HTTP, not ${scheme}`,
      { at: "url", got: url, expected: EXPECTED, fix: `say ${rightForm(rest)}` },
    );
  }
  if (parsed === undefined)
    throw new UsageError(`"${url}" is not a coordinator's URL`, { at: "url", got: url, expected: EXPECTED });
  if (parsed.username !== "" || parsed.password !== "")
    throw new UsageError("a coordinator's URL has no name and no password in it", {
      at: "url",
      got: `something before ${parsed.host}`,
      fix: "leave them out: a token says who asks",
    });
  if (scheme === "https" || insecure || isLoopback(parsed.hostname)) return parsed;
  throw new UsageError(`a token would go to ${parsed.host} unencrypted`, {
    at: "url",
    got: url,
    expected: "https, or http to this machine",
    fix: `serve the coordinator over TLS and say https://${parsed.host}; where the network is your own, a runner takes --insecure, a program { insecure: true }`,
  });
}

/** As TLS says that what it was answered is none. */
const NO_TLS = /wrong version number|packet length too long/i;

/** Whether a call over https failed because plain HTTP is spoken there. */
export function isPlainThere(url: string, reason: string): boolean {
  return url.startsWith("https:") && NO_TLS.test(reason);
}

export function plainThere(url: string, reason: string): UsageError {
  return new UsageError(`the URL says https, and plain HTTP is spoken at ${new URL(url).host}`, {
    at: url,
    got: reason.trim(),
    fix: `say ${url.replace(/^https:/, "http:")}, or have the coordinator serve TLS (\`tls\` in its configuration)`,
  });
}

/** The error of a URL that says http where TLS is spoken, which cuts what it does not understand without a word. */
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

function show(given: unknown): string {
  return given === "" ? "nothing" : String(given);
}

function rightForm(host: string): string {
  const { hostname } = URL.canParse(`http://${host}`) ? new URL(`http://${host}`) : { hostname: "" };
  return isLoopback(hostname) ? `http://${host}` : `https://${host === "" ? "HOST:PORT" : host}`;
}

function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127(\.\d{1,3}){3}$/.test(hostname);
}
