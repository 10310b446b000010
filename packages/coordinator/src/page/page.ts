// `createPage`: serves the dashboard under `/ui`, and signs browsers in.
//
//   page-1. The answers carry a policy by which the browser runs only scripts of this origin, and none that
//       is written in the page. It loads nothing from elsewhere.
//   - Files need no token, because they hold no data. Everything else is the API, with its own checks.
//   - No path names a file outside of the built ones: it is a key of a map.
//   - A browser gets a page in any case: one that is not built says how to build it.

import type { IncomingHttpHeaders } from "node:http";
import { defined, HoldfastError } from "@holdfast/core";
import type { Page, PageCall } from "../api/api.ts";
import { answer, readAll, type Exchange } from "../api/exchange.ts";
import { checkBody, checkJsonType } from "../api/request-guards.ts";
import { actorOf } from "../call/call.ts";
import type { MergeAsked } from "../services/sessions/session-work.ts";
import { Refusal } from "../call/refusal.ts";
import { INDEX, isPageBuilt, readPageFiles, type PageFile } from "./page-files.ts";
import { authorizationOf, cookieFor, fitsHeader, sealToken, SignIns } from "./sign-in.ts";

export interface PageOptions {
  /** The name of what is shown: a coordinator's address or a database's path. */
  readonly place: string;
  /** Whether it is a database of this machine: then no runner takes what a person answers. */
  readonly isLocal: boolean;
  /** Milliseconds that only grow. */
  readonly monotonic: () => number;
  /** A report on the agent files of this machine, for admins. */
  readonly agents?: () => Promise<object>;
  /** The names of this user's secrets and their places, for admins. Never a value. */
  readonly secrets?: () => Promise<object>;
  /** The work of a session in its folder, for admins: on this machine, or through a runner. */
  readonly workspace?: (sessionId: string) => Promise<object>;
  /** Merges the work of a session into the project, for admins. */
  readonly merge?: (sessionId: string, asked: MergeAsked) => Promise<object>;
  /** The built files; by default those of this package. */
  readonly folder?: string;
}

/** A page that can sign in by a code. */
export interface SignInPage extends Page {
  /** The path that signs a browser in with this token, within a minute and once. */
  signInPath(token: string): string;
}

const ROOT = "/ui";
const WORKSPACES = `${ROOT}/workspaces/`;
const MERGE = "/merge";
const SESSION_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;
const BODY_BYTES = 4_096;
/** page-1. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
  "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HOW_TO_BUILD =
  "run `npm run page` in the checkout of Holdfast, which takes seconds, and load the page again";
const NOT_BUILT = `<!doctype html><html lang="en"><title>Holdfast</title><h1>The page is not built here</h1><p>To build it, ${HOW_TO_BUILD.replaceAll(/`([^`]+)`/g, "<code>$1</code>")}.</p></html>`;

/** The line for a person who starts a page that is not built; `undefined` when it is built. */
export function pageProblem(folder?: string): string | undefined {
  return isPageBuilt(folder) ? undefined : `the page is not built here: ${HOW_TO_BUILD}`;
}

export function createPage({
  place,
  isLocal,
  monotonic,
  folder,
  agents,
  secrets,
  workspace,
  merge,
}: PageOptions): SignInPage {
  const signIns = new SignIns(monotonic);
  let files: ReadonlyMap<string, PageFile> | undefined;
  return {
    serves: (path) => path === "/" || path === ROOT || path.startsWith(`${ROOT}/`),
    authorizationOf: (headers: IncomingHttpHeaders) => authorizationOf(headers),
    signInPath: (token) => `${ROOT}/#code=${signIns.newCode(token)}`,
    async serve(exchange, call) {
      switch (exchange.path) {
        case "/":
        case ROOT:
          expect(exchange, "GET");
          return answer(exchange, 302, "text/plain", "", { Location: `${ROOT}/` });
        case `${ROOT}/sign-in`:
          return signIn(exchange, call, signIns);
        case `${ROOT}/sign-out`:
          expect(exchange, "POST");
          return answerSigned(exchange, undefined, {});
        case `${ROOT}/about`: {
          expect(exchange, "GET");
          const { kind, name } = await call.authenticate(exchange.request.headers.authorization);
          const hasWorkspaces = kind === "admin" && workspace !== undefined;
          const about = { kind, name, place, isLocal, hasWorkspaces };
          return answer(exchange, 200, "application/json", JSON.stringify(about));
        }
        case `${ROOT}/agent-files`:
          return answerAdmin(exchange, call, agents, "agent files");
        case `${ROOT}/secrets`:
          return answerAdmin(exchange, call, secrets, "secrets");
        default:
          if (exchange.path.startsWith(WORKSPACES))
            return serveWorkspace(exchange, call, { workspace, merge });
          expect(exchange, "GET");
          files ??= readPageFiles(folder);
          return serveFile(exchange, files);
      }
    },
  };
}

