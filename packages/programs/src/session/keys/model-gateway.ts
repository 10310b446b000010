// `openModelGateway`: the gateway of one turn, which holds the keys of its program. It is the gateway that
// runs of executors have, with no route but those of model providers. It listens on loopback alone, and its
// token is good for nothing after the turn.

import { defined } from "@holdfast/core";
import { Redactor } from "@holdfast/system";

import type { KeyAccess, ModelGateway } from "./program-keys.ts";

export interface OpenedModelGateway extends ModelGateway {
  close(): Promise<void>;
}

/**
 * @param admit rejects with a HoldfastError for a request of the program that may not be sent.
 * @returns `undefined` where there is no key to hold.
 */
export async function openModelGateway(
  { byGateway: held, proxies }: Pick<KeyAccess, "byGateway" | "proxies">,
  run: { readonly sessionId: string; readonly runId: string },
  admit: () => Promise<void>,
): Promise<OpenedModelGateway | undefined> {
  if (held.length === 0) return undefined;
  // Most processes need no gateway.
  const { anthropicProvider, googleProvider, openaiProvider, startRunGateway } =
    await import("@holdfast/runtime/gateway");
  const make = { anthropic: anthropicProvider, openai: openaiProvider, google: googleProvider };
  const providers = held.map(({ api, key, upstream, headers, isBearer }) => ({
    ...make[api]({
      key: () => key,
      ...defined({ upstream, headers }),
    }),
    ...(isBearer === true ? ({ keyHeader: "authorization" } as const) : {}),
  }));
  const redactor = new Redactor(held.map(({ key }) => key));
  const gateway = await startRunGateway({ run, routes: {}, redactor, providers, proxies, admit });
  return { held, token: gateway.token, env: gateway.env, close: () => gateway.close() };
}
