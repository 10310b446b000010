// `SignInRecord`: the sign-in of a person to one MCP server, as it is kept among the secrets of the user.
//
//   - The key has the address of the server, so a server of the same name at another address gets no token.
//   - The record names the issuer, and a token is renewed there alone.

import { createHash } from "node:crypto";
import { z } from "zod";

/** Where sign-ins are kept. The values are secrets. */
export interface SignInStore {
  /** @throws HoldfastError when the place of secrets cannot be opened. */
  read(key: string): Promise<string | undefined>;
  write(key: string, value: string): Promise<void>;
  /**
   * Does the work while no other process does work under this lock. @throws HoldfastError `locked` when
   * another one does not end.
   */
  exclusively<T>(work: () => Promise<T>): Promise<T>;
}

/** The name of the secret: a name as variables have. */
export function signInKey(server: string, url: string): string {
  const hash = createHash("sha256").update(url).digest("hex").slice(0, 12).toUpperCase();
  return `MCP_SIGN_IN_${server.replaceAll("-", "_").toUpperCase()}_${hash}`;
}

const record = z.object({
  version: z.literal(1),
  issuer: z.string(),
  authorizationServerUrl: z.string(),
  /** As the SDK found it. */
  metadata: z.record(z.string(), z.unknown()).optional(),
  resource: z.string().optional(),
  client: z.looseObject({ client_id: z.string() }),
  tokens: z.looseObject({
    access_token: z.string(),
    token_type: z.string(),
    refresh_token: z.string().optional(),
    scope: z.string().optional(),
  }),
  /** Epoch milliseconds; absent when the server did not say it. */
  expiresAt: z.number().optional(),
});
export type SignInRecord = z.output<typeof record>;

/** @returns nothing for a text of another form, which another sign-in replaces. */
export function parseSignIn(text: string | undefined): SignInRecord | undefined {
  if (text === undefined) return undefined;
  try {
    return record.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}
