// Sign-ins to MCP servers, against a real issuer and a real server: PKCE, the issuer in the answer, renewals,
// and refusals.

import { afterEach, expect, test } from "vitest";

import {
  startMcpHttpServer,
  startOauthServer,
  type McpHttpServer,
  type OauthOptions,
  type OauthServer,
} from "@holdfast/testkit";
import { McpServers } from "./mcp-servers.ts";
import { signInToServer, type SignInRequest } from "./sign-in-to-server.ts";
import { signInKey, type SignInRecord } from "./sign-in/sign-in-record.ts";

let oauth: OauthServer;
let http: McpHttpServer;
let servers: McpServers | undefined;
const kept = new Map<string, string>();
const store = {
  read: async (key: string) => kept.get(key),
  write: async (key: string, value: string) => void kept.set(key, value),
  exclusively: <T>(work: () => Promise<T>): Promise<T> => {
    const done = lock.then(work);
    lock = done.catch(() => {});
    return done;
  },
};
/** Ends with the work that has the lock. */
let lock: Promise<unknown> = Promise.resolve();

async function start(options: OauthOptions = {}): Promise<void> {
  kept.clear();
  oauth = await startOauthServer(options);
  http = await startMcpHttpServer({ issuer: oauth.url, authorization: () => `Bearer ${oauth.token()}` });
}

afterEach(async () => {
  await servers?.close();
  servers = undefined;
  await http.close();
  await oauth.close();
});

const request = (change: Partial<SignInRequest> = {}): SignInRequest => ({
  name: "test",
  url: http.url,
  allowsPrivate: false,
  store,
  show: (address) => void oauth.approve(address),
  signal: new AbortController().signal,
  ...change,
});

/** Lists the tools with the sign-in that is kept, in a process of its own. */
async function tools(): Promise<number> {
  await servers?.close();
  servers = new McpServers({ variable: () => undefined, signIns: store });
  const wanted = {
    sessionId: "s",
    name: "test",
    server: { type: "http", url: http.url, headers: {} },
    folder: "/",
  } as const;
  return servers.with(wanted, async ({ connection }) => (await connection.tools()).length);
}

function rewrite(fields: Partial<SignInRecord>): void {
  const key = signInKey("test", http.url);
  kept.set(key, JSON.stringify({ ...(JSON.parse(kept.get(key) ?? "{}") as object), ...fields }));
}

test("a person signs in, and the token is used and renewed before its end", async () => {
  await start();
  expect(await signInToServer(request())).toBe(oauth.url);
  expect(await tools()).toBeGreaterThan(0);
  expect(oauth.log.filter((path) => path === "/token")).toHaveLength(1);
  rewrite({ expiresAt: Date.now() + 30_000 });
  expect(await tools()).toBeGreaterThan(0);
  expect(oauth.token()).toBe("access-2");
  expect(kept.get(signInKey("test", http.url))).toContain("refresh-2");
});

test("two processes that find an expiring token renew it once", async () => {
  await start();
  await signInToServer(request());
  rewrite({ expiresAt: Date.now() - 1 });
  const processes = [1, 2].map(() => new McpServers({ variable: () => undefined, signIns: store }));
  const server = { type: "http", url: http.url, headers: {} } as const;
  const wanted = { sessionId: "s", name: "test", server, folder: "/" };
  const found = processes.map((one) => one.with(wanted, async ({ connection }) => connection.tools()));
  expect((await Promise.all(found)).every((listed) => listed.length > 0)).toBe(true);
  expect(oauth.log.filter((path) => path === "/token")).toHaveLength(2);
  await Promise.all(processes.map((one) => one.close()));
});

test("a token that the server refuses is renewed once", async () => {
  await start();
  await signInToServer(request());
  rewrite({ tokens: { access_token: "stolen", token_type: "Bearer", refresh_token: "refresh-1" } });
  expect(await tools()).toBeGreaterThan(0);
  expect(oauth.token()).toBe("access-2");
});

test("a renewal that the issuer refuses asks for a sign-in", async () => {
  await start();
  await signInToServer(request());
  oauth.revoke();
  rewrite({ expiresAt: Date.now() - 1 });
  await expect(tools()).rejects.toThrow(/holdfast mcp login test/);
});

test("without a sign-in the error names the command", async () => {
  await start();
  await expect(tools()).rejects.toThrow(/holdfast mcp login test/);
});

test("a server of the same name at another address gets no token", async () => {
  await start();
  await signInToServer(request());
  const other = await startMcpHttpServer({ authorization: "Bearer x" });
  const own = new McpServers({ variable: () => undefined, signIns: store });
  const server = { type: "http", url: other.url, headers: {} } as const;
  await expect(
    own.with({ sessionId: "s", name: "test", server, folder: "/" }, async () => {}),
  ).rejects.toThrow(/mcp login/);
  expect(other.headers.every(({ authorization }) => authorization === undefined)).toBe(true);
  await own.close();
  await other.close();
});

test("a client that is given is not registered", async () => {
  await start({ registers: false });
  await signInToServer(request({ clientId: "known" }));
  expect(oauth.log).not.toContain("/register");
  await expect(signInToServer(request())).rejects.toThrow(/the sign-in to the MCP server test failed/);
});

test("an answer of another issuer is refused, and nothing is kept", async () => {
  await start({ iss: "https://other.example" });
  await expect(signInToServer(request())).rejects.toThrow(/failed: .*issuer/i);
  expect(kept.size).toBe(0);
});

test("an answer without our state is not taken, and a refusal says why", async () => {
  await start();
  let page: { readonly status: number } | undefined;
  const show = async (address: string): Promise<void> => {
    const back = new URL(new URL(address).searchParams.get("redirect_uri") ?? "");
    page = await oauth.approve(`${back.href}?code=x&state=other`);
    const state = new URL(address).searchParams.get("state") ?? "";
    await oauth.approve(`${back.href}?error=access_denied&error_description=not+you&state=${state}`);
  };
  await expect(signInToServer(request({ show: (address) => void show(address) }))).rejects.toThrow(
    /refused it: not you/,
  );
  expect(page?.status).toBe(404);
  expect(kept.size).toBe(0);
});
