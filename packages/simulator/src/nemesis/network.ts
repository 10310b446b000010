// `openNetwork`: a network for a fleet on this machine. Each member has a network namespace, where its
// traffic can be cut, and a bridge joins them.
//
//   - All namespaces and links have the harness's pid in their names. The next harness removes those that a
//     dead one left.
//   - Without root, or on a machine without namespaces, members share this machine's loopback. Its traffic
//     cannot be cut, and `without` is the reason.
//
// The network knows no coordinators and no runners: members have names and addresses.

import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";

const NAME = /^hfn(\d+)/;
const NAMESPACES = "/run/netns";

/** Traffic that does not pass at a member, in its own namespace. */
export interface Cut {
  readonly member: string;
  /** Packets from there, packets to there, or both. */
  readonly way: "in" | "out" | "both";
  readonly peer: string;
  /** Only TCP with this port at the peer. */
  readonly port?: number;
  /** The percentage of packets that are lost; all by default. */
  readonly share?: number;
}

export interface Network {
  /** The address of the harness and the database. */
  readonly host: string;
  /** In CIDR notation. */
  readonly subnet: string;
  /** The reason why traffic cannot be cut; `undefined` when it can. */
  readonly without: string | undefined;
  address(member: string): string;
  /** A command, with the words that make it run at a member. */
  command(member: string, words: readonly string[]): readonly [string, ...string[]];
  cut(cut: Cut): void;
  /** Undo all cuts at a member. */
  heal(member: string): void;
  close(): void;
}

/** Namespaces if the machine permits them, or the loopback. */
export function openNetwork(members: readonly string[], isWanted: boolean): Network {
  const missing = isWanted ? whatIsMissing() : "it was not asked for";
  return missing === undefined ? new Namespaces(members) : new Loopback(missing);
}

function whatIsMissing(): string | undefined {
  if (process.getuid?.() !== 0) return "network namespaces need root";
  for (const tool of ["ip", "nsenter"])
    if (!isThere(tool)) return `there is no command ${tool} (packages iproute2 and util-linux)`;
  if (filterTool() === undefined) return "there is neither iptables nor nft (packages iptables and nftables)";
  const { status, stderr } = spawnSync("unshare", ["-n", "true"], { encoding: "utf8" });
  return status === 0 ? undefined : `this machine lets nobody make a network namespace: ${stderr.trim()}`;
}

function isThere(tool: string): boolean {
  return spawnSync(tool, ["--version"]).error === undefined;
}

function filterTool(): "iptables" | "nft" | undefined {
  return isThere("iptables") ? "iptables" : isThere("nft") ? "nft" : undefined;
}

class Loopback implements Network {
  readonly host = "127.0.0.1";
  readonly subnet = "127.0.0.1/32";
  readonly without: string;

  constructor(without: string) {
    this.without = without;
  }

  address(): string {
    return this.host;
  }

  command(_member: string, words: readonly string[]): readonly [string, ...string[]] {
    return words as [string, ...string[]];
  }

  cut(): void {
    throw new Error(`nothing can be cut: ${this.without}`);
  }

  heal(): void {}

  close(): void {}
}

class Namespaces implements Network {
  readonly without = undefined;
  readonly host: string;
  readonly subnet: string;
  readonly #prefix = `hfn${process.pid}`;
  readonly #bridge = `${this.#prefix}b`;
  readonly #addresses = new Map<string, string>();
  readonly #tool = filterTool()!;

