// `addressKind`: which network an IP address belongs to. It decides for the address that is dialled, and not
// for a name.

import { BlockList, isIP, isIPv6 } from "node:net";

/** `metadata`: cloud providers answer there with the credentials of the machine. */
export type AddressKind = "public" | "loopback" | "private" | "metadata";

/** @returns `undefined` for a text that is no address. */
export function addressKind(address: string): AddressKind | undefined {
  if (isIP(address) === 0) return undefined;
  const family = isIPv6(address) ? "ipv6" : "ipv4";
  if (METADATA.check(address, family)) return "metadata";
  if (LOOPBACK.check(address, family)) return "loopback";
  return PRIVATE.check(address, family) ? "private" : "public";
}

function blockList(...ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = "", bits] = range.split("/");
    list.addSubnet(address, Number(bits), isIPv6(address) ? "ipv6" : "ipv4");
  }
  return list;
}

const METADATA = blockList("169.254.0.0/16", "fe80::/10", "fd00:ec2::254/128", "100.100.100.200/32");

const LOOPBACK = blockList("127.0.0.0/8", "::1/128");

/** Addresses that no host of the Internet has (IANA special-purpose registries), and those that hide another one. */
const PRIVATE = blockList(
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
  "::/128",
  "64:ff9b::/96",
  "64:ff9b:1::/48",
  "100::/64",
  "2001::/32",
  "2001:db8::/32",
  "2002::/16",
  "fc00::/7",
  "fec0::/10",
  "ff00::/8",
);
