// Prices: a model that was found once costs as much as by a search of the whole table.

import { calcPrice, findProvider } from "@pydantic/genai-prices";
import { expect, test } from "vitest";
import { contextWindow, costMicroUsd, modelPrices } from "./prices.ts";

const usage = { inputTokens: 300_000, outputTokens: 2_000, cacheReadTokens: 50_000, cacheWriteTokens: 7_000 };
const tokens = {
  input_tokens: 300_000,
  output_tokens: 2_000,
  cache_read_tokens: 50_000,
  cache_write_tokens: 7_000,
};

test.each(["anthropic", "openai", "google"])(
  "the models of %s cost as by a search, the first time and later",
  (providerId) => {
    const models = findProvider({ providerId })!.models.map(({ id }) => id);
    expect(models.length).toBeGreaterThan(10);
    for (const model of [...models, ...models, "a model of nobody"]) {
      const searched = calcPrice(tokens, model, { providerId });
      const micros = searched === null ? undefined : Math.ceil(Math.round(searched.total_price * 1e9) / 1e3);
      expect(costMicroUsd({ providerId }, model, usage), model).toBe(micros);
      expect(modelPrices()({ model: `${providerId}/${model}`, ...usage }), model).toBe(micros);
      expect(contextWindow(`${providerId}/${model}`), model).toBe(searched?.model.context_window);
    }
  },
);

test("a server's address leads to the same price as the name of its provider", () => {
  const model = "claude-sonnet-4-5";
  const byAddress = costMicroUsd({ providerApiUrl: "https://api.anthropic.com/v1" }, model, usage);
  expect(byAddress).toBe(costMicroUsd({ providerId: "anthropic" }, model, usage));
  expect(byAddress).toBeGreaterThan(0);
});

test.each(["inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens"] as const)(
  "calls that differ in %s alone cost their own price each",
  (field) => {
    const costOf = (tokensOfField: number): number =>
      costMicroUsd({ providerId: "anthropic" }, "claude-sonnet-4-5", { ...usage, [field]: tokensOfField })!;
    const [few, more] = [costOf(60_000), costOf(61_000)];
    expect([costOf(60_000), costOf(61_000)]).toEqual([few, more]);
    expect(more).not.toBe(few);
  },
);
