// The adapter for programs that speak the Agent Client Protocol (`AcpAgent`), such as OpenCode and Gemini
// CLI. A turn is in `acp-turn.ts`.
//
//   - A process carries out one turn, and its session is resumed by the id that the agent gave to it. No
//     second prompt is sent while one is at work: agents do five different things with it. It is sent after
//     the answer, in the same process.
//   acp-agent-2. The program's own statement of its abilities counts, unless the table of agents
//       (`ACP_AGENTS`) says that it is wrong.
//   acp-agent-3. An open question is answered with `cancelled` when its turn is aborted, as the protocol
//       asks.
//   acp-agent-4. No output grows without a limit, and keys are replaced in all that the program writes.
//   acp-agent-5. The model and the mode are set again in every turn, before its prompt (`acp-options.ts`).
//   acp-agent-6. A message joins the turn where the program offers the extension for that
//       (`_session/steering`). Otherwise the turn is interrupted for it, if the program can resume.
//   acp-agent-7. A resumed program whose updates are all of another session has opened that one, and does not
//       know ours.
//
// Neither files nor terminals are offered to the program: it uses its own.

import { defined } from "@holdfast/core";
import { endTagged, ProcessSupervisor, Redactor, scrubEnvironment, type Environment } from "@holdfast/system";

import { hostEnvironment } from "@holdfast/workspace";
import { AGENT_PROCESS, type StopLimits } from "../../session/program/agent-process.ts";
import { keyAccess, withGateway, withoutKeysOf, type KeyAccess } from "../../session/keys/program-keys.ts";
import { tracedVariables } from "../../session/receipt/traced-variables.ts";
import type {
  AgentTraces,
  ChosenProgram,
  ExternalAgent,
  ExternalAgentCapabilities,
  ExternalAgentProtocol,
  ExternalTurn,
  OwnFolders,
  PermissionRequest,
  RuledCall,
} from "../../session/external-agent-protocol.ts";
import {
  chosenFolders,
  chosenProgram,
  chosenVariables,
  findProgram,
  locateProgram,
} from "../../session/program/find-program.ts";
import { unknownSession } from "../lines/unknown-session.ts";
import { choicesOf } from "./acp-options.ts";
import type { AcpAgentFacts } from "./acp-quirks.ts";
import { acpCall } from "./acp-calls.ts";
import { AcpTurn } from "./acp-turn.ts";
import { AcpWire } from "./acp-wire.ts";

/** Options of `new AcpAgent`. */
export interface AcpAgentOptions {
  readonly facts: AcpAgentFacts;
  /** The environment of this process by default. */
  readonly environment?: Environment;
  /** The folder in which the program is asked for its version. */
  readonly folder: string;
  readonly stopLimits?: StopLimits | undefined;
}

/** The adapter for a program that speaks the Agent Client Protocol. */
export class AcpAgent implements ExternalAgentProtocol {
  readonly name: string;
  readonly keys: readonly string[];
  readonly #facts: AcpAgentFacts;
  readonly #environment: Environment;
  readonly #folder: string;
  readonly #supervisor: ProcessSupervisor;
  readonly #stopLimits: StopLimits;

  constructor({ facts, environment = hostEnvironment, folder, stopLimits = AGENT_PROCESS }: AcpAgentOptions) {
    this.name = facts.name;
    this.keys = facts.keys;
    this.#facts = facts;
    this.#environment = environment;
    this.#folder = folder;
    this.#supervisor = new ProcessSupervisor({ environment, namespaces: "never" });
    this.#stopLimits = stopLimits;
  }

  capabilities(): ExternalAgentCapabilities {
    const { resumes, takesModel = true, reportsUsage, signIn, profileFields } = this.#facts;
    return {
      steer: resumes ? "restart" : "none", // acp-agent-6.
      followUp: "queue",
      resume: resumes ? "id" : "none",
      usage: reportsUsage ? "turn" : "none",
      model: takesModel,
      ...defined({ signIn, profileFields }),
    };
  }

