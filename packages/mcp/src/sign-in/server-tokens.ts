// `serverTokens`: the tokens of one MCP server for its requests, renewed before they expire.
//
//   - A token is renewed some time before its end, and once when the server refuses it.
//   - One renewal runs at a time on this machine, because an issuer that changes its refresh tokens takes
//     each of them once. A process that waited for the renewal of another one reads the record again.
//   - A renewal that the issuer refuses asks for another sign-in. When the issuer cannot be reached, a token
//     that is still valid is used, and otherwise the call has not begun.

import { HoldfastError, toError } from "@holdfast/core";
import {
  OAuthError,
  refreshAuthorization,
  UnauthorizedError,
  type AuthorizationServerMetadata,
  type AuthProvider,
  type FetchLike,
} from "@modelcontextprotocol/client";

import { NotConnectedError } from "../protocol/call-errors.ts";
import { MCP_LIMITS } from "../protocol/limits.ts";
import { parseSignIn, type SignInRecord, type SignInStore } from "./sign-in-record.ts";

export interface ServerTokensOptions {
  readonly store: SignInStore;
  readonly key: string;
  readonly fetch: FetchLike;
  /** Renewals that run, by keys: all sessions of a process share them. */
  readonly renewals: Map<string, Promise<SignInRecord | undefined>>;
  /** A value that must not be shown. */
  readonly hide: (secret: string) => void;
}

export function serverTokens({ store, key, fetch, renewals, hide }: ServerTokensOptions): AuthProvider {
  let known: SignInRecord | undefined;
  /** @param refused the token that the server did not take. */
  const renew = async (refused: string | undefined): Promise<SignInRecord | undefined> => {
    const found = await readRecord(store, key);
    if (found === undefined || isGood(found, refused)) return found;
    try {
      return await store.exclusively(() => renewAlone(refused));
    } catch (error) {
      if (!HoldfastError.is(error) || error.code !== "locked") throw error;
      if (refused === undefined && !isOver(found)) return found;
      throw new NotConnectedError(`its sign-in cannot be renewed now: ${error.message}`);
    }
  };
  const renewAlone = async (refused: string | undefined): Promise<SignInRecord | undefined> => {
    const found = await readRecord(store, key);
    if (found === undefined || isGood(found, refused)) return found;
    const { refresh_token: refresh } = found.tokens;
    if (refresh === undefined) return isOver(found) ? undefined : found;
    let renewed: SignInRecord;
    try {
      renewed = await renewedRecord(found, refresh, fetch);
    } catch (error) {
      // The issuer refuses the renewal, so a person must sign in again.
      if (error instanceof OAuthError) return undefined;
      if (refused === undefined && !isOver(found)) return found;
      throw new NotConnectedError(`its sign-in cannot be renewed now: ${toError(error).message}`);
    }
    await store.write(key, JSON.stringify(renewed));
    return renewed;
  };
  const renewOnce = async (refused: string | undefined): Promise<string | undefined> => {
    const running = renewals.get(key) ?? renew(refused).finally(() => renewals.delete(key));
    renewals.set(key, running);
    known = await running;
    for (const secret of [known?.tokens.access_token, known?.tokens.refresh_token])
      if (secret !== undefined) hide(secret);
    return known?.tokens.access_token;
  };
  return {
    token: () =>
      known === undefined || isExpiring(known)
        ? renewOnce(undefined)
        : Promise.resolve(known.tokens.access_token),
    onUnauthorized: async () => {
      const refused = known?.tokens.access_token;
      const token = refused === undefined ? undefined : await renewOnce(refused);
      if (token === undefined || token === refused) throw new UnauthorizedError("nobody has signed in");
    },
  };
}

/** Whether the token needs no renewal. */
function isGood(found: SignInRecord, refused: string | undefined): boolean {
  return refused === undefined ? !isExpiring(found) : found.tokens.access_token !== refused;
}

/** A place of secrets that cannot be opened fails the request before it is sent. */
async function readRecord(store: SignInStore, key: string): Promise<SignInRecord | undefined> {
  try {
    return parseSignIn(await store.read(key));
  } catch (error) {
    throw new NotConnectedError(`its sign-in cannot be read: ${toError(error).message}`);
  }
}

async function renewedRecord(
  found: SignInRecord,
  refreshToken: string,
  fetch: FetchLike,
): Promise<SignInRecord> {
  const tokens = await refreshAuthorization(found.authorizationServerUrl, {
    clientInformation: found.client,
    refreshToken,
    fetchFn: fetch,
    ...(found.metadata === undefined
      ? {}
      : { metadata: found.metadata as unknown as AuthorizationServerMetadata }),
    ...(found.resource === undefined ? {} : { resource: new URL(found.resource) }),
  });
  return {
    ...found,
    tokens: { refresh_token: refreshToken, ...tokens },
    expiresAt: expiryOf(tokens.expires_in),
  };
}

/** The time of the end of a token that is given now. */
export function expiryOf(seconds: number | undefined): number | undefined {
  return seconds === undefined ? undefined : Date.now() + seconds * 1_000;
}

function isExpiring({ expiresAt = Infinity }: SignInRecord): boolean {
  return expiresAt - Date.now() < MCP_LIMITS.renewAheadMs;
}

function isOver({ expiresAt = Infinity }: SignInRecord): boolean {
  return expiresAt <= Date.now();
}