/** The work of a session in its folder, and its merge into the project. Both are for admins of this machine. */
async function serveWorkspace(
  exchange: Exchange,
  call: PageCall,
  { workspace, merge }: { readonly [name in "workspace" | "merge"]: PageOptions[name] | undefined },
): Promise<void> {
  const path = exchange.path.slice(WORKSPACES.length);
  const isMerge = path.endsWith(MERGE);
  const sessionId = isMerge ? path.slice(0, -MERGE.length) : path;
  expect(exchange, isMerge ? "POST" : "GET");
  const { rawHeaders, headers } = exchange.request;
  const caller = await call.authenticate(headers.authorization);
  if (caller.kind !== "admin" || workspace === undefined || !SESSION_ID.test(sessionId))
    throw new Refusal("not_found", "this page shows no workspace of such a session");
  if (!isMerge) {
    const work = await workspace(sessionId).catch(withCause);
    return answer(exchange, 200, "application/json", JSON.stringify(work));
  }
  if (merge === undefined) throw new Refusal("not_found", "this page merges no work");
  checkBody(rawHeaders, BODY_BYTES);
  checkJsonType(rawHeaders);
  const { commit, revision } = readJson(await readAll(exchange, BODY_BYTES));
  if (typeof revision !== "string" || revision === "")
    throw new Refusal("validation", "the request says no revision of the work", {
      at: "/revision",
      expected: "the `revision` of the work as it was shown",
      fix: "load the page again, and look at the work before it is merged",
    });
  const asked = { commit: commit === true, revision, actor: actorOf(caller) };
  const merged = await merge(sessionId, asked).catch(withCause);
  answer(exchange, 200, "application/json", JSON.stringify(merged));
}

/** The admin of this machine learns the cause of an error also where other callers find it in the log alone. */
function withCause(thrown: unknown): never {
  if (!HoldfastError.is(thrown)) throw thrown;
  const { code, message, at, got, expected, fix } = thrown;
  throw new Refusal(code, message, defined({ at, got, expected, fix }));
}

/** Answers an admin with a report on this machine, where there is one. */
async function answerAdmin(
  exchange: Exchange,
  call: PageCall,
  report: (() => Promise<object>) | undefined,
  what: string,
): Promise<void> {
  expect(exchange, "GET");
  const { kind } = await call.authenticate(exchange.request.headers.authorization);
  if (kind !== "admin" || report === undefined) throw new Refusal("not_found", `this page shows no ${what}`);
  answer(exchange, 200, "application/json", JSON.stringify(await report()));
}

async function signIn(exchange: Exchange, call: PageCall, signIns: SignIns): Promise<void> {
  expect(exchange, "POST");
  const { rawHeaders } = exchange.request;
  checkBody(rawHeaders, BODY_BYTES);
  checkJsonType(rawHeaders);
  const { code, token: given } = readSignIn(await readAll(exchange, BODY_BYTES));
  const token = code === undefined ? given : signIns.take(code);
  if (token === undefined || !fitsHeader(token))
    throw new Refusal(
      "unauthenticated",
      code === undefined ? "the token is unknown" : "this address was used before, or is older than a minute",
      {
        fix:
          code === undefined
            ? "paste a whole token; `holdfast token create NAME` makes one"
            : "run `holdfast ui` again, or paste a token",
      },
    );
  const { kind, name } = await call.authenticate(`Bearer ${token}`);
  const { sealed, key } = sealToken(token);
  answerSigned(exchange, sealed, { kind, name, key });
}

function readSignIn(body: Uint8Array): { readonly code?: string; readonly token?: string } {
  const { code, token } = readJson(body);
  if (typeof code === "string") return { code };
  if (typeof token === "string") return { token: token.trim() };
  throw new Refusal("bad_request", "the request has neither a token nor a code", {
    expected: '{"token": "…"} or {"code": "…"}',
  });
}

function answerSigned(exchange: Exchange, sealed: string | undefined, body: object): void {
  const { request } = exchange;
  const isSecure = "encrypted" in request.socket && request.socket.encrypted === true;
  answer(exchange, 200, "application/json", JSON.stringify(body), {
    "Set-Cookie": cookieFor(request.headers, sealed, isSecure),
  });
}

/** The fields of a request; none where it is no object. */
function readJson(body: Uint8Array): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(Buffer.from(body).toString());
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** A path without a file is a view of the page, which reads it. */
function serveFile(exchange: Exchange, files: ReadonlyMap<string, PageFile> | undefined): void {
  const path = exchange.path.slice(ROOT.length + 1);
  const isView = !path.startsWith("assets/");
  if (files === undefined && isView) return answer(exchange, 404, "text/html; charset=utf-8", NOT_BUILT);
  const file = files?.get(path) ?? (isView ? files?.get(INDEX) : undefined);
  if (file === undefined) throw new Refusal("not_found", "the path does not exist");
  const { request, response } = exchange;
  const { type, content, zipped, etag, isImmutable } = file;
  response.setHeader("Content-Security-Policy", POLICY);
  const headers = {
    "Cache-Control": isImmutable ? "public, max-age=31536000, immutable" : "no-cache",
    "Cross-Origin-Opener-Policy": "same-origin",
    ETag: etag,
    Vary: "Accept-Encoding",
  };
  if (request.headers["if-none-match"] === etag) {
    response.writeHead(304, headers).end();
    return;
  }
  const isZipped = /\bgzip\b/.test(request.headers["accept-encoding"]?.toString() ?? "");
  answer(exchange, 200, type, isZipped ? zipped : content, {
    ...headers,
    ...(isZipped ? { "Content-Encoding": "gzip" } : {}),
  });
}

function expect({ request }: Exchange, method: string): void {
  if (request.method === method || (method === "GET" && request.method === "HEAD")) return;
  throw new Refusal("method_not_allowed", `this path takes only ${method}`, {
    expected: method,
    headers: { Allow: method },
  });
}
