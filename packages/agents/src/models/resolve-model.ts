// Which model, by the environment.

import { defined, HoldfastError, PauseError } from "@holdfast/core";

import { aiSdkProvider, type AiSdkProviderOptions, type ModelTimeouts } from "./ai-sdk-provider.ts";
import { PROVIDER_KEYS } from "./model-keys.ts";
import { providerOf } from "./model-names.ts";
import type { ModelProvider } from "./model-provider.ts";
import { SCRIPTED } from "./prices.ts";

/** The variables that name a model, its address and its key. */
export type ModelEnvironment = Readonly<Record<string, string | undefined>>;

/** Options of `resolveModel`. */
export interface ResolveModelOptions {
  readonly timeouts?: Partial<ModelTimeouts>;
  /**
   * Keys that are declared secrets: they count as set, and each call of the model reads its key by
   * `task.secret`. Others are read from the environment, now.
   */
  readonly secrets?: readonly KeyName[];
}

export type KeyName = (typeof PROVIDER_KEYS)[keyof typeof PROVIDER_KEYS];

const ANTHROPIC_MODEL = "claude-sonnet-5";
const OPENAI_MODEL = "gpt-5.5";
const GOOGLE_MODEL = "gemini-3.8-flash";

/**
 * The model that the environment names; `undefined` when it names none.
 *
 *   HOLDFAST_SCRIPTED_MODEL_URL   a scripted model server; before all others, because only a test or a demonstration sets it
 *   ANTHROPIC_API_KEY             Anthropic, at ANTHROPIC_BASE_URL if that is set
 *   OPENAI_BASE_URL               any server that speaks OpenAI's chat protocol (Ollama, vLLM, a gateway), with
 *                                 OPENAI_API_KEY if that is set
 *   OPENAI_API_KEY                OpenAI
 *   GEMINI_API_KEY                Google, at GOOGLE_GEMINI_BASE_URL if that is set
 *   HOLDFAST_MODEL                which model of it; `anthropic/…`, `openai/…`, `google/…` and `compatible/…` also choose
 *                                 between several
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
  const kinds = available(env, options);
  const kind = wanted.provider ?? kinds[0];
  if (kind === undefined) return undefined;
  if (!kinds.includes(kind)) throw missingFor(kind, env);
  return MAKERS[kind](env, wanted.model, options);
}

/** A session keeps its model, so another model in its settings cures nothing. */
function missingFor(kind: Kind, env: ModelEnvironment): PauseError {
  const asked = `the model ${read(env, "HOLDFAST_MODEL")} is asked for, and`;
  const pause = { reason: "auth_required" } as const;
  if (kind === "openai" && read(env, NEEDS.openai) !== undefined)
    return new PauseError("config_invalid", `${asked} OPENAI_BASE_URL names another server than OpenAI's`, {
      fix: "unset OPENAI_BASE_URL, or name the model of that server: compatible/NAME",
      pause,
    });
  const fix =
    kind === "compatible"
      ? "set OPENAI_BASE_URL to the address of the server where the process of the session starts"
      : keyAdvice(NEEDS[kind]);
  return new PauseError("config_invalid", `${asked} ${NEEDS[kind]} is not set`, { fix, pause });
}

/** How a person gives the key of a model to the process that runs the session. */
export function keyAdvice(name: string): string {
  return (
    `store the key with \`holdfast secret set ${name}\`, or set ${name} in the environment of the command ` +
    "that runs the session; a local stack or a runner takes it when it starts; " +
    "`holdfast run AGENT TEXT --scripted` tries an agent file without a key"
  );
}

/** The provider for a scripted model server. @param url its address, without a path. */
export function scriptedModel(url: string, options: ResolveModelOptions = {}): ModelProvider {
  const baseURL = `${checkUrl("HOLDFAST_SCRIPTED_MODEL_URL", url).replace(/\/v1$/, "")}/v1`;
  return aiSdkProvider({
    ...options,
    provider: SCRIPTED.providerId,
    model: "scripted-model",
    prices: SCRIPTED,
    description: "a scripted model: its replies are written in advance, no real model is asked",
    isScripted: true,
    load: async () =>
      (await import("@ai-sdk/anthropic")).createAnthropic({ apiKey: "none", baseURL })("scripted-model"),
  });
}

type Kind = "anthropic" | "compatible" | "openai" | "google";

const NEEDS = { ...PROVIDER_KEYS, compatible: "OPENAI_BASE_URL" } as const;

type Maker = (
  env: ModelEnvironment,
  model: string | undefined,
  options: ResolveModelOptions,
) => ModelProvider;

