// Which model, by the environment.

import { HoldfastError } from "@holdfast/core";

import { aiSdkProvider, type ModelTimeouts } from "./ai-sdk-provider.ts";
import type { ModelProvider } from "./model-provider.ts";

export type ModelEnvironment = Readonly<Record<string, string | undefined>>;

export interface ResolveModelOptions {
  readonly timeouts?: Partial<ModelTimeouts>;
}

const ANTHROPIC_MODEL = "claude-sonnet-5";
const OPENAI_MODEL = "gpt-5.5";

/**
 * The model that the environment names; `undefined` when it names none.
 *
 *   HOLDFAST_SCRIPTED_MODEL_URL   a scripted model server; before all others, because only a test or a demonstration sets it
 *   ANTHROPIC_API_KEY             Anthropic, at ANTHROPIC_BASE_URL if that is set
 *   OPENAI_BASE_URL               any server that speaks OpenAI's chat protocol (Ollama, vLLM, a gateway), with
 *                                 OPENAI_API_KEY if that is set
 *   OPENAI_API_KEY                OpenAI
 *   HOLDFAST_MODEL                which model of it; `anthropic/…`, `openai/…` and `compatible/…` also choose between several
 *
 * @throws HoldfastError `config_invalid` or `model_auth` for an environment that contradicts itself.
 */
export function resolveModel(
  env: ModelEnvironment,
  options: ResolveModelOptions = {},
): ModelProvider | undefined {
  const scriptedUrl = read(env, "HOLDFAST_SCRIPTED_MODEL_URL");
  if (scriptedUrl !== undefined) return scriptedModel(scriptedUrl, options);

  const wanted = splitName(read(env, "HOLDFAST_MODEL"));
  const kinds = available(env);
  const kind = wanted.provider ?? kinds[0];
  if (kind === undefined) return undefined;
  if (!kinds.includes(kind)) {
    throw new HoldfastError(
      "config_invalid",
      `HOLDFAST_MODEL asks for a model of "${kind}", and ${NEEDS[kind]} is not set`,
      {
        fix: `set ${NEEDS[kind]}, or HOLDFAST_MODEL to another model`,
      },
    );
  }
  return MAKERS[kind](env, wanted.model, options);
}

/** The provider for a scripted model server. @param url its address, without a path. */
export function scriptedModel(url: string, options: ResolveModelOptions = {}): ModelProvider {
  const baseURL = `${checkUrl("HOLDFAST_SCRIPTED_MODEL_URL", url).replace(/\/v1$/, "")}/v1`;
  return aiSdkProvider({
    ...options,
    provider: "scripted",
    model: "scripted-model",
    description: "a scripted model: its replies are written in advance, no real model is asked",
    isScripted: true,
    load: async () =>
      (await import("@ai-sdk/anthropic")).createAnthropic({ apiKey: "none", baseURL })("scripted-model"),
  });
}

type Kind = "anthropic" | "compatible" | "openai";

const NEEDS: Readonly<Record<Kind, string>> = {
  anthropic: "ANTHROPIC_API_KEY",
  compatible: "OPENAI_BASE_URL",
  openai: "OPENAI_API_KEY",
};

type Maker = (
  env: ModelEnvironment,
  model: string | undefined,
  options: ResolveModelOptions,
) => ModelProvider;

