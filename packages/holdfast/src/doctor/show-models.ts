// `holdfast models`: the aliases with their prices and context windows, and the providers that can be
// reached.

import { contextWindow, MODEL_ALIASES, modelPrices } from "@holdfast/agents";
import { reachModels, type Reached } from "./model-checks.ts";
import { lookAtSecrets } from "./secret-checks.ts";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { plainLine, table } from "@holdfast/terminal/frame/plain-text";

interface ShownModel {
  readonly alias: string;
  readonly model: string;
  /** Dollars per million tokens; `null` where the price is not known. */
  readonly inputUsd: number | null;
  readonly outputUsd: number | null;
  readonly contextWindow: number | null;
}

export async function showModels(args: Arguments, io: Io): Promise<number> {
  const models = Object.entries(MODEL_ALIASES).map(([alias, model]) => shown(alias, model));
  const providers = await reachModels(await lookAtSecrets(io), args.has("online"), io);
  io.show({ models, providers }, [...modelLines(models), "", ...providerLines(providers, io)].join("\n"));
  return 0;
}

function shown(alias: string, model: string): ShownModel {
  return {
    alias,
    model,
    inputUsd: perMillion(model, "inputTokens"),
    outputUsd: perMillion(model, "outputTokens"),
    contextWindow: contextWindow(model) ?? null,
  };
}

/** By the price of a small call, because some prices rise with the length of the input. */
function perMillion(model: string, of: "inputTokens" | "outputTokens"): number | null {
  const cost = modelPrices()({ model, inputTokens: 0, outputTokens: 0, [of]: 1_000 });
  return cost === undefined ? null : cost / 1_000;
}

function modelLines(models: readonly ShownModel[]): readonly string[] {
  const usd = (amount: number | null): string => (amount === null ? "?" : `$${amount}`);
  return table([
    ["ALIAS", "MODEL", "INPUT/MTOK", "OUTPUT/MTOK", "CONTEXT"],
    ...models.map(({ alias, model, inputUsd, outputUsd, contextWindow: tokens }) => [
      alias,
      model,
      usd(inputUsd),
      usd(outputUsd),
      tokens === null ? "?" : String(tokens),
    ]),
  ]);
}

function providerLines(providers: readonly Reached[], io: Io): readonly string[] {
  const { done, warn } = io.results.symbols;
  if (providers.length === 0)
    return [
      `${warn} no provider has a key, and no Ollama answers: ${io.call("secret set ANTHROPIC_API_KEY", "")}`,
    ];
  return providers.map(({ text, isUsable }) => `${isUsable ? done : warn} ${plainLine(text, 300)}`);
}
