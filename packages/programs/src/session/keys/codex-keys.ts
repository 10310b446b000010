// `CODEX_PROGRAM_KEYS`: the key of Codex. Arguments of its program name the address of the gateway, and count
// before its files.
//
// The settings of `config.toml` that count are those that give a provider its address and its variable. A
// provider with more than these, such as headers of its own, gets its key.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { parse } from "smol-toml";
import type { Environment } from "@holdfast/system";

import { heldKey, userText, type ProgramKeys } from "./program-keys.ts";

/** Our provider in the place of the built-in one, which first tries a protocol that the gateway does not have. */
export const HELD_OPENAI = "holdfast-openai";

export const CODEX_PROGRAM_KEYS: ProgramKeys = {
  held(environment) {
    const config = readConfig(environment);
    if (config === undefined) return [];
    const { own, baseUrl } = config;
    if (own !== undefined)
      return ["OPENAI_API_KEY", "CODEX_API_KEY"].includes(own.variable) && /\/v1\/?$/.test(baseUrl)
        ? heldKey("openai", own.variable, environment, baseUrl)
        : [];
    if (existsSync(join(codexFolder(environment), "auth.json"))) return []; // Its own sign-in counts before the variables.
    const variable = ["CODEX_API_KEY", "OPENAI_API_KEY"].find((name) => environment[name]?.trim()) ?? "";
    const address = baseUrl === "" ? environment["OPENAI_BASE_URL"] : baseUrl;
    return heldKey("openai", variable, environment, address).map((key) => ({
      ...key,
      unneeded: ["OPENAI_API_KEY", "CODEX_API_KEY"],
    }));
  },
  settings({ env, token }, environment) {
    const url = JSON.stringify(env["OPENAI_BASE_URL"]);
    const own = readConfig(environment)?.own;
    if (own !== undefined)
      return {
        env: { [own.variable]: token },
        args: ["-c", `model_providers.${own.name}.base_url=${url}`],
      };
    const name = HELD_OPENAI;
    const provider = `{name="OpenAI",base_url=${url},env_key="OPENAI_API_KEY",wire_api="responses"}`;
    return { args: ["-c", `model_provider="${name}"`, "-c", `model_providers.${name}=${provider}`] };
  },
};

/** The folder of its settings and sessions. */
export function codexFolder(environment: Environment): string {
  return environment["CODEX_HOME"] ?? join(environment["HOME"] ?? "/", ".codex");
}

interface Config {
  /** The provider of the user's own. Absent for the built-in one. */
  readonly own?: { readonly name: string; readonly variable: string };
  /** Empty for the address of the vendor. */
  readonly baseUrl: string;
}

const KNOWN = new Set(["name", "base_url", "env_key", "wire_api", "env_key_instructions"]);

/** @returns `undefined` where the settings say more than is read here, or cannot be read. */
function readConfig(environment: Environment): Config | undefined {
  const config = parsed(userText(join(codexFolder(environment), "config.toml")));
  // A profile may name another provider.
  if (config === undefined || config["profile"] !== undefined) return undefined;
  const name = config["model_provider"] ?? "openai";
  if (name === "openai") {
    const baseUrl = config["openai_base_url"] ?? "";
    return typeof baseUrl === "string" ? { baseUrl } : undefined;
  }
  if (typeof name !== "string" || !/^[\w-]+$/.test(name)) return undefined;
  const provider = (config["model_providers"] as Readonly<Record<string, unknown>> | undefined)?.[name];
  if (typeof provider !== "object" || provider === null) return undefined;
  if (Object.keys(provider).some((key) => !KNOWN.has(key))) return undefined;
  const { base_url: baseUrl, env_key: variable } = provider as Readonly<Record<string, unknown>>;
  if (typeof baseUrl !== "string" || typeof variable !== "string") return undefined;
  return { own: { name, variable }, baseUrl };
}

function parsed(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    return parse(text);
  } catch {
    return undefined;
  }
}