const MAKERS: Readonly<Record<Kind, Maker>> = {
  anthropic: (env, model = ANTHROPIC_MODEL, options) => {
    const apiKey = requireKey(env, "ANTHROPIC_API_KEY");
    const url = read(env, "ANTHROPIC_BASE_URL");
    const baseURL =
      url === undefined ? undefined : `${checkUrl("ANTHROPIC_BASE_URL", url).replace(/\/v1$/, "")}/v1`;
    return aiSdkProvider({
      ...options,
      provider: "anthropic",
      model,
      description: `${model} by Anthropic (key from ANTHROPIC_API_KEY)`,
      prices: { providerId: "anthropic" },
      keyVariable: "ANTHROPIC_API_KEY",
      secrets: [apiKey],
      load: async () => {
        const { createAnthropic } = await import("@ai-sdk/anthropic");
        return createAnthropic({ apiKey, ...(baseURL === undefined ? {} : { baseURL }) })(model);
      },
    });
  },

  compatible: (env, model, options) => {
    const baseURL = checkUrl("OPENAI_BASE_URL", read(env, "OPENAI_BASE_URL") ?? "");
    const apiKey = read(env, "OPENAI_API_KEY") === undefined ? undefined : requireKey(env, "OPENAI_API_KEY");
    if (model === undefined) {
      throw new HoldfastError(
        "config_invalid",
        "OPENAI_BASE_URL is set, but HOLDFAST_MODEL does not say which model to use there",
        {
          fix: "set HOLDFAST_MODEL to the name of a model the server has, for example HOLDFAST_MODEL=qwen3-coder",
        },
      );
    }
    const key = apiKey === undefined ? "without a key" : "key from OPENAI_API_KEY";
    return aiSdkProvider({
      ...options,
      provider: "openai-compatible",
      model,
      description: `${model} at ${new URL(baseURL).host} (${key})`,
      prices: { providerApiUrl: baseURL },
      keyVariable: "OPENAI_API_KEY",
      secrets: apiKey === undefined ? [] : [apiKey],
      load: async () => {
        const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
        const name = "openai-compatible";
        return createOpenAICompatible({
          name,
          baseURL,
          includeUsage: true,
          ...(apiKey === undefined ? {} : { apiKey }),
        })(model);
      },
    });
  },

  openai: (env, model = OPENAI_MODEL, options) => {
    const apiKey = requireKey(env, "OPENAI_API_KEY");
    return aiSdkProvider({
      ...options,
      provider: "openai",
      model,
      description: `${model} by OpenAI (key from OPENAI_API_KEY)`,
      prices: { providerId: "openai" },
      keyVariable: "OPENAI_API_KEY",
      secrets: [apiKey],
      load: async () => (await import("@ai-sdk/openai")).createOpenAI({ apiKey })(model),
    });
  },
};

/** In the order of preference. A server of the user's own goes before OpenAI: its key may be for that server. */
function available(env: ModelEnvironment): readonly Kind[] {
  const kinds: Kind[] = [];
  if (read(env, "ANTHROPIC_API_KEY") !== undefined) kinds.push("anthropic");
  if (read(env, "OPENAI_BASE_URL") !== undefined) kinds.push("compatible");
  else if (read(env, "OPENAI_API_KEY") !== undefined) kinds.push("openai");
  return kinds;
}

/** Models of other servers have slashes in their names too; only our own prefixes are taken off. */
function splitName(name: string | undefined): { readonly provider?: Kind; readonly model?: string } {
  const match = /^(anthropic|openai|compatible)\/(.+)$/.exec(name ?? "");
  if (match?.[1] !== undefined && match[2] !== undefined)
    return { provider: match[1] as Kind, model: match[2] };
  return name === undefined ? {} : { model: name };
}

function read(env: ModelEnvironment, name: string): string | undefined {
  const value = env[name]?.trim();
  return value === "" ? undefined : value;
}

/** An HTTP header cannot carry anything else, and the error about it would quote the key. */
function requireKey(env: ModelEnvironment, name: string): string {
  const key = read(env, name) ?? "";
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  throw new HoldfastError(
    "model_auth",
    `${name} does not hold a key: it contains characters that no key has`,
    {
      fix: `set ${name} again, without blanks, line breaks and quotes`,
    },
  );
}

function checkUrl(name: string, value: string): string {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  // An address is shown and recorded, and a password in it would be too, so the error does not quote the
  // address.
  if (url !== undefined && (url.username !== "" || url.password !== "")) {
    throw new HoldfastError("config_invalid", `${name} holds a user name or a password`, {
      expected: "an address without them; a key goes into OPENAI_API_KEY or ANTHROPIC_API_KEY",
    });
  }
  if (url !== undefined && (url.protocol === "http:" || url.protocol === "https:"))
    return value.replace(/\/+$/, "");
  throw new HoldfastError("config_invalid", `${name} is not the address of a server`, {
    expected: "a URL such as http://127.0.0.1:11434/v1",
  });
}
