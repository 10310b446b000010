// `renew`: renews claims at a coordinator from a thread, which cannot use the connection of its process.
//
// It is one request over HTTP/1.1, by the means of Node alone: a thread that is rarely needed loads no
// client.

import type { RenewInThread } from "@holdfast/core";

/** The coordinator, and the token of the process. */
export interface ThreadCoordinator {
  /** Coordinators that share a storage, in the order in which they are asked. */
  readonly urls: readonly string[];
  readonly token: string;
}

/** The answers by which the claims are no longer those of this process. */
const REFUSED: ReadonlySet<number> = new Set([401, 403, 404]);
/** How long a coordinator is waited for when there is another one. */
const NEXT_MS = 5_000;

type Renewal = Parameters<RenewInThread>[1];

/** For the data of a `RemoteStorage`. */
export const renew: RenewInThread = async (data, renewal) => {
  const { urls, token } = data as ThreadCoordinator;
  for (const url of urls.slice(0, -1)) {
    const signal = AbortSignal.any([renewal.signal, AbortSignal.timeout(NEXT_MS)]);
    const isHeld = await renewAt(url, token, { ...renewal, signal }).catch(() => undefined);
    if (isHeld !== undefined) return isHeld;
  }
  return renewAt(urls.at(-1)!, token, renewal);
};

async function renewAt(
  url: string,
  token: string,
  { signal, leaseMs, ...renewal }: Renewal,
): Promise<boolean> {
  const response = await fetch(`${url}/holdfast.v1.StorageService/Renew`, {
    method: "POST",
    signal,
    redirect: "error",
    headers: {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      "connect-protocol-version": "1",
    },
    body: JSON.stringify({ ...renewal, leaseMs: String(leaseMs) }),
  });
  const text = await response.text();
  if (REFUSED.has(response.status)) return false;
  if (!response.ok) throw new Error(`the coordinator answered HTTP ${response.status}`);
  const { sessions = 0 } = JSON.parse(text) as { sessions?: number };
  return sessions > 0;
}
