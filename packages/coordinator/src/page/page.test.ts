// The page over the wire: its policy, how a browser is signed in, and what its cookie is not good for.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HoldfastError } from "@holdfast/core";
import { afterEach, beforeEach, expect, test } from "vitest";
import { startStubApi, type StubApi } from "../api/testing/stub-api.ts";
import { createPage, pageProblem, type SignInPage } from "./page.ts";

let api: StubApi;
let folder: string;
let page: SignInPage;
let now = 0;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-page-"));
  mkdirSync(join(folder, "assets"));
  writeFileSync(join(folder, "index.html"), "<title>page</title>");
  writeFileSync(join(folder, "assets", "index-1.js"), "0");
  writeFileSync(join(folder, "key"), "not served");
  const agents = () => Promise.resolve({ agents: [] });
  const secrets = () => Promise.resolve({ secrets: [{ name: "KEY", place: "file" }] });
  const workspace = async (sessionId: string) => {
    if (sessionId === "cut") throw new HoldfastError("unavailable", "git was ended", { fix: "try again" });
    return Promise.resolve({ of: sessionId });
  };
  const merge = (sessionId: string, { commit }: { readonly commit: boolean }) =>
    Promise.resolve({ merged: sessionId, commit });
  const reports = { agents, secrets, workspace, merge };
  page = createPage({ place: "a place", isLocal: false, monotonic: () => now, folder, ...reports });
  api = await startStubApi(undefined, { page });
});
afterEach(async () => {
  await api.close();
  rmSync(folder, { recursive: true, force: true });
});

