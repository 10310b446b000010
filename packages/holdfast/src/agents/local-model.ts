// `withLocalModel`: the environment for a run without a key, where an Ollama of this machine answers
// (`askOllama`).
//
// An Ollama takes the place of no model that somebody named, and of no provider that has a key.

import { dirname } from "node:path";
import { PROVIDER_KEYS, resolveModel, type AgentPlaces } from "@holdfast/agents";
import { HoldfastError } from "@holdfast/core";
import type { LocalModel } from "@holdfast/machine";
import { isLoopback } from "@holdfast/storage/coordinator-url";
import { layeredEnvironment } from "@holdfast/system";
import { askForJson } from "@holdfast/system/processes";
import type { Io } from "@holdfast/terminal/frame/command";
import { signInStore } from "@holdfast/machine/sign-in-store";

/** @returns `undefined` where the environment names a model, or no Ollama answers with one. */
export async function withLocalModel({ env, trustFile }: AgentPlaces): Promise<LocalModel | undefined> {
  if (namesModel(env)) return undefined; // An Ollama takes the place of no model that somebody named.
  const stored = await signInStore(dirname(trustFile), { env }).names();
  if (Object.values(PROVIDER_KEYS).some((name) => stored.includes(name))) return undefined;
  const found = await askOllama(env, false);
  const [model] = found.status === "answers" ? found.models : [];
  if (found.status !== "answers" || model === undefined) return undefined;
  return {
    env: layeredEnvironment(
      env,
      new Map([
        ["OPENAI_BASE_URL", `${found.url.origin}/v1`],
        ["HOLDFAST_MODEL", `compatible/${model}`],
      ]),
    ),
    note: `no provider has a key here: the model is ${model} of the Ollama at ${found.url.host}`,
  };
}

function namesModel(env: Io["env"]): boolean {
  if ((env["HOLDFAST_MODEL"] ?? "") !== "") return true;
  try {
    return resolveModel(env) !== undefined;
  } catch (error) {
    if (HoldfastError.is(error)) return true; // The environment is wrong, and the run says so itself.
    throw error;
  }
}

const LOCAL_MS = 1_000;
const ONLINE_MS = 5_000;
const OLLAMA_PORT = "11434";

export type OllamaFound =
  | { readonly status: "no_address" }
  /** It is on another machine, and those are not asked. */
  | { readonly status: "not_asked"; readonly url: URL }
  | { readonly status: "silent"; readonly url: URL; readonly reason: string }
  | { readonly status: "answers"; readonly url: URL; readonly models: readonly string[] };

/** @param isOnline whether an Ollama of another machine is asked. */
export async function askOllama(env: Io["env"], isOnline: boolean): Promise<OllamaFound> {
  const url = ollamaUrl(env["OLLAMA_HOST"]?.trim() ?? "");
  if (url === undefined) return { status: "no_address" };
  if (!isOnline && !isLoopback(url.hostname)) return { status: "not_asked", url };
  const ms = isLoopback(url.hostname) ? LOCAL_MS : ONLINE_MS;
  const answer = await askForJson(`${url.origin}/api/tags`, { ms });
  const body = answer.status === "answered" ? answer.body : undefined;
  const { models } = (body ?? {}) as { readonly models?: unknown };
  if (Array.isArray(models))
    return {
      status: "answers",
      url,
      models: models.map((model) => String((model as { name?: unknown } | null)?.name)),
    };
  return {
    status: "silent",
    url,
    reason: answer.status === "silent" ? answer.reason : `HTTP ${answer.code}`,
  };
}

/** OLLAMA_HOST as Ollama reads it: a host, with or without a scheme and a port. */
function ollamaUrl(given: string): URL | undefined {
  const hasScheme = /^https?:\/\//.test(given);
  const text = hasScheme ? given : `http://${given.startsWith(":") ? "127.0.0.1" : ""}${given}`;
  const full = given === "" ? `http://127.0.0.1:${OLLAMA_PORT}` : text;
  if (!URL.canParse(full)) return undefined;
  const url = new URL(full);
  if (url.port === "" && !hasScheme) url.port = OLLAMA_PORT;
  if (url.hostname === "0.0.0.0") url.hostname = "127.0.0.1"; // The address that a server binds, and no client calls.
  return url;
}
