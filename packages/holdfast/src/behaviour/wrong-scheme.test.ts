// A URL that says http where TLS is spoken, and the other way round: both are said at once, and nothing is tried again.

import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createTcpServer } from "node:net";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { CoordinatorConnection, openRemoteStorage } from "@holdfast/storage/remote";
import { afterEach, describe, expect, test } from "vitest";
import { TEST_TLS } from "@holdfast/coordinator/tls-testing";
import { createClient } from "@holdfast/client";

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

// A coordinator that is only away is waited for.
test("nobody there is unavailable", async () => {
  const connection = new CoordinatorConnection({ url: "http://127.0.0.1:9", token: "none" });
  const error = await connection.explained(new Error("connect ECONNREFUSED"));
  expect(error.code).toBe("storage_unavailable");
  connection.close();
});

describe("something else than a coordinator at the URL", () => {
  const HTML: RequestListener = (_request, response) => {
    response.writeHead(404, { "content-type": "text/html" }).end("<html>none</html>");
  };
  const servers: Readonly<Record<string, () => Server>> = {
    "a web server": () => createServer(HTML),
    "a web server that has a page for everything": () =>
      createServer((_request, response) => {
        response.writeHead(200, { "content-type": "text/html" }).end("<html>hello</html>");
      }),
    "an API of others": () =>
      createServer((_request, response) => {
        response
          .writeHead(404, { "content-type": "application/json" })
          .end('{"code":5,"message":"Not Found"}');
      }),
    "a server that refuses POST, as Python's does": () =>
      createServer((_request, response) => {
        response.writeHead(501).end("Unsupported method");
      }),
    "what speaks no HTTP": () =>
      createTcpServer((socket) => socket.resume().end("220 mail\r\n")) as unknown as Server,
  };

  test.each(Object.keys(servers))("the client names the server and does not wait: %s", async (name) => {
    const url = `http://localhost:${await portOf(servers[name]!())}`;
    const client = createClient({ url, token: "none", retryMs: 60_000 });
    await expect(client.sessions.get("ses_1").status()).rejects.toMatchObject({
      code: "not_a_coordinator",
      message: `${new URL(url).host} answers, but is not a Holdfast coordinator`,
      at: url,
    });
    client.close();
  });

  test.each([401, 403, 429, 502, 503])(
    "a proxy whose coordinator is away counts as unavailable: HTTP %i",
    async (status) => {
      const server = createServer((_request, response) => void response.writeHead(status).end());
      const url = `http://localhost:${await portOf(server)}`;
      const connection = new CoordinatorConnection({ url, token: "none" });
      const error = await connection.explained(new Error("the connection was cut"));
      expect(error.code).toBe("storage_unavailable");
      connection.close();
    },
  );
});
