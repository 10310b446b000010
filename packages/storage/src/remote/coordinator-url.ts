// checkUrl: checks the form of a coordinator's URL, without a request.

import { UsageError } from "@holdfast/core";

const EXPECTED = "http://127.0.0.1:8765, or https://HOST:PORT";

/**
 * A token goes over plain HTTP to this machine only, unless the caller says that the network is safe.
 *
 * @throws UsageError
 */
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
    throw new UsageError(`"${url}" is not a coordinator's URL`, {
      at: "url",
      got: url,
      expected: EXPECTED,
      fix: "correct its host and its port",
    });
  if (parsed.username !== "" || parsed.password !== "")
    throw new UsageError("a coordinator's URL has no name and no password in it", {
      at: "url",
      got: `something before ${parsed.host}`,
      fix: "remove them: the token identifies the caller",
    });
  if (scheme === "https" || insecure || isLoopback(parsed.hostname)) return parsed;
  throw new UsageError(`a token would go to ${parsed.host} unencrypted`, {
    at: "url",
    got: url,
    expected: "https, or http to this machine",
    fix: `serve the coordinator over TLS and say https://${parsed.host}; where the network is your own, a runner takes --insecure, a program { insecure: true }`,
  });
}

function show(given: unknown): string {
  return given === "" ? "nothing" : String(given);
}

function rightForm(host: string): string {
  const { hostname } = URL.canParse(`http://${host}`) ? new URL(`http://${host}`) : { hostname: "" };
  return isLoopback(hostname) ? `http://${host}` : `https://${host === "" ? "HOST:PORT" : host}`;
}

/** @param hostname as `URL` has it. */
export function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127(\.\d{1,3}){3}$/.test(hostname);
}
