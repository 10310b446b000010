// Which model the example works with: the one the environment names, or else a script.

import { resolveModel, scriptedModel, type ModelEnvironment, type ModelProvider } from "@holdfast/agents";
import { startScriptedModelServer } from "@holdfast/testkit";
import { HoldfastError } from "holdfast";
import { fixtureScript } from "./script.ts";

export const SCRIPT_NOTICE =
  "No model key is set, so a SCRIPTED model answers: a server on this machine whose replies were written in advance for the\n" +
  "example repository. Everything else is real. Set ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENAI_BASE_URL for a real model.";

/** The short notice, for a session that resumes. */
export const SCRIPT_REMINDER = "A scripted model answers, as no model key is set.";

/** The model that the environment names, or else the script. */
export function chooseModel(env: ModelEnvironment): ModelProvider {
  return resolveModel(env) ?? localScript(Number(env["HOLDFAST_SCRIPTED_PAUSE_MS"] ?? 0));
}

/**
 * The model for a session that has worked with one before.
 *
 * @param wanted as `provider/model`. A session of a real model does not go on with a script only because
 *   another terminal has no key.
 */
export function chooseModelAgain(env: ModelEnvironment, wanted: string | undefined): ModelProvider {
  const model = chooseModel(env);
  if (!model.isScripted || wanted === undefined || wanted.startsWith(`${model.provider}/`)) return model;
  throw new HoldfastError("model_auth", `this session works with ${wanted}, and no key for it is set here`, {
    fix: "set ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENAI_BASE_URL as before, and resume it",
  });
}

/** A scripted model whose server lives for one call: nothing is left to be closed, and any process can answer any turn. */
function localScript(chunkDelayMs: number): ModelProvider {
  const named = scriptedModel("http://127.0.0.1"); // For its names; nobody is asked there.
  return {
    provider: named.provider,
    model: named.model,
    isScripted: true,
    isPriced: false,
    describe: () => named.describe(),
    generate: async (request, observer) => {
      const server = await startScriptedModelServer({ script: fixtureScript, chunkDelayMs });
      try {
        return await scriptedModel(server.url).generate(request, observer);
      } finally {
        await server.close();
      }
    },
  };
}
