// `openSocket` and the functions here send and read bytes on a socket that no HTTP client would send or show.

import { once, type EventEmitter } from "node:events";
import { connect, type Socket } from "node:net";

/** Sends a text and returns all bytes until the other side closes. */
export async function exchangeBytes(port: number, text: string): Promise<string> {
  const socket = await openSocket(port);
  socket.write(text);
  return readToEnd(socket);
}

/** @param allowHalfOpen whether the socket stays open when the other side ends. */
export async function openSocket(port: number, allowHalfOpen = false): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen });
  await once(socket, "connect");
  return socket;
}

export async function readToEnd(socket: Socket): Promise<string> {
  let text = "";
  socket.setEncoding("utf8").on("data", (chunk) => (text += String(chunk)));
  await closed(socket);
  return text;
}

/**
 * Waits until a connection is closed. A reset closes it too, and `once` would turn a reset into a rejection.
 */
export async function closed(connection: EventEmitter & { readonly closed: boolean }): Promise<void> {
  connection.on("error", () => {});
  if (!connection.closed) await new Promise((resolve) => connection.once("close", resolve));
}

/** Reads until the text has come. */
export async function readUntil(socket: Socket, wanted: string): Promise<string> {
  let text = "";
  for await (const chunk of socket.setEncoding("utf8")) {
    text += String(chunk);
    if (text.includes(wanted)) break;
  }
  return text;
}

/** A request in the form of HTTP/1.1 whose answer ends the connection. */
export function requestText(port: number, line: string, headers: readonly string[] = [], body = ""): string {
  const own = [`Host: 127.0.0.1:${port}`, "Connection: close"];
  return `${line} HTTP/1.1\r\n${[...own, ...headers].join("\r\n")}\r\n\r\n${body}`;
}

export function statusOf(answer: string): number {
  return Number(/^HTTP\/1\.1 (\d{3}) /.exec(answer)?.[1]);
}
