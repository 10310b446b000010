import { Redactor } from "@holdfast/system";
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Resolve } from "./connect-proxy.ts";
import { isAddressAllowed, isAllowed, targetOf, type NetworkPolicy } from "./network-policy.ts";
import { startRunGateway, type RunGateway } from "./run-gateway.ts";

const run = { sessionId: "ses_1", runId: "run_1" };
const closers: (() => unknown)[] = [];
let port: number;
let dialled = 0;

beforeEach(async () => {
  dialled = 0;
  const echo = createServer((socket) => {
    dialled += 1;
    socket.on("error", () => {});
    socket.pipe(socket);
  });
  echo.listen(0, "127.0.0.1");
  await once(echo, "listening");
  ({ port } = echo.address() as AddressInfo);
  closers.push(() => echo.close());
});
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

async function gatewayWith(network: NetworkPolicy, resolve: Resolve): Promise<RunGateway> {
  const gateway = await startRunGateway({ run, routes: {}, redactor: new Redactor(), network, resolve });
  closers.push(() => gateway.close());
  return gateway;
}

/** A CONNECT request: its connection, and the answer of the gateway. */
async function tunnel(
  { origin, token }: RunGateway,
  target: string,
  proxyAuthorization = `Basic ${btoa(`run:${token}`)}`,
): Promise<{ socket: Socket; head: string }> {
  const socket = connect(Number(new URL(origin).port), "127.0.0.1");
  closers.push(() => socket.destroy());
  socket.setEncoding("utf8");
  socket.write(
    `CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\nProxy-Authorization: ${proxyAuthorization}\r\n\r\n`,
  );
  const [head] = (await once(socket, "data")) as [string];
  return { socket, head };
}

const toLoopback: Resolve = async () => [{ address: "127.0.0.1" }];

describe("a tunnel", () => {
  test("an allowed host is reached, and bytes pass in both directions until the gateway closes", async () => {
    const host = `git.example.org:${port}`;
    const gateway = await gatewayWith({ allow: [host], allowPrivate: [host] }, toLoopback);
    const { socket, head } = await tunnel(gateway, host);
    expect(head).toBe("HTTP/1.1 200 Connection Established\r\n\r\n");
    socket.write("hello");
    expect(await once(socket, "data")).toEqual(["hello"]);
    const closed = once(socket, "close");
    await gateway.close();
    await closed;
    expect(dialled).toBe(1);
  });

  test("the executor is given the proxy with its token, and only where there are tunnels", async () => {
    const gateway = await gatewayWith({ allow: ["example.org"] }, toLoopback);
    const { port: own } = new URL(gateway.origin);
    expect(gateway.env["HTTPS_PROXY"]).toBe(`http://run:${gateway.token}@127.0.0.1:${own}`);
    const without = await startRunGateway({ run, routes: {}, redactor: new Redactor() });
    closers.push(() => without.close());
    expect(without.env).toEqual({});
    expect((await tunnel(without, "example.org:443")).head).toMatch(/^HTTP\/1.1 403 /);
  });

  test.each([
    ["a host that is not allowed", "other.example.org:PORT", undefined, 403],
    ["another port of an allowed host", "git.example.org:22", undefined, 403],
    ["a target that is none", "git.example.org", undefined, 400],
    ["a caller without the token", "git.example.org:PORT", "Basic cnVuOng=", 401],
  ])("%s is refused, and nothing is dialled", async (_what, target, authorization, status) => {
    const host = `git.example.org:${port}`;
    const gateway = await gatewayWith({ allow: [host], allowPrivate: [host] }, toLoopback);
    const { head } = await tunnel(gateway, target.replace("PORT", String(port)), authorization);
    expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(dialled).toBe(0);
  });

  test("a host that may only be private is not allowed by that, and nothing is dialled", async () => {
    const host = `git.example.org:${port}`;
    const gateway = await gatewayWith({ allow: [], allowPrivate: [host] }, toLoopback);
    const { head } = await tunnel(gateway, host);
    expect(head).toMatch(/^HTTP\/1.1 403 /);
    expect(dialled).toBe(0);
  });

  test("an allowed name whose address is private is refused, also when a later answer would not be", async () => {
    const host = `git.example.org:${port}`;
    const gateway = await gatewayWith({ allow: [host] }, toLoopback);
    const { head } = await tunnel(gateway, host);
    expect(head).toMatch(/^HTTP\/1.1 403 /);
    expect(head).toContain("its address is private or reserved");
    let asked = 0;
    const changing = await gatewayWith({ allow: [host] }, async () => {
      asked += 1;
      return [{ address: asked === 1 ? "203.0.113.1" : "127.0.0.1" }];
    });
    expect((await tunnel(changing, host)).head).toMatch(/^HTTP\/1.1 403 /);
    expect([asked, dialled]).toEqual([1, 0]);
  });

  test("a name without an address is unavailable", async () => {
    const gateway = await gatewayWith({ allow: ["none.example.org"] }, () =>
      Promise.reject(new Error("ENOTFOUND")),
    );
    expect((await tunnel(gateway, "none.example.org:443")).head).toMatch(/^HTTP\/1.1 503 /);
  });
});

test.each([
  ["example.org:443", ["example.org"], true],
  ["EXAMPLE.org.:443", ["example.org"], true],
  ["example.org:8443", ["example.org"], false],
  ["example.org:8443", ["example.org:8443"], true],
  ["a.example.org:443", ["*.example.org"], true],
  ["example.org:443", ["*.example.org"], false],
  ["badexample.org:443", ["*.example.org"], false],
  ["example.org.evil.com:443", ["example.org", "*.example.org"], false],
  ["[2606:4700::1]:443", ["[2606:4700::1]"], true],
  ["anything:443", [], false],
])("whether %s is allowed by %j is %s", (target, allow, expected) => {
  expect(isAllowed(targetOf(target)!, allow)).toBe(expected);
});

const BLOCKED = [
  "127.0.0.1",
  "0.0.0.0",
  "10.1.2.3",
  "172.16.0.1",
  "192.168.1.1",
  "100.64.0.1",
  "169.254.169.254",
  "::1",
  "::",
  "fe80::1",
  "fd00:ec2::254",
  "fc00::1",
  "::ffff:127.0.0.1",
  "::ffff:169.254.169.254",
  "64:ff9b::7f00:1",
  "2002:7f00:1::",
  "224.0.0.1",
  "255.255.255.255",
  "not an address",
];
test.each(BLOCKED)("the address %s is refused", (address) => {
  const target = { host: "example.org", port: 443 };
  expect(isAddressAllowed(address, target, { allow: ["example.org"] })).toBe(false);
});

test("an address of cloud metadata is refused also for a host whose address may be private", () => {
  const target = { host: "example.org", port: 443 };
  const policy = { allow: ["example.org"], allowPrivate: ["example.org"] };
  expect(isAddressAllowed("10.0.0.1", target, policy)).toBe(true);
  expect(isAddressAllowed("169.254.169.254", target, policy)).toBe(false);
  expect(isAddressAllowed("::ffff:169.254.169.254", target, policy)).toBe(false);
  expect(isAddressAllowed("93.184.215.14", target, { allow: ["example.org"] })).toBe(true);
});