const MAKERS: Readonly<Record<Kind, Maker>> = {
  anthropic: (env, model = ANTHROPIC_MODEL, options) => {
    const key = keyOf("ANTHROPIC_API_KEY", env, options);
    const url = read(env, "ANTHROPIC_BASE_URL");
    const baseURL =
      url === undefined ? undefined : `${checkUrl("ANTHROPIC_BASE_URL", url).replace(/\/v1$/, "")}/v1`;
    return aiSdkProvider({
      ...options,
      provider: "anthropic",
      model,
      description: `${model} by Anthropic (${key.from})`,
      prices: { providerId: "anthropic" },
      ...key.options,
      load: async (secret) => {
        const { createAnthropic } = await import("@ai-sdk/anthropic");
        return createAnthropic({ apiKey: key.read(secret), ...defined({ baseURL }) })(model);
      },
    });
  },

  compatible: (env, model, options) => {
    const baseURL = checkUrl("OPENAI_BASE_URL", read(env, "OPENAI_BASE_URL") ?? "");
    const key = hasKey("OPENAI_API_KEY", env, options) ? keyOf("OPENAI_API_KEY", env, options) : undefined;
    if (model === undefined) {
      throw new PauseError(
        "config_invalid",
        "OPENAI_BASE_URL is set, but HOLDFAST_MODEL does not say which model to use there",
        {
          fix: "set HOLDFAST_MODEL to the name of a model the server has, for example HOLDFAST_MODEL=qwen3-coder",
          pause: { reason: "auth_required" },
        },
      );
    }
    return aiSdkProvider({
      ...options,
      provider: "openai-compatible",
      model,
      description: `${model} at ${new URL(baseURL).host} (${key?.from ?? "without a key"})`,
      prices: { providerApiUrl: baseURL },
      ...(key?.options ?? { keyVariable: "OPENAI_API_KEY" }),
      load: async (secret) => {
        const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
        const name = "openai-compatible";
        return createOpenAICompatible({
          name,
          baseURL,
          includeUsage: true,
          ...(key === undefined ? {} : { apiKey: key.read(secret) }),
        })(model);
      },
    });
  },

  openai: (env, model = OPENAI_MODEL, options) => {
    const key = keyOf("OPENAI_API_KEY", env, options);
    return aiSdkProvider({
      ...options,
      provider: "openai",
      model,
      description: `${model} by OpenAI (${key.from})`,
      prices: { providerId: "openai" },
      ...key.options,
      load: async (secret) =>
        (await import("@ai-sdk/openai")).createOpenAI({ apiKey: key.read(secret) })(model),
    });
  },

  google: (env, model = GOOGLE_MODEL, options) => {
    const key = keyOf("GEMINI_API_KEY", env, options);
    const url = read(env, "GOOGLE_GEMINI_BASE_URL");
    const baseURL =
      url === undefined
        ? {}
        : { baseURL: `${checkUrl("GOOGLE_GEMINI_BASE_URL", url).replace(/\/v1beta$/, "")}/v1beta` };
    return aiSdkProvider({
      ...options,
      provider: "google",
      model,
      description: `${model} by Google (${key.from})`,
      prices: { providerId: "google" },
      ...key.options,
      load: async (secret) => {
        const { createGoogle } = await import("@ai-sdk/google");
        return createGoogle({ apiKey: key.read(secret), ...baseURL })(model);
      },
    });
  },
};

/** In the order of preference. A server of the user's own goes before OpenAI: its key may be for that server. */
function available(env: ModelEnvironment, options: ResolveModelOptions): readonly Kind[] {
  const kinds: Kind[] = [];
  if (hasKey("ANTHROPIC_API_KEY", env, options)) kinds.push("anthropic");
  if (read(env, "OPENAI_BASE_URL") !== undefined) kinds.push("compatible");
  else if (hasKey("OPENAI_API_KEY", env, options)) kinds.push("openai");
  if (hasKey("GEMINI_API_KEY", env, options)) kinds.push("google");
  return kinds;
}

/** Models of other servers have slashes in their names too; only our own prefixes are taken off. */
function splitName(name: string | undefined): { readonly provider?: Kind; readonly model?: string } {
  const provider = providerOf(name);
  if (name !== undefined && provider !== undefined && provider !== "scripted")
    return { provider, model: name.slice(provider.length + 1) };
  return name === undefined ? {} : { model: name };
}

function read(env: ModelEnvironment, name: string): string | undefined {
  const value = env[name]?.trim();
  return value === "" ? undefined : value;
}

function hasKey(name: KeyName, env: ModelEnvironment, { secrets = [] }: ResolveModelOptions): boolean {
  return secrets.includes(name) || read(env, name) !== undefined;
}

interface Key {
  /** For people. */
  readonly from: string;
  readonly options: Pick<AiSdkProviderOptions, "keyVariable" | "secrets" | "redact">;
  /** The key for one call. @throws HoldfastError `model_auth` for a text that is none. */
  read(secret: (name: string) => string): string;
}

function keyOf(name: KeyName, env: ModelEnvironment, { secrets = [] }: ResolveModelOptions): Key {
  if (secrets.includes(name))
    return {
      from: `key from the secret ${name}`,
      options: { keyVariable: name, secrets: [name] },
      read: (secret) => requireKey(name, secret(name)),
    };
  const key = requireKey(name, read(env, name) ?? "");
  return { from: `key from ${name}`, options: { keyVariable: name, redact: [key] }, read: () => key };
}

/** An HTTP header cannot carry anything else, and the error about it would quote the key. */
function requireKey(name: KeyName, text: string): string {
  const key = text.trim();
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  throw new PauseError("model_auth", `${name} does not hold a key: it contains characters that no key has`, {
    fix: `set ${name} again, without blanks, line breaks and quotes`,
    pause: { reason: "auth_required" },
  });
}

function checkUrl(name: string, value: string): string {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  // An address is shown and recorded, and a password in it would be too, so the error does not quote the
  // address.
  if (url !== undefined && (url.username !== "" || url.password !== "")) {
    throw new HoldfastError("config_invalid", `${name} holds a user name or a password`, {
      expected: "an address without them; a key goes into the variable of its provider",
    });
  }
  if (url !== undefined && (url.protocol === "http:" || url.protocol === "https:"))
    return value.replace(/\/+$/, "");
  throw new HoldfastError("config_invalid", `${name} is not the address of a server`, {
    expected: "a URL such as http://127.0.0.1:11434/v1",
  });
}
