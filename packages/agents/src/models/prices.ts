// What a call costs, from a price table that comes with the package and is never updated over the network.

import { calcPrice } from "@pydantic/genai-prices";

import type { ModelUsage } from "./model-provider.ts";

/** Whose prices: a provider of the table, or whoever the table knows behind a URL. */
export type PriceList = { readonly providerId: string } | { readonly providerApiUrl: string };

/** In millionths of a dollar, rounded up; `undefined` when the table does not know the model. */
export function costMicroUsd(
  prices: PriceList,
  model: string,
  usage: Omit<ModelUsage, "costMicroUsd">,
): number | undefined {
  const priced = calcPrice(
    {
      input_tokens: usage.inputTokens,
      output_tokens: usage.outputTokens,
      cache_read_tokens: usage.cacheReadTokens,
      cache_write_tokens: usage.cacheWriteTokens,
    },
    model,
    prices,
  );
  if (priced === null) return undefined;
  // Whole thousandths first: 0.0045 dollars are 4500.000000000001 millionths to a computer, and would be rounded up.
  return Math.ceil(Math.round(priced.total_price * 1e9) / 1e3);
}

export function isPriced(prices: PriceList, model: string): boolean {
  const usage = { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 };
  return costMicroUsd(prices, model, usage) !== undefined;
}
