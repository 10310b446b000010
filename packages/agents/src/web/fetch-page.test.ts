import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { addressKind } from "@holdfast/system/address-kind";
import { afterEach, expect, test } from "vitest";

import { FETCH_LIMITS, fetchPage, hostOf, PUBLIC_NETWORK, type Network } from "./fetch-page.ts";
import { pageText } from "./page-text.ts";
import { toMarkdown } from "./page-text.ts";

let server: Server | undefined;
let port = 0;
const requests: string[] = [];
const { signal } = new AbortController();

afterEach(async () => {
  requests.length = 0;
  server?.closeAllConnections();
  await new Promise((resolve) => (server === undefined ? resolve(undefined) : server.close(resolve)));
  server = undefined;
});

async function serve(listener: RequestListener): Promise<void> {
  server = createServer((request, response) => {
    requests.push(`${request.headers.host} ${request.url}`);
    listener(request, response);
  });
  await new Promise<void>((resolve) => server?.listen(0, "127.0.0.1", resolve));
  ({ port } = server.address() as AddressInfo);
}

/** A network in which every name is this machine, and this machine is public. */
const HERE: Network = {
  lookup: async () => [{ address: "127.0.0.1", family: 4 }],
  isRefused: (address) => address !== "127.0.0.1" && addressKind(address) !== "public",
};

const at = (path = "/", host = "site.test"): string => `http://${host}:${port}${path}`;
const textOf = async (path = "/") => pageText(await fetchPage(at(path), signal, HERE), signal);

test("a page of HTML becomes Markdown without its scripts and styles", async () => {
  await serve((_, response) => {
    response.setHeader("content-type", "text/html; charset=iso-8859-1");
    response.end(
      Buffer.from(
        "<style>p{}</style><h1>Caf\u00e9</h1><p>See <a href='/x'>this</a>.</p><script>alert(1)</script><ul><li>one</li></ul>",
        "latin1",
      ),
    );
  });
  expect(await textOf()).toBe("# Caf\u00e9\n\nSee [this](/x).\n\n-   one");
  expect(requests).toEqual([`site.test:${port} /`]);
});

test.each([
  "http://127.0.0.1:PORT/",
  "http://localhost:PORT/",
  "http://0x7f.1:PORT/",
  "http://2130706433:PORT/",
  "http://[::1]:PORT/",
  "http://[::ffff:127.0.0.1]:PORT/",
  "http://0.0.0.0:PORT/",
  "http://10.1.2.3/",
  "http://192.168.0.1/",
  "http://169.254.169.254/latest/meta-data/",
  "http://[fd00:ec2::254]/",
  "http://[fe80::1]/",
])("no connection is made to %s", async (url) => {
  await serve((_, response) => response.end("secret"));
  const error = fetchPage(url.replace("PORT", String(port)), signal, PUBLIC_NETWORK);
  await expect(error).rejects.toMatchObject({ code: "policy_denied" });
  expect(requests).toEqual([]);
});

test("X8: a name with a private address is refused, also when only one of its addresses is private", async () => {
  await serve((_, response) => response.end("secret"));
  const addresses = ["93.184.216.34", "169.254.169.254"].map((address) => ({ address, family: 4 }));
  const network = { ...PUBLIC_NETWORK, lookup: async () => addresses };
  await expect(fetchPage(at("/", "metadata.test"), signal, network)).rejects.toMatchObject({
    code: "policy_denied",
  });
});

test("X8: a name that changes its address between two connections is refused at the second", async () => {
  await serve((_, response) => response.writeHead(302, { location: "/inside" }).end());
  const answers = ["127.0.0.1", "127.0.0.2"];
  const network = { ...HERE, lookup: async () => [{ address: answers.shift() ?? "", family: 4 }] };
  await expect(fetchPage(at(), signal, network)).rejects.toMatchObject({ code: "policy_denied" });
  expect(requests).toEqual([`site.test:${port} /`]);
});

test("X8: a redirect is followed on its host, and another host is named instead", async () => {
  await serve(({ url }, response) => {
    if (url === "/end") return response.setHeader("content-type", "text/plain").end("here");
    return response.writeHead(301, { location: url === "/a" ? "/end" : at("/x", "other.test") }).end();
  });
  expect(await textOf("/a")).toBe("here");
  expect(await fetchPage(at("/b"), signal, HERE)).toMatchObject({
    movedTo: at("/x", "other.test"),
    status: 301,
  });
  expect(requests).toHaveLength(3);
});

test("redirects without end are an error", async () => {
  await serve((_, response) => response.writeHead(302, { location: "/again" }).end());
  await expect(textOf()).rejects.toMatchObject({ code: "limit_exceeded" });
  expect(requests).toHaveLength(FETCH_LIMITS.redirects + 1);
});

test("a page without end is cut, and its connection is closed", async () => {
  const closed = Promise.withResolvers<void>();
  await serve((_, response) => {
    response.setHeader("content-type", "text/plain");
    response.once("close", () => closed.resolve());
    const flood = (): void => {
      while (!response.destroyed && response.write("x".repeat(65_536)));
      if (!response.destroyed) response.once("drain", flood);
    };
    flood();
  });
  const page = await fetchPage(at(), signal, HERE);
  expect([page.isCut, page.body.length]).toEqual([true, FETCH_LIMITS.bytes]);
  await closed.promise;
});

test.each<[string, Record<string, string>, string | Buffer, object]>([
  ["an image", { "content-type": "image/png" }, "x", { code: "invalid_output" }],
  ["bytes", { "content-type": "text/plain" }, Buffer.from([1, 0, 2]), { code: "invalid_output" }],
  ["a compressed page", { "content-encoding": "gzip" }, "x", { code: "invalid_output" }],
])("%s is refused", async (_, headers, body, error) => {
  await serve((_request, response) => response.writeHead(200, headers).end(body));
  await expect(textOf()).rejects.toMatchObject(error);
});

test("a page that would take minutes to convert is a text without structure", async () => {
  const html = `${"<div>".repeat(50_000)}deep`;
  expect(await toMarkdown(html, signal, 100)).toBe("deep");
});

test.each([
  ["of another protocol", "ftp://a.test/"],
  ["of a file", "file:///etc/passwd"],
  ["without a protocol", "no url"],
  ["with a password", "http://user:pass@a.test/"],
  ["that is too long", `http://a.test/${"x".repeat(5_000)}`],
])("an address %s is refused", async (_, url) => {
  await expect(fetchPage(url, signal)).rejects.toMatchObject({ code: "invalid_input" });
});

test("the host of a rule has no dot at its end and no capital letter", () => {
  expect(hostOf("https://Example.COM.:8443/x")).toBe("example.com");
});

test("a server that is not there is worth another attempt, and an abort is the reason of the abort", async () => {
  await serve((_, response) => response.flushHeaders());
  const controller = new AbortController();
  const waiting = fetchPage(at(), controller.signal, HERE);
  await expect.poll(() => requests.length).toBe(1);
  controller.abort(new Error("cancelled by the test"));
  await expect(waiting).rejects.toThrow("cancelled by the test");
  server?.closeAllConnections();
  await new Promise((resolve) => server?.close(resolve));
  server = undefined;
  await expect(textOf()).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("ECONNREFUSED"),
  });
});
