// `ConnectProxy`: tunnels of an executor to other hosts, by CONNECT. The executor and the host encrypt the
// content of a tunnel. We have no certificate authority of our own, so that nothing in a tunnel is redacted.
//
//   - Only an allowed host is connected, at the port that is allowed.
//   - The name is resolved once, and the address that was checked is the one that is dialled.
//   - A tunnel ends with its gateway, and when nothing passes for five minutes.

import { HoldfastError } from "@holdfast/core";
import { lookup } from "node:dns/promises";
import type { IncomingMessage } from "node:http";
import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { isAddressAllowed, isAllowed, targetOf, type NetworkPolicy, type Target } from "./network-policy.ts";

const IDLE_MS = 300_000;
const CONNECT_MS = 10_000;

/** The addresses of a name. */
export type Resolve = (host: string) => Promise<readonly { readonly address: string }[]>;

const resolveByName: Resolve = (host) => lookup(host, { all: true, verbatim: true });

export class ConnectProxy {
  readonly #policy: NetworkPolicy;
  readonly #resolve: Resolve;
  readonly #open = new Set<Duplex>();
  #isClosed = false;

  constructor(policy: NetworkPolicy, resolve: Resolve = resolveByName) {
    this.#policy = policy;
    this.#resolve = resolve;
  }

  /** @throws HoldfastError `bad_request`, `policy_denied`, or `unavailable` for a host that does not answer. */
  async tunnel(request: IncomingMessage, client: Duplex, head: Buffer): Promise<void> {
    const target = targetOf(request.url ?? "");
    if (target === undefined)
      throw new HoldfastError("bad_request", "the target of CONNECT is not a host and a port");
    // mutant: tunnel-to-any-host
    if (!isAllowed(target, this.#policy.allow)) throw denied(target, "the policy does not allow this host");
    const address = await this.#addressOf(target);
    const upstream = await this.#dial(address, target);
    this.#track(client, upstream);
    client.write("HTTP/1.1 200 Connection Established\r\n\r\n");
    if (head.length > 0) upstream.write(head);
    upstream.setTimeout(IDLE_MS, () => upstream.destroy());
    upstream.pipe(client);
    client.pipe(upstream);
  }

  close(): void {
    this.#isClosed = true;
    for (const socket of this.#open) socket.destroy();
  }

  async #addressOf(target: Target): Promise<string> {
    let found: Awaited<ReturnType<Resolve>>;
    try {
      found = await this.#resolve(target.host);
    } catch {
      throw new HoldfastError("unavailable", `the host ${target.host} has no address`);
    }
    const addresses = found.map(({ address }) => address);
    // mutant: private-address-dialled
    const address = addresses.find((candidate) => isAddressAllowed(candidate, target, this.#policy));
    if (address === undefined) throw denied(target, "its address is private or reserved");
    return address;
  }

  #dial(address: string, target: Target): Promise<Socket> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: address, port: target.port, timeout: CONNECT_MS });
      const fail = (): void => {
        socket.destroy();
        reject(new HoldfastError("unavailable", `the host ${target.host} does not answer`));
      };
      socket.once("error", fail);
      socket.once("timeout", fail);
      socket.once("connect", () => {
        socket.off("error", fail);
        socket.off("timeout", fail);
        resolve(socket);
      });
    });
  }

  #track(client: Duplex, upstream: Socket): void {
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      this.#open.add(socket);
      socket.on("error", () => other.destroy());
      socket.on("close", () => {
        this.#open.delete(socket);
        other.destroy();
      });
    }
    if (this.#isClosed || client.destroyed) upstream.destroy();
  }
}

function denied({ host, port }: Target, why: string): HoldfastError {
  return new HoldfastError("policy_denied", `no connection to ${host}:${port}: ${why}`, {
    fix: "allow the host in the policy of this runner",
  });
}
