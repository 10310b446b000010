// `withLocalModel`: the environment for a run without a key, where an Ollama of this machine answers. `findModel`: the model of a session.
//
//   local-model-1. An Ollama takes the place of no model that somebody named, and of no provider that has a key.

import { dirname } from "node:path";
import {
  fullModelName,
  keyAdvice,
  PROVIDER_KEYS,
  resolveModel,
  type AgentPlaces,
  type ModelEnvironment,
  type ModelProvider,
} from "@holdfast/agents";
import { HoldfastError, PauseError } from "@holdfast/core";
import { layeredEnvironment } from "@holdfast/system";
import { askOllama } from "../../outside/ollama.ts";
import type { Io } from "../../frame/command.ts";
import { storedNames } from "../../secrets/sign-in-store.ts";

export interface FoundModel {
  readonly env: Io["env"];
  /** For the person who starts the run. */
  readonly note: string;
}

/** @returns `undefined` where the environment names a model, or no Ollama answers with one. */
export async function withLocalModel({ env, trustFile }: AgentPlaces): Promise<FoundModel | undefined> {
  if (namesModel(env)) return undefined; // local-model-1.
  const stored = await storedNames(dirname(trustFile), env);
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

/** @param wanted the full name of a model; `undefined` for the one that the environment chooses. */
export function findModel(wanted: string | undefined, env: ModelEnvironment): ModelProvider {
  const isScripted = wanted?.startsWith("scripted/") === true;
  const model = resolveModel(
    wanted === undefined || isScripted ? env : { ...env, HOLDFAST_MODEL: fullModelName(wanted) },
  );
  if (model !== undefined && (!isScripted || model.isScripted)) return model;
  const works = wanted === undefined ? "" : ` (the session works with ${wanted})`;
  // A failed task records the message alone, so the message says what to do.
  throw new PauseError(
    "model_auth",
    `no model is configured${works}: ANTHROPIC_API_KEY, OPENAI_API_KEY and GEMINI_API_KEY are not set, ` +
      "and no server such as Ollama is named by OPENAI_BASE_URL and HOLDFAST_MODEL",
    {
      fix: `${keyAdvice(PROVIDER_KEYS.anthropic)}; \`holdfast models\` shows what can be reached`,
      pause: { reason: "auth_required" },
    },
  );
}
