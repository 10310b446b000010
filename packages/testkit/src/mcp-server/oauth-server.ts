// `startOauthServer`: an issuer of OAuth for tests. It has metadata, registration, codes with PKCE, and
// tokens that rotate.

import { createHash, randomBytes } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";

export interface OauthServer {
  readonly url: string;
  /** Paths of requests, in order. */
  readonly log: readonly string[];
  /** The token that a server of resources takes now. */
  readonly token: () => string;
  /** The next renewal is refused. */
  revoke(): void;
  /** Follows the address that a person would open, and answers the page that the person then sees. */
  approve(address: string): Promise<{ readonly status: number; readonly text: string }>;
  close(): Promise<void>;
}

export interface OauthOptions {
  /** Seconds. */
  readonly lifetime?: number;
  /** The issuer in the answer of a person; its own by default. */
  readonly iss?: string;
  readonly registers?: boolean;
}

export async function startOauthServer(options: OauthOptions = {}): Promise<OauthServer> {
  const { lifetime = 3_600, registers = true } = options;
  const log: string[] = [];
  let number = 0;
  let refresh = "";
  let isRevoked = false;
  let challenge = "";
  const code = randomBytes(8).toString("hex");
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "/", url());
    log.push(pathname);
    const json = (status: number, value: object): void => {
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
    };
    switch (pathname) {
      case "/.well-known/oauth-authorization-server":
        return json(200, {
          issuer: url(),
          authorization_endpoint: `${url()}/authorize`,
          token_endpoint: `${url()}/token`,
          ...(registers ? { registration_endpoint: `${url()}/register` } : {}),
          response_types_supported: ["code"],
          code_challenge_methods_supported: ["S256"],
          token_endpoint_auth_methods_supported: ["none"],
          authorization_response_iss_parameter_supported: true,
        });
      case "/register":
        return void bodyOf(request).then((body) =>
          json(201, { ...(JSON.parse(body) as object), client_id: "made" }),
        );
      case "/authorize": {
        challenge = searchParams.get("code_challenge") ?? "";
        const back = new URL(searchParams.get("redirect_uri") ?? "");
        back.searchParams.set("state", searchParams.get("state") ?? "");
        back.searchParams.set("code", code);
        back.searchParams.set("iss", options.iss ?? url());
        return void response.writeHead(302, { location: back.href }).end();
      }
      case "/token":
        return void bodyOf(request).then((body) => {
          const given = new URLSearchParams(body);
          const verified = createHash("sha256")
            .update(given.get("code_verifier") ?? "")
            .digest("base64url");
          const isRight =
            given.get("grant_type") === "refresh_token"
              ? !isRevoked && given.get("refresh_token") === refresh
              : given.get("code") === code && verified === challenge;
          if (!isRight) return json(400, { error: "invalid_grant" });
          refresh = `refresh-${++number}`;
          return json(200, {
            access_token: `access-${number}`,
            token_type: "Bearer",
            expires_in: lifetime,
            refresh_token: refresh,
          });
        });
      default:
        return json(404, {});
    }
  });
  const url = (): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: url(),
    log,
    token: () => `access-${number}`,
    revoke: () => (isRevoked = true),
    approve: async (address) => {
      const answer = await fetch(address);
      return { status: answer.status, text: await answer.text() };
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let body = "";
  for await (const chunk of request) body += String(chunk);
  return body;
}
