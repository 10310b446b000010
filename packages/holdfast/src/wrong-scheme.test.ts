// A URL that says http where TLS is spoken, and the other way round: both are said at once, and nothing is tried again.

import { createServer, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { CoordinatorConnection, openRemoteStorage } from "@holdfast/storage/remote";
import { afterEach, describe, expect, test } from "vitest";
import { TEST_TLS } from "@holdfast/coordinator/tls-testing";
import { createClient } from "./client.ts";

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function portOf(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "localhost", resolve));
  closers.push(() => new Promise((resolve) => server.close(resolve)));
  return (server.address() as AddressInfo).port;
}

describe.each(["2", "1.1"] as const)("over HTTP/%s", (httpVersion) => {
  test("http where TLS is spoken", async () => {
    const url = `http://localhost:${await portOf(createTlsServer(TEST_TLS))}`;
    const storage = openRemoteStorage({ url, token: "none", httpVersion });
    closers.push(() => storage.close());
    await expect(storage.reader.session("ses_1")).rejects.toMatchObject({
      code: "usage",
      message: expect.stringContaining("TLS is spoken") as string,
      at: url,
      fix: `say ${url.replace("http:", "https:")}`,
    });
  });

  test("https where plain HTTP is spoken", async () => {
    const url = `https://localhost:${await portOf(createServer())}`;
    const storage = openRemoteStorage({ url, token: "none", httpVersion });
    closers.push(() => storage.close());
    await expect(storage.reader.session("ses_1")).rejects.toMatchObject({
      code: "usage",
      message: expect.stringContaining("plain HTTP is spoken") as string,
      at: url,
      fix: expect.stringContaining(`say ${url.replace("https:", "http:")}`) as string,
    });
  });
});

test("events of a client say so as well", async () => {
  const url = `http://localhost:${await portOf(createTlsServer(TEST_TLS))}`;
  const client = createClient({ url, token: "none" });
  await expect(client.sessions.get("ses_1").events().next()).rejects.toMatchObject({ code: "usage" });
  client.close();
});

// Whoever is only away is waited for.
test("nobody there is unavailable", async () => {
  const connection = new CoordinatorConnection({ url: "http://127.0.0.1:9", token: "none" });
  const error = await connection.explained(new Error("connect ECONNREFUSED"));
  expect(error.code).toBe("storage_unavailable");
  connection.close();
});
