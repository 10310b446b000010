// `CODEX_PROGRAM_KEYS`: the key of Codex. Arguments of its program name the address of the gateway, and count before its files.
//
// Only the settings that give a provider its address and its variable are read of `config.toml`, line by line. A provider with more than these,
// such as headers of its own, gets its key.

import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Environment } from "@holdfast/runtime/internal";

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

/** @returns `undefined` where the settings say more than is read here. */
function readConfig(environment: Environment): Config | undefined {
  const tables = new Map<string, Map<string, string>>([["", new Map()]]);
  let at = "";
  for (const line of userText(join(codexFolder(environment), "config.toml")).split("\n")) {
    const [, table] = /^\s*\[([^[\]]+)\]\s*(?:#.*)?$/.exec(line) ?? [];
    if (table !== undefined) {
      at = table.trim();
      tables.set(at, tables.get(at) ?? new Map());
      continue;
    }
    const [, name, value = ""] = /^\s*([\w.-]+)\s*=\s*(.*?)\s*$/.exec(line) ?? [];
    if (name !== undefined) tables.get(at)!.set(name, value);
  }
  const top = tables.get("")!;
  // A profile may name another provider.
  if (top.has("profile") || [...top.keys()].some((name) => name.startsWith("model_providers")))
    return undefined;
  const name = textIn(top.get("model_provider") ?? '"openai"');
  if (name === undefined) return undefined;
  if (name === "openai") {
    const baseUrl = textIn(top.get("openai_base_url") ?? '""');
    return baseUrl === undefined ? undefined : { baseUrl };
  }
  if (!/^[\w-]+$/.test(name)) return undefined;
  const table = tables.get(`model_providers.${name}`);
  const isNested = [...tables.keys()].some((one) => one.startsWith(`model_providers.${name}.`));
  if (table === undefined || isNested || [...table.keys()].some((one) => !KNOWN.has(one))) return undefined;
  const [baseUrl, variable] = ["base_url", "env_key"].map((one) => textIn(table.get(one) ?? ""));
  return baseUrl === undefined || variable === undefined ? undefined : { own: { name, variable }, baseUrl };
}

/** A string of TOML on one line. */
function textIn(value: string): string | undefined {
  const [, basic, literal] = /^(?:"([^"\\]*)"|'([^']*)')\s*(?:#.*)?$/.exec(value) ?? [];
  return basic ?? literal;
}
