// `NetworkPolicy`: which hosts an executor may reach through its gateway, and which addresses nobody may.
//
//   - A host is allowed by its name, or as a part of a domain: `*.example.org` is each name below
//     `example.org`. Without a port, 443 is meant. Nothing is allowed by default.
//   - A private, local or reserved address is refused whatever the name, unless the host is in `allowPrivate`
//     as well. Addresses of cloud metadata are always refused.

import { UsageError } from "@holdfast/core";
import { addressKind } from "@holdfast/system/address-kind";

export interface NetworkPolicy {
  /** Hosts, such as `packages.example.org`, `*.example.org` or `git.example.org:8443`. */
  readonly allow: readonly string[];
  /** Hosts of `allow`, spelled in the same way, whose addresses may be private. */
  readonly allowPrivate?: readonly string[];
}

export interface Target {
  readonly host: string;
  readonly port: number;
}

const HTTPS_PORT = 443;
const PATTERN =
  /^(\*\.)?([a-z\d]([a-z\d-]*[a-z\d])?\.)*[a-z\d]([a-z\d-]*[a-z\d])?(:\d{1,5})?$|^\[[\da-f:.]+\](:\d{1,5})?$/i;

/** Whether a text may stand in `allow`. */
export function isHostPattern(text: string): boolean {
  return PATTERN.test(text);
}

/** @throws UsageError */
export function checkNetworkPolicy({ allow, allowPrivate = [] }: NetworkPolicy): void {
  const wrong = [...allow, ...allowPrivate].find((pattern) => !isHostPattern(pattern));
  if (wrong === undefined) return;
  throw new UsageError(`"${wrong}" is no host that can be allowed`, {
    expected: "a host, with a port if it is not 443: example.org, *.example.org, git.example.org:8443",
  });
}

/** The target of a CONNECT request, `host:port`. */
export function targetOf(authority: string): Target | undefined {
  const [, ipv6, name, port] = /^(?:\[([\da-fA-F:.]+)\]|([^:[\]/@\s]+)):(\d{1,5})$/.exec(authority) ?? [];
  const host = (ipv6 ?? name ?? "").toLowerCase().replace(/\.$/, "");
  const number = Number(port);
  return host === "" || number < 1 || number > 65_535 ? undefined : { host, port: number };
}

export function isAllowed(target: Target, patterns: readonly string[]): boolean {
  return patterns.some((pattern) => {
    const [, ipv6, name = "", port] = /^(?:\[(.*)\]|([^:]*))(?::(\d+))?$/.exec(pattern.toLowerCase()) ?? [];
    const host = ipv6 ?? name;
    if (Number(port ?? HTTPS_PORT) !== target.port) return false;
    return host.startsWith("*.") ? target.host.endsWith(host.slice(1)) : target.host === host;
  });
}

export function isAddressAllowed(address: string, target: Target, policy: NetworkPolicy): boolean {
  const kind = addressKind(address);
  if (kind === undefined || kind === "metadata") return false;
  return kind === "public" || isAllowed(target, policy.allowPrivate ?? []);
}
