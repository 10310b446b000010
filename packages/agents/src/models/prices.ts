// The cost of a model call (`costMicroUsd`), from a price table that comes with the package. The table is
// never updated over the network.

import type { Prices } from "@holdfast/core";
import type { Provider } from "@pydantic/genai-prices";

import { genaiPrices } from "../lazy-packages.ts";
import type { ModelUsage } from "./model-provider.ts";

/** A provider in the price table, by its id or by the URL of its API. */
export type PriceList = { readonly providerId: string } | { readonly providerApiUrl: string };

/** In millionths of a dollar, rounded up; `undefined` when the table does not know the model. */
export function costMicroUsd(
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
const FOUND_MAX = 100;

/** The provider in the price table, with the one of its models that has this name. */
function findPriced(prices: PriceList, model: string): Provider | undefined {
  const key = JSON.stringify([prices, model]);
  if (!found.has(key)) {
    if (found.size === FOUND_MAX) found.clear(); // Names come from servers.
    const priced = genaiPrices().calcPrice({ input_tokens: 1 }, model, prices);
    found.set(key, priced === null ? undefined : { ...priced.provider, models: [priced.model] });
  }
  return found.get(key);
}

export function isPriced(prices: PriceList, model: string): boolean {
  const usage = { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 };
  return costMicroUsd(prices, model, usage) !== undefined;
}

/** Names of our providers that the table knows, too. Behind other servers a name says nothing of a price. */
const PROVIDERS = ["anthropic", "openai", "google"];

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