  find(chosen?: ChosenProgram): Promise<{ readonly program: string; readonly version: string }> {
    const wanted = chosenProgram(this.#facts.program, chosen);
    const env = withoutKeysOf(this.#env(chosen), [...this.keys, ...(chosen?.keys ?? [])]);
    return findProgram(wanted, this.#supervisor, env, this.#folder);
  }

  locate(chosen?: ChosenProgram): string {
    return locateProgram(chosenProgram(this.#facts.program, chosen), this.#env(), this.#folder);
  }

  start(turn: ExternalTurn): Promise<ExternalAgent> {
    return this.#begin(turn, null);
  }

  sendMessage(turn: ExternalTurn): Promise<ExternalAgent> {
    return this.resume(turn);
  }

  /** external-agent-protocol-4. A session without an id, and one of a program that cannot resume, is not known. */
  resume(turn: ExternalTurn): Promise<ExternalAgent> {
    if (turn.boundId === null || !this.#facts.resumes) return Promise.resolve(unknownSession());
    return this.#begin(turn, turn.boundId);
  }

  ruledCall(call: Pick<PermissionRequest, "tool" | "input">, folder: string): RuledCall {
    return acpCall(call, folder);
  }

  /** Where these programs store their sessions is their own matter, and changes with their versions. */
  traces({ intent }: Pick<ExternalTurn, "intent">): AgentTraces {
    const { variables, keys, mcpFiles } = this.#facts;
    return {
      mcpFiles: mcpFiles?.(this.#environment, intent.folder) ?? [],
      environment: tracedVariables(
        this.#environment,
        [...variables, ...(intent.profile?.variables ?? [])],
        [...keys, ...(intent.profile?.keys ?? [])],
      ),
    };
  }

  keyAccess(chosen?: ChosenProgram): KeyAccess {
    return keyAccess(this.#facts, this.#environment, chosen);
  }

  ownFolders(chosen?: ChosenProgram): OwnFolders | undefined {
    return chosenFolders(this.#facts.ownFolders?.(this.#environment), chosen);
  }

  async endLost(tag: string): Promise<void> {
    await endTagged(tag);
  }

  #env(chosen?: ChosenProgram): Record<string, string> {
    const { variables, settings } = this.#facts;
    const names = [...chosenVariables(chosen), ...variables];
    const passed = Object.fromEntries(names.map((name) => [name, this.#environment[name]]));
    return scrubEnvironment(this.#environment, passed, settings);
  }

  async #begin(
    { intent, prompt, tag, wayBack, gateway, onLine, enclose = (argv) => argv }: ExternalTurn,
    resumedId: string | null,
  ): Promise<ExternalAgent> {
    const sdk = await import("@agentclientprotocol/sdk");
    const keys = [...this.#facts.keys, ...(intent.profile?.keys ?? [])].flatMap(
      (name) => this.#environment[name] ?? [],
    );
    const tokens = [wayBack, gateway].flatMap((one) => one?.token ?? []);
    const wire = new AcpWire(new Redactor([...keys, ...tokens]), onLine);
    const set = gateway && this.#facts.programKeys?.settings?.(gateway, this.#environment);
    const env = withGateway(this.#env(intent.profile), gateway, set?.env);
    const process = await this.#supervisor.start({
      argv: enclose([intent.program, ...this.#facts.args], env, this.#facts.reads),
      cwd: intent.folder,
      env,
      keepsInputOpen: true,
      needsOutput: true,
      outputBytes: AGENT_PROCESS.outputBytes,
      killGraceMs: AGENT_PROCESS.graceMs,
      tag,
      onOutput: (stream, text) => {
        if (stream === "stdout") wire.push(text);
      },
    });
    const { folder } = intent;
    const choices = choicesOf(intent, this.#facts.modes);
    return new AcpTurn(process, wire, {
      sdk,
      facts: this.#facts,
      folder,
      choices,
      prompt,
      resumedId,
      wayBack,
      limits: this.#stopLimits,
    });
  }
}
