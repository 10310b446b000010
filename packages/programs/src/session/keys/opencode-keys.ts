// `OPENCODE_KEYS`: the keys of OpenCode. Its configuration by a variable, which counts before its files,
// names the address and the token.

import { join } from "node:path";
import type { Environment } from "@holdfast/system";

import { jsoncObject } from "@holdfast/agents";
import { fieldsOf, isFields } from "../fields.ts";
import { heldKey, isSet, userText, type ModelApi, type ProgramKeys } from "./program-keys.ts";

/** The variables of the providers of OpenCode whose API the gateway knows. */
const PROVIDERS: readonly { readonly name: ModelApi; readonly key: string; readonly baseUrl?: string }[] = [
  { name: "anthropic", key: "ANTHROPIC_API_KEY", baseUrl: "ANTHROPIC_BASE_URL" },
  { name: "openai", key: "OPENAI_API_KEY", baseUrl: "OPENAI_BASE_URL" },
  { name: "google", key: "GEMINI_API_KEY" },
];

export const OPENCODE_KEYS: ProgramKeys = {
  held(environment) {
    const texts = configPaths(environment).map(userText);
    // A provider of the user's own may get the key of the variable for another address.
    const isNamed = (variable: string): boolean => texts.some((text) => text.includes(`{env:${variable}}`));
    const configured = texts.map(providersIn);
    if (configured.includes(undefined)) return [];
    return PROVIDERS.flatMap(({ name, key, baseUrl }) => {
      const own = configured.flatMap((providers) => optionsOf(providers?.[name]));
      if (isNamed(key) || own.some(({ apiKey }) => apiKey !== undefined)) return [];
      const address = own.flatMap(({ baseURL }) => (typeof baseURL === "string" ? [baseURL] : [])).at(-1);
      return heldKey(name, key, environment, address ?? (baseUrl === undefined ? "" : environment[baseUrl]));
    });
  },
  settings({ held, token, env }) {
    const addresses = {
      anthropic: `${env["ANTHROPIC_BASE_URL"] ?? ""}/v1`,
      openai: env["OPENAI_BASE_URL"] ?? "",
      google: `${env["GOOGLE_GEMINI_BASE_URL"] ?? ""}/v1beta`,
    };
    const provider = Object.fromEntries(
      held.map(({ api }) => [api, { options: { baseURL: addresses[api], apiKey: token } }]),
    );
    return { env: { OPENCODE_CONFIG_CONTENT: JSON.stringify({ provider }) } };
  },
};

/** The files of the user (program-keys-3). */
function configPaths(environment: Environment): readonly string[] {
  const config = environment["XDG_CONFIG_HOME"] ?? join(environment["HOME"] ?? "/", ".config");
  const { OPENCODE_CONFIG: named, OPENCODE_CONFIG_DIR: folder } = environment;
  const folders = [join(config, "opencode"), ...(isSet(folder) ? [folder!] : [])];
  return [
    ...folders.flatMap((one) => [
      join(one, "config.json"),
      join(one, "opencode.json"),
      join(one, "opencode.jsonc"),
    ]),
    ...(isSet(named) ? [named!] : []),
  ];
}

/** @returns `undefined` for a file that cannot be read, so that nobody knows its addresses. */
function providersIn(text: string): Readonly<Record<string, unknown>> | undefined {
  if (text.trim() === "") return {};
  try {
    return fieldsOf(jsoncObject(text, "opencode.json")["provider"]);
  } catch {
    return undefined;
  }
}

function optionsOf(provider: unknown): readonly Readonly<Record<string, unknown>>[] {
  const { options } = fieldsOf(provider);
  return isFields(options) ? [options] : [];
}
