// `contextWindow`: the tokens that a model reads and writes in one call, from the table of prices.

import { calcPrice } from "@pydantic/genai-prices";

/** For a model that the table does not know. Most models of today read more. */
const UNKNOWN_TOKENS = 128_000;
const NO_USAGE = { input_tokens: 0, output_tokens: 0 };

/** @param name `provider/model`, or `null` for one that is not known yet. */
export function contextWindow(name: string | null): number {
  const [providerId = "", ...model] = (name ?? "").split("/");
  const found = providerId === "" ? null : calcPrice(NO_USAGE, model.join("/"), { providerId });
  return found?.model.context_window ?? UNKNOWN_TOKENS;
}