function get(path: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${api.url}${path}`, { headers, redirect: "manual" });
}

function post(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${api.url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
}

/** The cookie, and the header with its key. */
type SignedIn = Record<"cookie" | "x-holdfast-page", string>;

async function signedIn(token = " admin\n"): Promise<SignedIn> {
  const response = await post("/ui/sign-in", { token });
  expect(response.status).toBe(200);
  const { key } = (await response.json()) as { readonly key: string };
  return { cookie: response.headers.get("set-cookie")!.split(";")[0]!, "x-holdfast-page": key };
}

test("the page runs only scripts of its own files, and every view of it is the same file", async () => {
  const response = await get("/ui/sessions/ses_1?tab=journal");
  expect(await response.text()).toBe("<title>page</title>");
  const policy = response.headers.get("content-security-policy");
  expect(policy).toContain("default-src 'none'; script-src 'self';");
  expect(policy).toContain("frame-ancestors 'none'");
  expect(policy).not.toContain("unsafe");
  expect(response.headers.get("x-content-type-options")).toBe("nosniff");
  expect((await get("/ui/", { "if-none-match": response.headers.get("etag")! })).status).toBe(304);
  expect((await get("/")).headers.get("location")).toBe("/ui/");
});

test.each(["/ui/assets/missing.js", "/ui/assets/../../api.ts", "/ui/assets/%2e%2e/key"])(
  "%s is no file of the page",
  async (path) => {
    const text = await (await get(path)).text();
    expect(text).not.toContain("not served");
    expect(text).toMatch(/not.found|<title>page/);
  },
);

test("a cookie counts only with the header of the page, and only for REST", async () => {
  const { cookie, ...header } = await signedIn();
  expect((await get("/v1/sessions", { cookie, ...header })).status).toBe(200);
  expect((await get("/v1/sessions", { cookie })).status).toBe(401);
  const rpc = await post("/holdfast.v1.SessionService/List", {}, { cookie, ...header });
  expect(rpc.status).toBe(401);
  expect(await (await get("/ui/about", { cookie, ...header })).json()).toEqual({
    kind: "admin",
    name: "admin",
    place: "a place",
    isLocal: false,
    hasWorkspaces: true,
  });
  api.revoked.add("admin");
  expect((await get("/v1/sessions", { cookie, ...header })).status).toBe(401);
});

test("a cookie has no token in it, and is nothing without the key of its own sign-in", async () => {
  const own = await signedIn();
  const { cookie } = own;
  expect(Buffer.from(cookie.split("=")[1]!, "base64url").toString("latin1")).not.toContain("admin");
  const refused = async (headers: Record<string, string>): Promise<void> =>
    expect((await get("/v1/sessions", headers)).status).toBe(401);
  const { "x-holdfast-page": other } = await signedIn();
  for (const key of ["1", "", other]) await refused({ cookie, "x-holdfast-page": key });
  await refused({ ...own, cookie: `${cookie.slice(0, -2)}AA` });
  await refused({ ...own, cookie: `${cookie.split("=")[0]!}=admin` });
  await refused({ authorization: `Bearer ${cookie.split("=")[1]!}` });
});

test.each([
  ["agent-files", { agents: [] }],
  ["secrets", { secrets: [{ name: "KEY", place: "file" }] }],
])("the report %s is for admins alone", async (path, report) => {
  const { "x-holdfast-page": key } = await signedIn();
  expect((await get(`/ui/${path}`, { "x-holdfast-page": key })).status).toBe(401);
  expect((await get(`/ui/${path}`, await signedIn("user"))).status).toBe(404);
  const answer = await get(`/ui/${path}`, await signedIn());
  expect([answer.status, await answer.json()]).toEqual([200, report]);
});

test("the workspace of a session is for admins alone, and only an id of a session names one", async () => {
  const admin = await signedIn();
  const { "x-holdfast-page": key } = admin;
  expect((await get("/ui/workspaces/ses_1", { "x-holdfast-page": key })).status).toBe(401);
  expect((await get("/ui/workspaces/ses_1", await signedIn("user"))).status).toBe(404);
  const answer = await get("/ui/workspaces/ses_1", admin);
  expect([answer.status, await answer.json()]).toEqual([200, { of: "ses_1" }]);
  for (const id of ["", "..%2f..%2fetc", ".hidden", "a/b"])
    expect((await get(`/ui/workspaces/${id}`, admin)).status).toBe(404);
  const cut = await get("/ui/workspaces/cut", admin);
  expect([cut.status, await cut.json()]).toMatchObject([503, { detail: "git was ended", fix: "try again" }]);
});

test("work is merged by a request of an admin's page alone, and never by a link or a form", async () => {
  const admin = await signedIn();
  const { cookie, ...header } = admin;
  const path = "/ui/workspaces/ses_1/merge";
  expect((await get(path, admin)).status).toBe(405);
  expect((await post(path, {}, { cookie })).status).toBe(401);
  expect((await post(path, {}, await signedIn("user"))).status).toBe(404);
  expect((await post("/ui/workspaces/.hidden/merge", {}, admin)).status).toBe(404);
  const form = await fetch(`${api.url}${path}`, {
    method: "POST",
    headers: { cookie, ...header },
    body: "{}",
  });
  expect(form.status).toBe(415);
  expect((await post(path, { commit: true }, admin)).status).toBe(422);
  for (const [given, commit] of [
    [true, true],
    ["yes", false],
  ] as const) {
    const merged = await post(path, { commit: given, revision: "r" }, admin);
    expect([merged.status, await merged.json()]).toEqual([200, { merged: "ses_1", commit }]);
  }
});

test("the cookie is out of reach of scripts and of other sites, and ends with the sign-out", async () => {
  const set = (await post("/ui/sign-in", { token: "user" })).headers.get("set-cookie");
  expect(set).toMatch(/^holdfast_\d+=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/);
  expect((await post("/ui/sign-out", {})).headers.get("set-cookie")).toContain("; Max-Age=0");
});

test("a code signs in once, within a minute, and its address has no token", async () => {
  const codeOf = (path: string): string => /^\/ui\/#code=([\w-]{43})$/.exec(path)![1]!;
  const code = codeOf(page.signInPath("user"));
  const first = await post("/ui/sign-in", { code });
  expect(await first.json()).toMatchObject({ kind: "user", name: "user" });
  expect((await post("/ui/sign-in", { code })).status).toBe(401);
  const late = codeOf(page.signInPath("user"));
  now += 60_001;
  expect((await post("/ui/sign-in", { code: late })).status).toBe(401);
});

test.each([
  ["an unknown token", { token: "who" }, 401],
  ["a token that would write another cookie", { token: "admin; Path=/" }, 401],
  ["an empty token", { token: "" }, 401],
  ["a code that is a token", { code: "admin" }, 401],
  ["neither", {}, 400],
  ["no object", "admin", 400],
  ["a body that is too large", { token: "x".repeat(5_000) }, 413],
])("%s signs nobody in", async (_what, body, status) => {
  const response = await post("/ui/sign-in", body);
  expect(response.status).toBe(status);
  expect(response.headers.get("set-cookie")).toBeNull();
});

test("a page of another origin cannot sign in, and a form cannot", async () => {
  expect((await post("/ui/sign-in", { token: "admin" }, { origin: "http://evil.example" })).status).toBe(403);
  expect((await post("/ui/sign-in", { token: "admin" }, { "content-type": "text/plain" })).status).toBe(415);
  expect((await get("/ui/sign-in")).status).toBe(405);
});

test("a browser whose page is not built gets a page that says how to build it, until it is built", async () => {
  const built = join(folder, "later");
  expect(pageProblem(built)).toContain("npm run page");
  const empty = createPage({ place: "", isLocal: true, monotonic: () => 0, folder: built });
  const other = await startStubApi(undefined, { page: empty });
  const response = await fetch(`${other.url}/ui/sessions/ses_1`);
  expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8");
  expect([response.status, await response.text()]).toEqual([
    404,
    expect.stringContaining("<code>npm run page</code>"),
  ]);
  expect((await fetch(`${other.url}/ui/assets/index-1.js`)).headers.get("content-type")).not.toContain(
    "html",
  );
  mkdirSync(built);
  writeFileSync(join(built, "index.html"), "<title>page</title>");
  expect(pageProblem(built)).toBeUndefined();
  expect(await (await fetch(`${other.url}/ui/`)).text()).toBe("<title>page</title>");
  await other.close();
});
