// An address of this machine in front of a server, as a virtual IP or a proxy is. A test points it at another
// server.

import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";

export interface MovingAddress {
  readonly url: string;
  /**
   * Where new connections go from now on; they are closed at once when absent.
   *
   * @param open what becomes of the connections that are open: they are closed, or nobody answers them.
   */
  pointAt(url: string | undefined, open?: "closed" | "silent"): void;
  close(): void;
}

/** @param url of the server that it leads to at first. */
export async function openMovingAddress(url: string): Promise<MovingAddress> {
  const door = createServer();
  await new Promise<void>((resolve, reject) => {
    door.once("error", reject);
    door.listen(0, "127.0.0.1", resolve);
  });
  door.unref();
  return new Address(door, url);
}

class Address implements MovingAddress {
  readonly url: string;
  readonly #door: Server;
  readonly #open = new Set<Socket>();
  #target: URL | undefined;

  constructor(door: Server, url: string) {
    const own = new URL(url);
    own.port = String((door.address() as AddressInfo).port);
    this.url = own.href;
    this.#door = door;
    this.#target = new URL(url);
    door.on("connection", (asking) => this.#join(asking));
  }

  #join(asking: Socket): void {
    const target = this.#target;
    if (target === undefined) return void asking.on("error", () => {}).destroy();
    const server = connect({ host: target.hostname, port: Number(target.port) });
    for (const [socket, other] of [
      [asking, server],
      [server, asking],
    ] as const) {
      this.#open.add(socket.unref());
      socket.on("error", () => {});
      socket.on("close", () => {
        this.#open.delete(socket);
        other.destroy();
      });
      socket.pipe(other);
    }
  }

  pointAt(url: string | undefined, open: "closed" | "silent" = "closed"): void {
    this.#target = url === undefined ? undefined : new URL(url);
    for (const socket of this.#open) {
      if (open === "closed") socket.destroy();
      else socket.removeAllListeners("close").unpipe().pause();
    }
  }

  close(): void {
    this.pointAt(undefined);
    this.#door.close();
  }
}
