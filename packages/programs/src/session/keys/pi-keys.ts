// `PI_KEYS`: the keys of Pi. The extension that Holdfast gives it (`pi-gate.ts`) points its providers at the
// gateway.

import { join } from "node:path";
import type { Environment } from "@holdfast/system";

import { fieldsOf, parseFields } from "../fields.ts";
import { heldKey, userText, type ModelApi, type ProgramKeys } from "./program-keys.ts";

const PROVIDERS: readonly { readonly name: ModelApi; readonly key: string; readonly baseUrl: string }[] = [
  { name: "anthropic", key: "ANTHROPIC_API_KEY", baseUrl: "ANTHROPIC_BASE_URL" },
  { name: "openai", key: "OPENAI_API_KEY", baseUrl: "OPENAI_BASE_URL" },
  { name: "google", key: "GEMINI_API_KEY", baseUrl: "GOOGLE_GEMINI_BASE_URL" },
];

export const PI_KEYS: ProgramKeys = {
  held(environment) {
    const folder = piFolder(environment);
    // Its own sign-in with a provider counts before the variable of that provider.
    const signedIn = parseFields(userText(join(folder, "auth.json"))) ?? {};
    const models = userText(join(folder, "models.json"));
    const parsed = models === "" ? {} : parseFields(models);
    if (parsed === undefined) return [];
    const providers = fieldsOf(parsed["providers"]);
    return PROVIDERS.flatMap(({ name, key, baseUrl }) => {
      // A provider of the user's own may get the key of the variable for another address.
      const isConfigured = providers[name] !== undefined || models.includes(key);
      const isOwn = isConfigured || signedIn[name] !== undefined;
      return isOwn ? [] : heldKey(name, key, environment, environment[baseUrl]);
    });
  },
  settings({ held, env }) {
    const addresses = {
      anthropic: env["ANTHROPIC_BASE_URL"],
      openai: env["OPENAI_BASE_URL"],
      google: `${env["GOOGLE_GEMINI_BASE_URL"] ?? ""}/v1beta`,
    };
    const urls = Object.fromEntries(held.map(({ api }) => [api, addresses[api]]));
    return { env: { HOLDFAST_MODEL_URLS: JSON.stringify(urls) } };
  },
};

/** The folder of its settings. */
export function piFolder(environment: Environment): string {
  return environment["PI_CODING_AGENT_DIR"] ?? join(environment["HOME"] ?? "/", ".pi/agent");
}
