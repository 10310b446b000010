// The cost of a model call (`costMicroUsd`), from a price table that comes with the package. The table is
// never updated over the network.

import { MINUTE_MS, type Prices } from "@holdfast/core";
import type { Provider } from "@pydantic/genai-prices";

import { genaiPrices } from "../lazy-packages.ts";
import type { ModelUsage } from "./model-provider.ts";

/** A provider in the price table, by its id or by the URL of its API. */
export type PriceList = { readonly providerId: string } | { readonly providerApiUrl: string };

/** The provider whose replies are written in advance. Nobody is asked, so they cost nothing. */
export const SCRIPTED = { providerId: "scripted" } as const;

/** In millionths of a dollar, rounded up; `undefined` when the table does not know the model. */
export function costMicroUsd(
  prices: PriceList,
  model: string,
  usage: Omit<ModelUsage, "costMicroUsd">,
): number | undefined {
  if ("providerId" in prices && prices.providerId === SCRIPTED.providerId) return 0;
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = usage;
  const minute = Math.floor(Date.now() / MINUTE_MS); // Some prices depend on the time.
  const key = JSON.stringify([
    prices,
    model,
    inputTokens,
    outputTokens,
    cacheReadTokens,
    cacheWriteTokens,
    minute,
  ]);
  return remembered(costs, key, () => costByTable(prices, model, usage));
}

/** One call of a model is priced by its provider, its session and each budget of that. */
const costs = new Map<string, number | undefined>();

function costByTable(
  prices: PriceList,
  model: string,
  usage: Omit<ModelUsage, "costMicroUsd">,
): number | undefined {
  const provider = findPriced(prices, model);
  if (provider === undefined) return undefined;
  const tokens = {
    input_tokens: usage.inputTokens,
    output_tokens: usage.outputTokens,
    cache_read_tokens: usage.cacheReadTokens,
    cache_write_tokens: usage.cacheWriteTokens,
  };
  const priced = genaiPrices().calcPrice(tokens, model, { provider });
  if (priced === null) return undefined;
  // Whole thousandths first: 0.0045 dollars are 4500.000000000001 millionths to a computer, and would be
  // rounded up.
  return Math.ceil(Math.round(priced.total_price * 1e9) / 1e3);
}

/** The most tokens that a model named `provider/model` reads at once; `undefined` where the table does not know it. */
export function contextWindow(name: string): number | undefined {
  const [providerId = "", ...rest] = name.split("/");
  if (!PROVIDERS.includes(providerId)) return undefined;
  return findPriced({ providerId }, rest.join("/"))?.models[0]?.context_window;
}

/** A few models are used again and again, and a search compares hundreds of patterns. */
const found = new Map<string, Provider | undefined>();

/** The provider in the price table, with the one of its models that has this name. */
function findPriced(prices: PriceList, model: string): Provider | undefined {
  return remembered(found, JSON.stringify([prices, model]), () => {
    const priced = genaiPrices().calcPrice({ input_tokens: 1 }, model, prices);
    return priced === null ? undefined : { ...priced.provider, models: [priced.model] };
  });
}

const REMEMBERED_MAX = 100;

/** Names of models and numbers of tokens come from servers, so that few are remembered. */
function remembered<T>(known: Map<string, T>, key: string, find: () => T): T {
  if (known.has(key)) return known.get(key) as T;
  if (known.size === REMEMBERED_MAX) known.clear();
  const value = find();
  known.set(key, value);
  return value;
}

export function isPriced(prices: PriceList, model: string): boolean {
  const usage = { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 };
  return costMicroUsd(prices, model, usage) !== undefined;
}

/** Names of our providers that the table knows, too. Behind other servers a name says nothing of a price. */
const PROVIDERS = ["anthropic", "openai", "google", SCRIPTED.providerId];

/**
 * Prices of models named `provider/model`, for `createRuntime({ prices })`.
 *
 * @param own goes before the table, where it gives a number; `() => undefined` by default.
 */
export function modelPrices(own: Prices = () => undefined): Prices {
  return (usage) => own(usage) ?? tablePrice(usage);
}

const tablePrice: Prices = ({
  model,
  inputTokens,
  outputTokens,
  cacheReadTokens = 0,
  cacheWriteTokens = 0,
}) => {
  const [providerId = "", ...name] = model.split("/");
  if (!PROVIDERS.includes(providerId)) return undefined;
  const usage = { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens };
  return costMicroUsd({ providerId }, name.join("/"), usage);
};
