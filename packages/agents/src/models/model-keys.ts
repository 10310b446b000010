// The keys of models: the variable of each provider (`PROVIDER_KEYS`), and those that an agent needs
// (`modelSecrets`).

import type { Environment, OptionalSecrets, PROVIDER_KEY_NAMES } from "@holdfast/system";

import { providerOf } from "./model-names.ts";

/** The variable with the key of each provider, in the order of preference. */
export const PROVIDER_KEYS = {
  anthropic: "ANTHROPIC_API_KEY",
  openai: "OPENAI_API_KEY",
  google: "GEMINI_API_KEY",
} as const satisfies Readonly<Record<string, (typeof PROVIDER_KEY_NAMES)[number]>>;

/**
 * The keys for the models of an agent. Sessions ask only for those that belong to the provider of their
 * model.
 *
 * @param model the full name; `null` where the environment chooses.
 */
export function modelSecrets(
  model: string | null,
  fallbackModels: readonly string[],
  env: Environment,
): readonly OptionalSecrets[] {
  if (isSet(env, "HOLDFAST_SCRIPTED_MODEL_URL")) return [];
  const fallbacks = fallbackModels.map((name) => ({ ...keyOf(name, env), isAsked: false }));
  return [keyOf(model ?? env["HOLDFAST_MODEL"], env), ...fallbacks].filter(({ anyOf }) => anyOf.length > 0);
}

function keyOf(model: string | undefined, env: Environment): OptionalSecrets {
  const hasServer = isSet(env, "OPENAI_BASE_URL");
  switch (providerOf(model)) {
    case "anthropic":
      return { anyOf: [PROVIDER_KEYS.anthropic], isAsked: true };
    case "google":
      return { anyOf: [PROVIDER_KEYS.google], isAsked: true };
    case "openai":
      return { anyOf: [PROVIDER_KEYS.openai], isAsked: true };
    case "compatible":
      return { anyOf: [PROVIDER_KEYS.openai], isAsked: false }; // A server such as Ollama needs none.
    case "scripted":
      return { anyOf: [], isAsked: false };
    case undefined:
      return { anyOf: Object.values(PROVIDER_KEYS), isAsked: !hasServer };
  }
}

function isSet(env: Environment, name: string): boolean {
  return (env[name] ?? "").trim() !== "";
}
