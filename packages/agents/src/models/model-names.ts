// The names of models in agent files: aliases, and names without a provider.

import { HoldfastError } from "@holdfast/core";

/** Short names of models. A person sees this table by `holdfast models`. */
export const MODEL_ALIASES: Readonly<Record<string, string>> = {
  opus: "anthropic/claude-opus-5-5",
  sonnet: "anthropic/claude-sonnet-5",
  haiku: "anthropic/claude-haiku-4-5",
  gpt: "openai/gpt-5.5",
  gemini: "google/gemini-3.8-flash",
};

const PROVIDERS: readonly (readonly [pattern: RegExp, provider: string])[] = [
  [/^claude-/, "anthropic"],
  [/^(gpt-|o\d|chatgpt-|codex-)/, "openai"],
  [/^gemini-/, "google"],
];

/** The provider that a full name begins with, also as another server's name of ours; `undefined` for a name without one. */
export function providerOf(name: string | undefined): ModelProviderName | undefined {
  return /^(anthropic|openai|google|compatible|scripted)\/./.exec(name?.trim() ?? "")?.[1] as
    | ModelProviderName
    | undefined;
}

export type ModelProviderName = "anthropic" | "openai" | "google" | "compatible" | "scripted";

/**
 * The full name of a model, `provider/model`.
 *
 * @param name a full name, an alias, or the name of a model of Anthropic, OpenAI or Google.
 * @throws HoldfastError `agent_invalid` for a name of no known provider: no other model is taken in its
 *   place.
 */
export function fullModelName(name: string): string {
  const alias = MODEL_ALIASES[name];
  if (alias !== undefined) return alias;
  // Names of the models of other servers have slashes, too. Their first part says the provider.
  if (/^(anthropic|openai|google|compatible|openai-compatible|scripted)\/./.test(name))
    return name.replace(/^openai-compatible\//, "compatible/");
  const provider = PROVIDERS.find(([pattern]) => pattern.test(name))?.[1];
  if (provider !== undefined) return `${provider}/${name}`;
  throw new HoldfastError("agent_invalid", `"${name}" names no known model`, {
    expected: `provider/model with the provider anthropic, openai, google or compatible, or an alias: ${Object.keys(MODEL_ALIASES).join(", ")}`,
    fix: "write the whole name, such as anthropic/claude-sonnet-5, or compatible/NAME for the server of OPENAI_BASE_URL",
  });
}
