// `startStubApi` starts an API over services that only answer samples, with a token for each kind of caller.

import type { DescMethod, Message } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { SERVICES } from "@holdfast/proto";
import { serveApi, type ApiOptions } from "../api.ts";
import type { Authenticated, Caller } from "../../call/caller.ts";
import type { Implementation, Methods } from "../../call/methods.ts";
import type { Listener, ListenOptions } from "../listener.ts";
import { sampleOf } from "./sample.ts";

export const KINDS = ["admin", "user", "runner", "job", "registration", "metrics"] as const;

export interface StubApi extends Listener {
  readonly url: string;
  /** Tokens that count as revoked. */
  readonly revoked: Set<string>;
}

/** Replaces the sample answer of a stub. */
export type Behave = (desc: DescMethod, request: Message, context: HandlerContext) => unknown;

export function startStubApi(behave?: Behave, options?: Partial<ApiOptions>): Promise<StubApi> {
  return startStubApiWith({}, behave, options);
}

export async function startStubApiWith(
  where: Partial<ListenOptions>,
  behave: Behave = () => undefined,
  options: Partial<ApiOptions> = {},
): Promise<StubApi> {
  const revoked = new Set<string>();
  const api = serveApi({
    services: [stubMethods(behave)],
    authenticate: (token) => Promise.resolve(authenticated(token, revoked)),
    ...options,
  });
  const listener = await api.listen({ host: "127.0.0.1", port: 0, ...where });
  return { ...listener, url: `http://127.0.0.1:${listener.port}`, revoked };
}

/**
 * The caller of a token: `admin`, `user`, and so on. A suffix after a dash makes another caller of the same
 * kind.
 */
function authenticated(token: string, revoked: ReadonlySet<string>): Authenticated {
  if (revoked.has(token)) return { status: "revoked" };
  const kind = KINDS.find((one) => token === one || token.startsWith(`${one}-`));
  if (kind === undefined) return { status: "unknown" };
  const caller: Caller = { kind, name: token, tokenId: token };
  return { status: "known", caller };
}

/** Each method of every service answers with a sample, and each stream with two. */
function stubMethods(behave: Behave): Methods {
  const all = SERVICES.flatMap(({ methods }) => methods);
  return new Map(all.map((desc) => [desc, stubMethod(desc, behave)]));
}

function stubMethod(desc: DescMethod, behave: Behave): Implementation {
  if (desc.methodKind !== "server_streaming") {
    return async (request: Message, context: HandlerContext) =>
      (await behave(desc, request, context)) ?? sampleOf(desc.output);
  }
  return async function* (request: Message, context: HandlerContext) {
    const answers = (await behave(desc, request, context)) ?? [sampleOf(desc.output), sampleOf(desc.output)];
    yield* answers as AsyncIterable<Message>;
  };
}
