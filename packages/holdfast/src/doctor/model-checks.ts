// The check of models: which providers have a key, and which servers of models answer (`checkModels`).
//
//   - Only servers of this machine are asked, unless the user allows others (`--online`).
//   - A key is sent only to its provider's server, in a header. It is in no finding.

import { isLoopback } from "@holdfast/storage/coordinator-url";
import { askForJson, type Answer } from "@holdfast/system/processes";
import type { Io } from "@holdfast/terminal/frame/command";
import { count, plainLine } from "@holdfast/terminal/frame/plain-text";
import { listed, type Finding } from "./check.ts";
import { askOllama } from "../agents/local-model.ts";
import type { SecretsFound } from "./secret-checks.ts";

const LOCAL_MS = 1_000;
const ONLINE_MS = 5_000;

interface Provider {
  readonly name: string;
  readonly key: string;
  /** The variable of another address. */
  readonly variable: string;
  readonly url: string;
  /** Where the server lists its models. */
  listUrl(base: string): string;
  headers(key: string): Readonly<Record<string, string>>;
}

const PROVIDERS: readonly Provider[] = [
  {
    name: "Anthropic",
    key: "ANTHROPIC_API_KEY",
    variable: "ANTHROPIC_BASE_URL",
    url: "https://api.anthropic.com",
    listUrl: (base) => `${base.replace(/\/v1$/, "")}/v1/models`,
    headers: (key) => ({ "x-api-key": key, "anthropic-version": "2023-06-01" }),
  },
  {
    name: "OpenAI",
    key: "OPENAI_API_KEY",
    variable: "OPENAI_BASE_URL",
    url: "https://api.openai.com/v1",
    listUrl: (base) => `${base}/models`,
    headers: (key) => ({ authorization: `Bearer ${key}` }),
  },
  {
    name: "Google",
    key: "GEMINI_API_KEY",
    variable: "GOOGLE_GEMINI_BASE_URL",
    url: "https://generativelanguage.googleapis.com",
    listUrl: (base) => `${base.replace(/\/v1beta$/, "")}/v1beta/models`,
    headers: (key) => ({ "x-goog-api-key": key }),
  },
];

export interface Reached {
  readonly text: string;
  /** Whether an agent can use it, as far as is known. */
  readonly isUsable: boolean;
  /** The advice for one that was expected to work, and does not. */
  readonly fix?: string;
}

/** @param isOnline whether servers of other machines are asked. */
export async function checkModels(secrets: SecretsFound, isOnline: boolean, io: Io): Promise<Finding> {
  const reached = await reachModels(secrets, isOnline, io);
  const found = reached.map(({ text }) => text).join("; ");
  const fix = reached.find((one) => one.fix !== undefined)?.fix;
  if (fix !== undefined) return { status: "warning", found, fix };
  if (reached.some(({ isUsable }) => isUsable)) return { status: "ok", found };
  return {
    status: "warning",
    found: found === "" ? "no provider has a key, and no Ollama answers" : found,
    fix: `agents that ask a model need one: ${io.call(`secret set ${PROVIDERS[0]!.key}`, "")}, or start Ollama`,
  };
}

/** The providers that have a key or an address, and the Ollama of this machine. @param isOnline as of `checkModels`. */
export async function reachModels(
  secrets: SecretsFound,
  isOnline: boolean,
  io: Io,
): Promise<readonly Reached[]> {
  const providers = PROVIDERS.map((provider) => reachProvider(provider, secrets, isOnline, io));
  const reached = await Promise.all([...providers, reachOllama(isOnline, io)]);
  return reached.filter((one) => one !== undefined);
}

async function reachProvider(
  { name, key, variable, url, listUrl, headers }: Provider,
  secrets: SecretsFound,
  isOnline: boolean,
  io: Io,
): Promise<Reached | undefined> {
  const place = secrets.placeOf(key);
  const given = io.env[variable]?.trim() ?? "";
  if (place === undefined && given === "") return undefined;
  const base = given === "" ? url : given.replace(/\/+$/, "");
  if (!URL.canParse(base))
    return { text: `${name}: ${variable} is no address`, isUsable: false, fix: `correct ${variable}` };
  const { host, hostname } = new URL(base);
  const from = place === undefined ? "no key" : `key from ${place === "file" ? "the encrypted file" : place}`;
  const known = `${name} (${given === "" ? from : `${from}, at ${plainLine(host, 60)}`})`;
  if (!isOnline && !isLoopback(hostname))
    return { text: `${known}: not asked without --online`, isUsable: true };
  let value: string | undefined;
  try {
    value = place === undefined ? undefined : await secrets.value(key);
  } catch {
    return { text: `${known}: not asked, as the key needs a passphrase`, isUsable: true };
  }
  const answer = await askForJson(listUrl(base), {
    headers: value === undefined ? {} : headers(value),
    ms: isLoopback(hostname) ? LOCAL_MS : ONLINE_MS,
  });
  const replace = place === "keychain" || place === "file" ? io.call(`secret set ${key}`, "") : undefined;
  return reachedBy(known, answer, replace ?? `set ${key} to a valid key in the environment`);
}

/** @param keyFix how a person replaces a key that is refused. */
function reachedBy(known: string, answer: Answer, keyFix: string): Reached {
  if (answer.status === "silent")
    return { text: `${known}: ${answer.reason}`, isUsable: false, fix: "check the network and the address" };
  const { code } = answer;
  if (code === 401 || code === 403)
    return { text: `${known}: refuses the key`, isUsable: false, fix: keyFix };
  return code < 400
    ? { text: `${known}: answers`, isUsable: true }
    : { text: `${known}: HTTP ${code}`, isUsable: false, fix: "check the address" };
}

async function reachOllama(isOnline: boolean, { env }: Io): Promise<Reached | undefined> {
  const found = await askOllama(env, isOnline);
  if (found.status === "no_address")
    return { text: "Ollama: OLLAMA_HOST is no address", isUsable: false, fix: "correct OLLAMA_HOST" };
  const name = `Ollama (${plainLine(found.url.host, 60)})`;
  switch (found.status) {
    case "not_asked":
      return { text: `${name}: not asked without --online`, isUsable: true };
    case "silent":
      if ((env["OLLAMA_HOST"]?.trim() ?? "") === "") return undefined;
      return {
        text: `${name}: ${found.reason}`,
        isUsable: false,
        fix: "start Ollama, or correct OLLAMA_HOST",
      };
    case "answers": {
      const { models } = found;
      const has = models.length === 0 ? "no model" : `${count(models.length, "model")}: ${listed(models)}`;
      return { text: `${name}: answers, with ${has}`, isUsable: models.length > 0 };
    }
  }
}
