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
  /** The id of their deployment. Absent before the first answer. */
  readonly deployment?: string;
}

/** The answers by which the claims are no longer those of this process. */
const REFUSED: ReadonlySet<number> = new Set([401, 403, 404]);
/** As in `@holdfast/proto`, which a thread that is rarely needed does not load. */
const DEPLOYMENT = "holdfast-deployment";
const DETAIL = "holdfast.v1.ErrorDetail";
/** How long a coordinator is waited for when there is another one. */
const NEXT_MS = 5_000;

type Renewal = Parameters<RenewInThread>[1];

/** For the data of a `RemoteStorage`. */
export const renew: RenewInThread = async (data, renewal) => {
  const coordinator = data as ThreadCoordinator;
  const { urls } = coordinator;
  for (const url of urls.slice(0, -1)) {
    const signal = AbortSignal.any([renewal.signal, AbortSignal.timeout(NEXT_MS)]);
    const isHeld = await renewAt(url, coordinator, { ...renewal, signal }).catch(() => undefined);
    if (isHeld !== undefined) return isHeld;
  }
  return renewAt(urls.at(-1)!, coordinator, renewal);
};

async function renewAt(
  url: string,
  { token, deployment }: ThreadCoordinator,
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
  const other = response.headers.get(DEPLOYMENT);
  if (deployment !== undefined && other !== null && other !== deployment)
    throw new Error(`another deployment answered at ${url}`);
  if (REFUSED.has(response.status) && isOurs(text)) return false;
  if (!response.ok) throw new Error(`the coordinator answered HTTP ${response.status}`);
  const { sessions = 0 } = JSON.parse(text) as { sessions?: number };
  return sessions > 0;
}

/** A proxy, and whatever else may answer at the address, refuses in its own words. */
function isOurs(text: string): boolean {
  try {
    const { details = [] } = JSON.parse(text) as {
      readonly details?: readonly { readonly type?: unknown }[];
    };
    return details.some(({ type }) => type === DETAIL);
  } catch {
    return false;
  }
}
