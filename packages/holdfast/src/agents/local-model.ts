// `withLocalModel`: the environment for a run without a key, where an Ollama of this machine answers.
//
//   local-model-1. An Ollama takes the place of no model that somebody named, and of no provider that has a key.

import { dirname } from "node:path";
import { PROVIDER_KEYS, resolveModel, type AgentPlaces } from "@holdfast/agents";
import { HoldfastError } from "@holdfast/core";
import type { LocalModel } from "@holdfast/machine";
import { layeredEnvironment } from "@holdfast/system";
import { askOllama } from "../outside/ollama.ts";
import type { Io } from "../frame/command.ts";
import { signInStore } from "../secrets/sign-in-store.ts";

/** @returns `undefined` where the environment names a model, or no Ollama answers with one. */
export async function withLocalModel({ env, trustFile }: AgentPlaces): Promise<LocalModel | undefined> {
  if (namesModel(env)) return undefined; // local-model-1.
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