  constructor(members: readonly string[]) {
    sweepNetworks();
    const network = `10.213.${process.pid % 250}`;
    this.host = `${network}.1`;
    this.subnet = `${network}.0/24`;
    try {
      run("ip", "link", "add", "name", this.#bridge, "type", "bridge");
      run("ip", "address", "add", `${this.host}/24`, "dev", this.#bridge);
      run("ip", "link", "set", this.#bridge, "up");
      members.forEach((member, i) => this.#add(member, i, `${network}.${10 + i}`));
    } catch (error) {
      this.close();
      throw error;
    }
  }

  #add(member: string, index: number, address: string): void {
    const namespace = `${this.#prefix}-${member}`;
    // An interface's name has 15 characters at most.
    const [outer, inner] = [`${this.#prefix}v${index}`, "eth0"];
    this.#addresses.set(member, address);
    run("ip", "netns", "add", namespace);
    run("ip", "link", "add", outer, "type", "veth", "peer", "name", inner, "netns", namespace);
    run("ip", "link", "set", outer, "master", this.#bridge, "up");
    run("ip", "-n", namespace, "address", "add", `${address}/24`, "dev", inner);
    run("ip", "-n", namespace, "link", "set", inner, "up");
    run("ip", "-n", namespace, "link", "set", "lo", "up");
    if (this.#tool === "nft") {
      this.#at(member, "nft", "add", "table", "ip", "cuts");
      for (const hook of ["input", "output"])
        this.#at(member, "nft", `add chain ip cuts ${hook} { type filter hook ${hook} priority 0 ; }`);
    }
  }

  address(member: string): string {
    const address = this.#addresses.get(member);
    if (address === undefined) throw new Error(`the network has no member ${member}`);
    return address;
  }

  command(member: string, words: readonly string[]): readonly [string, ...string[]] {
    return ["nsenter", `--net=${NAMESPACES}/${this.#prefix}-${member}`, ...words];
  }

  cut({ member, way, peer, port, share = 100 }: Cut): void {
    for (const hook of ["input", "output"] as const) {
      if (way !== "both" && way !== (hook === "input" ? "in" : "out")) continue;
      if (this.#tool === "iptables") this.#cutByIptables(member, hook, peer, port, share);
      else this.#cutByNft(member, hook, peer, port, share);
    }
  }

  #cutByIptables(
    member: string,
    hook: "input" | "output",
    peer: string,
    port: number | undefined,
    share: number,
  ) {
    const [side, gate] = hook === "input" ? ["-s", "--sport"] : ["-d", "--dport"];
    const only = port === undefined ? [] : ["-p", "tcp", gate, String(port)];
    const random = ["-m", "statistic", "--mode", "random", "--probability", String(share / 100)];
    const rule = [side, peer, ...only, ...(share < 100 ? random : []), "-j", "DROP"];
    this.#at(member, "iptables", "-w", "-A", hook.toUpperCase(), ...rule);
  }

  #cutByNft(member: string, hook: "input" | "output", peer: string, port: number | undefined, share: number) {
    const [side, gate] = hook === "input" ? ["saddr", "sport"] : ["daddr", "dport"];
    const only = port === undefined ? "" : `tcp ${gate} ${port} `;
    const random = share < 100 ? `numgen random mod 100 < ${share} ` : "";
    this.#at(member, "nft", `add rule ip cuts ${hook} ip ${side} ${peer} ${only}${random}drop`);
  }

  heal(member: string): void {
    if (this.#tool === "iptables") this.#at(member, "iptables", "-w", "-F");
    else this.#at(member, "nft", "flush", "table", "ip", "cuts");
  }

  #at(member: string, ...words: string[]): void {
    run(...this.command(member, words));
  }

  close(): void {
    removeOwnNetwork();
  }
}

export function removeOwnNetwork(): void {
  removeNetwork(process.pid);
}

export function sweepNetworks(): void {
  for (const pid of harnesses()) if (!isAlive(pid)) removeNetwork(pid);
}

function harnesses(): ReadonlySet<number> {
  const names = [...listed(NAMESPACES), ...listed("/sys/class/net")];
  return new Set(names.flatMap((name) => (NAME.test(name) ? [Number(NAME.exec(name)![1])] : [])));
}

function removeNetwork(pid: number): void {
  const isOf = (name: string): boolean => Number(NAME.exec(name)?.[1]) === pid;
  for (const namespace of listed(NAMESPACES).filter(isOf)) {
    const { stdout } = spawnSync("ip", ["netns", "pids", namespace], { encoding: "utf8" });
    for (const member of stdout.split("\n").filter(Boolean)) endProcess(Number(member));
    spawnSync("ip", ["netns", "delete", namespace]);
  }
  for (const link of listed("/sys/class/net").filter(isOf)) spawnSync("ip", ["link", "delete", link]);
}

/** Nothing where there is no such folder. */
export function listed(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function run(command: string, ...words: string[]): void {
  const { status, stderr, error } = spawnSync(command, words, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${command} ${words.join(" ")}: ${error?.message ?? stderr}`);
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** It may have ended already. */
export function endProcess(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // Then that is what was wanted.
  }
}
