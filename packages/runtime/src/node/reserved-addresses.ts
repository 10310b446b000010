// `isReservedAddress`, `isMetadataAddress`: addresses that no program of a model or of an executor may reach.

import { BlockList, isIP, isIPv6 } from "node:net";

/** Whether this is a private, local or reserved address, or a text that is none. */
export function isReservedAddress(address: string): boolean {
  return isMetadataAddress(address) || PRIVATE.check(address, familyOf(address));
}

/** Whether cloud providers answer here with the credentials of the machine. Also for a text that is no address. */
export function isMetadataAddress(address: string): boolean {
  return isIP(address) === 0 || METADATA.check(address, familyOf(address));
}

function familyOf(address: string): "ipv4" | "ipv6" {
  return isIPv6(address) ? "ipv6" : "ipv4";
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

/** Addresses that no host of the Internet has (IANA special-purpose registries), and those that hide another one. */
const PRIVATE = blockList(
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
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
  "::1/128",
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
