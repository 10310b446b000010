// `AgentFileRun`: one call of `runAgentFile`, after its file was loaded.

import { join } from "node:path";
import { modelPrices } from "@holdfast/agents/prices";
import {
  defined,
  HoldfastError,
  UsageError,
  type AgentStorage,
  type GivenEnvironment,
  type Wait,
} from "@holdfast/core";
import { createRuntime, type Agent, type Runtime } from "@holdfast/runtime";
import { dataFolder, layeredEnvironment, wantedSecretsOf, type Environment } from "@holdfast/system";
import { newMachine } from "../../agents/this-machine.ts";
import { signInStore } from "@holdfast/machine/sign-in-store";
import { loadAgent, type LoadedAgent } from "../load-agent.ts";
import { limitsOf } from "../starting/start-plan.ts";
import type { AgentQuestion, RunAgentFileOptions } from "./run-options.ts";

interface Place {
  readonly cwd: string;
  readonly env: Environment;
}

export class AgentFileRun {
  readonly #loaded: LoadedAgent;
  readonly #agent: Agent;
  readonly #secrets: ReadonlyMap<string, string>;

  private constructor(loaded: LoadedAgent, secrets: ReadonlyMap<string, string>) {
    this.#loaded = loaded;
    this.#agent = loaded.agent;
    this.#secrets = secrets;
  }

  /** @throws HoldfastError when the file cannot be used, or a secret that it declares has no value. */
  static async load(
    nameOrPath: string,
    { cwd, env }: Place,
    given: GivenEnvironment | undefined,
  ): Promise<AgentFileRun> {
    const secrets = new Map<string, string>();
    const place = { cwd, env: layeredEnvironment(env, secrets) };
    const loaded = await loadAgent(nameOrPath, { ...place, given, machine: newMachine(place) });
    await takeSecrets(loaded.agent, env, secrets);
    return new AgentFileRun(loaded, secrets);
  }

  async over(storage: AgentStorage, input: unknown, options: RunAgentFileOptions): Promise<unknown> {
    const { sessionId, budget, environment, answer, database } = options;
    const failed = Promise.withResolvers<never>();
    failed.promise.catch(() => {}); // An answer may fail before anybody waits for the result.
    const asked = new Set<string>();
    const ask = (ofSession: string, wait: Wait): void => {
      if (wait.type !== "input" || asked.has(`${ofSession} ${wait.id}`)) return;
      asked.add(`${ofSession} ${wait.id}`);
      if (answer === undefined && database !== undefined) return; // Another process answers it.
      const question = { sessionId: ofSession, prompt: wait.prompt, id: wait.id };
      void answered(runtime, question, answer).catch(failed.reject);
    };
    const runtime = createRuntime({
      storage,
      agents: [this.#agent],
      prices: modelPrices(),
      secrets: this.#secrets,
      showsTexts: true,
      tracer: {
        trace: (event) => {
          if (event.type === "waiting") for (const wait of event.waits) ask(event.sessionId, wait);
        },
      },
    });
    try {
      const given = {
        ...limitsOf(this.#loaded.record, input),
        ...defined({ sessionId, budget, environment }),
      };
      const handle = await runtime.start(this.#agent, input, given);
      return await Promise.race([handle.result(), failed.promise]);
    } finally {
      await runtime.close();
    }
  }
}

async function answered(
  runtime: Runtime,
  question: AgentQuestion,
  answer: RunAgentFileOptions["answer"],
): Promise<void> {
  const { sessionId, prompt, id } = question;
  if (answer === undefined)
    throw new UsageError("the agent asks a person, and nobody can answer", {
      at: `runAgentFile: session ${sessionId}`,
      got: prompt,
      expected: "an answer",
      fix: "give `answer`, or `database`, so that `holdfast inbox --db FILE` answers it",
    });
  await runtime.answer(sessionId, await answer(question), { question: id });
}

/** From the variables, and else from the stored secrets of the user, who is asked nothing. */
async function takeSecrets(agent: Agent, env: Environment, values: Map<string, string>): Promise<void> {
  const { required, optional } = wantedSecretsOf([agent]);
  const store = signInStore(dataFolder({ env }), { env });
  const take = async (name: string): Promise<boolean> => {
    const value = env[name] ?? ((await store.names()).includes(name) ? await store.read(name) : undefined);
    if (value === undefined || value === "") return false;
    values.set(name, value);
    return true;
  };
  for (const { anyOf } of optional) for (const name of anyOf) if (await take(name)) break;
  const missing: string[] = [];
  for (const name of required) if (!(await take(name))) missing.push(name);
  if (missing.length > 0)
    throw new HoldfastError("secret_missing", `the agent needs ${missing.join(", ")}, which is not set`, {
      at: join(dataFolder({ env }), "secrets.json"),
      fix: `set it in the environment, or store it: \`holdfast secret set ${missing[0]}\``,
    });
}
