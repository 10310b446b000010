// `signInToServer`: a person signs in to an MCP server by OAuth, in a browser. The code comes back to a port
// of this machine.
//
//   - Authorization code with PKCE. The SDK discovers the issuer and checks it, also in the answer.
//   - The port listens on the loopback address alone, takes one answer with our `state`, and closes after a
//     limited time.
//   - Nothing is kept before the tokens are there.

import { randomBytes } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { defined, HoldfastError, toError } from "@holdfast/core";
import {
  auth,
  extractWWWAuthenticateParams,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
  type StoredOAuthClientInformation,
  type StoredOAuthTokens,
} from "@modelcontextprotocol/client";

import { MCP_LIMITS } from "./protocol/limits.ts";
import { serverFetch } from "./client/server-fetch.ts";
import { expiryOf } from "./sign-in/server-tokens.ts";
import { signInKey, type SignInRecord, type SignInStore } from "./sign-in/sign-in-record.ts";

export interface SignInRequest {
  readonly name: string;
  readonly url: string;
  /** The user's own settings name the server: it may be at a private address. */
  readonly allowsPrivate: boolean;
  readonly store: SignInStore;
  /** A client that the issuer knows; by default Holdfast registers itself. */
  readonly clientId?: string | undefined;
  /** Shows the address to a person. Must not throw. */
  readonly show: (address: string) => void;
  readonly signal: AbortSignal;
}

/** @returns the issuer. @throws HoldfastError `sign_in_failed` */
export async function signInToServer(request: SignInRequest): Promise<string> {
  const { name, url, store, signal } = request;
  const fetchFn = serverFetch({ allowsPrivate: request.allowsPrivate, refused: () => {} });
  const state = randomBytes(24).toString("base64url");
  const { server, answer } = await listen(state);
  try {
    const { port } = server.address() as AddressInfo;
    const person = new SigningPerson(`http://127.0.0.1:${port}/callback`, state, request);
    const challenge = await challengeOf(url, fetchFn, signal);
    const options = { serverUrl: url, fetchFn, ...challenge };
    if ((await auth(person, options)) !== "AUTHORIZED") {
      const stopped = Promise.withResolvers<never>();
      const stop = AbortSignal.any([signal, AbortSignal.timeout(MCP_LIMITS.signInMs)]);
      stop.addEventListener("abort", () => stopped.reject(new Error("nobody signed in in time")), {
        once: true,
      });
      const { code, iss } = await Promise.race([answer, stopped.promise]);
      await auth(person, { ...options, authorizationCode: code, ...defined({ iss }) });
    }
    const record = person.record();
    // Nothing is kept before the tokens are there.
    await store.write(signInKey(name, url), JSON.stringify(record));
    return record.issuer;
  } catch (error) {
    if (HoldfastError.is(error)) throw error;
    throw new HoldfastError(
      "config_invalid",
      `the sign-in to the MCP server ${name} failed: ${toError(error).message}`,
      {
        at: url,
        fix: "try again; for an issuer that registers no clients give --client-id",
      },
    );
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

/** The server names its issuer and scope when it refuses a request. */
async function challengeOf(url: string, fetchFn: ReturnType<typeof serverFetch>, signal: AbortSignal) {
  const refusal = await fetchFn(url, { method: "GET", headers: { accept: "text/event-stream" }, signal });
  await refusal.body?.cancel();
  if (refusal.status !== 401) return {};
  const { resourceMetadataUrl, scope } = extractWWWAuthenticateParams(refusal);
  return defined({ resourceMetadataUrl, scope });
}

/** The state of one sign-in, as the SDK reads and writes it. */
class SigningPerson implements OAuthClientProvider {
  readonly redirectUrl: string;
  readonly #state: string;
  readonly #show: (address: string) => void;
  #client: StoredOAuthClientInformation | undefined;
  #tokens: StoredOAuthTokens | undefined;
  #discovery: OAuthDiscoveryState | undefined;
  #resource: string | undefined;
  #verifier = "";

  constructor(redirectUrl: string, state: string, { clientId, show }: SignInRequest) {
    this.redirectUrl = redirectUrl;
    this.#state = state;
    this.#show = show;
    this.#client = clientId === undefined ? undefined : { client_id: clientId };
  }

  get clientMetadata() {
    return {
      client_name: "Holdfast",
      redirect_uris: [this.redirectUrl],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
    };
  }

  state(): string {
    return this.#state;
  }

  clientInformation(): StoredOAuthClientInformation | undefined {
    return this.#client;
  }

  saveClientInformation(client: StoredOAuthClientInformation): void {
    this.#client = client;
  }

  tokens(): StoredOAuthTokens | undefined {
    return this.#tokens;
  }

  saveTokens(tokens: StoredOAuthTokens): void {
    this.#tokens = tokens;
  }

  redirectToAuthorization(address: URL): void {
    this.#show(address.href);
  }

  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier;
  }

  codeVerifier(): string {
    return this.#verifier;
  }

  discoveryState(): OAuthDiscoveryState | undefined {
    return this.#discovery;
  }

  saveDiscoveryState(state: OAuthDiscoveryState): void {
    this.#discovery = state;
  }

  saveResourceUrl(url: string): void {
    this.#resource = url;
  }

  record(): SignInRecord {
    const [client, tokens, discovery] = [this.#client, this.#tokens, this.#discovery];
    if (client === undefined || tokens === undefined || discovery === undefined)
      throw new Error("the issuer gave no token");
    const { authorizationServerUrl, authorizationServerMetadata: metadata } = discovery;
    return {
      version: 1,
      issuer: tokens.issuer ?? authorizationServerUrl,
      authorizationServerUrl,
      client,
      tokens,
      ...(metadata === undefined ? {} : { metadata: { ...metadata } }),
      ...defined({ resource: this.#resource }),
      expiresAt: expiryOf(tokens.expires_in),
    };
  }
}

interface Answer {
  readonly code: string;
  readonly iss: string | undefined;
}

async function listen(state: string): Promise<{ server: Server; answer: Promise<Answer> }> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  promise.catch(() => {}); // The sign-in may have failed before.
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://127.0.0.1");
    const { searchParams } = url;
    const say = (status: number, text: string): void => {
      response
        .writeHead(status, { "content-type": "text/plain; charset=utf-8", connection: "close" })
        .end(text);
    };
    if (url.pathname !== "/callback" || searchParams.get("state") !== state)
      return say(404, "Nothing is here.\n");
    const code = searchParams.get("code");
    if (code === null) {
      const why =
        searchParams.get("error_description") ?? searchParams.get("error") ?? "the answer has no code";
      reject(new Error(`the issuer refused it: ${why.slice(0, MCP_LIMITS.reasonChars)}`));
      return say(400, "The sign-in was refused. You can close this page.\n");
    }
    resolve({ code, iss: searchParams.get("iss") ?? undefined });
    return say(200, "Holdfast has the sign-in. You can close this page.\n");
  });
  await new Promise<void>((done, failed) => {
    server.once("error", failed);
    server.listen(0, "127.0.0.1", done);
  });
  return { server, answer: promise };
}
