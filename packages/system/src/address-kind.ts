// `addressKind`: which network an IP address belongs to. It decides for the address that is dialled, and not
// for a name.

import { BlockList, isIP, isIPv6 } from "node:net";

/** `metadata`: cloud providers answer there with the credentials of the machine. */
export type AddressKind = "public" | "loopback" | "private" | "metadata";

/** @returns `undefined` for a text that is no address. */
export function addressKind(address: string): AddressKind | undefined {
  if (isIP(address) === 0) return undefined;
  if (METADATA.has(address)) return "metadata";
  if (LOOPBACK.has(address)) return "loopback";
  return PRIVATE.has(address) ? "private" : "public";
}

/** Made at its first use: a program that starts pays 4 ms for lists that most programs do not use. */
class Ranges {
  readonly #ranges: readonly string[];
  #list: BlockList | undefined;

  constructor(...ranges: readonly string[]) {
    this.#ranges = ranges;
  }

  has(address: string): boolean {
    return (this.#list ??= listOf(this.#ranges)).check(address, familyOf(address));
  }
}

function listOf(ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = "", bits] = range.split("/");
    list.addSubnet(address, Number(bits), familyOf(address));
  }
  return list;
}

function familyOf(address: string): "ipv4" | "ipv6" {
  return isIPv6(address) ? "ipv6" : "ipv4";
}

const METADATA = new Ranges("169.254.0.0/16", "fe80::/10", "fd00:ec2::254/128", "100.100.100.200/32");

const LOOPBACK = new Ranges("127.0.0.0/8", "::1/128");

/** Addresses that no host of the Internet has (IANA special-purpose registries), and those that hide another one. */
const PRIVATE = new Ranges(
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
