// `findModel`: the model of a session.

import {
  fullModelName,
  keyAdvice,
  PROVIDER_KEYS,
  resolveModel,
  type ModelEnvironment,
  type ModelProvider,
} from "@holdfast/agents";
import { PauseError } from "@holdfast/core";

/** @param wanted the full name of a model; `undefined` for the one that the environment chooses. */
export function findModel(wanted: string | undefined, env: ModelEnvironment): ModelProvider {
  const isScripted = wanted?.startsWith("scripted/") === true;
  const model = resolveModel(
    wanted === undefined || isScripted ? env : { ...env, HOLDFAST_MODEL: fullModelName(wanted) },
  );
  if (model !== undefined && (!isScripted || model.isScripted)) return model;
  if (isScripted)
    throw new PauseError("model_auth", "the session works with a scripted model, and this process has none", {
      fix: "continue it with `holdfast resume ID --scripted`, or with `--replies FILE`",
      pause: { reason: "auth_required" },
    });
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
