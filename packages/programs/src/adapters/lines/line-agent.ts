// `LineAgent`: the adapter for a program that speaks JSON lines on its standard streams. The program is
// described by data (`LineAgentFacts`).
//
// Without PID namespaces: the tools of an agent are the user's. The turn and its promises are in
// `line-turn.ts`.

import { defined } from "@holdfast/core";
import { Redactor, scrubEnvironment, type Environment } from "@holdfast/system";
import { endTagged, ProcessSupervisor } from "@holdfast/system/processes";

import { hostEnvironment } from "@holdfast/workspace";
import type {
  AgentTraces,
  ChosenProgram,
  ExternalAgent,
  ExternalAgentCapabilities,
  ExternalAgentProtocol,
  ExternalTurn,
  OwnFolders,
  PermissionRequest,
  RecordedCalls,
  RuledCall,
} from "../../session/external-agent-protocol.ts";
import {
  chosenFolders,
  chosenProgram,
  chosenVariables,
  findProgram,
  locateProgram,
  type WantedProgram,
} from "../../session/program/find-program.ts";
import {
  keyAccess,
  unpricedApis,
  withGateway,
  withoutKeysOf,
  type KeyAccess,
  type ProgramKeys,
} from "../../session/keys/program-keys.ts";
import type { WayBack } from "../../session/way-back/way-back.ts";
import { tracedVariables } from "../../session/receipt/traced-variables.ts";
import { unknownSession } from "../../session/program/agent-turn.ts";
import { KeptPrograms } from "../../session/program/kept-programs.ts";
import type { Fields } from "../../session/fields.ts";
import type { DialogueTurn, MakeDialogue, ToolFile } from "./line-dialogue.ts";
import { LineProgram, STOP_LIMITS, type StopLimits } from "./line-program.ts";
import { LineTurn } from "./line-turn.ts";
import { LineWire } from "./line-wire.ts";
import { ProgramAnswers } from "../../session/program/program-answers.ts";

/** The output that is kept for errors. */
const OUTPUT_BYTES = 128 * 1024;
/** Programs that wait for the next turn of their sessions. Each takes some hundred megabytes. */
const KEPT_MAX = 8;

/** How the program of a turn is started. */
interface Launch {
  readonly isResumed: boolean;
  /** The path of the file with the tools of the session. */
  readonly toolFile: string | undefined;
  /** The text in which the program lists its options. */
  readonly help: () => Promise<string>;
}

/**
 * The facts of a program, by which its adapter starts it. A forgotten optional fact is the careful one, and its
 * comment says what the program then lacks.
 *
 * A program learns of the tools of its session (external-agent-protocol-10) in one of four ways. The facts have
 * `toolFile` or `toolVariables`, or a message of the dialogue names the MCP server of `turn.wayBack`. In the
 * fourth way the program has requests of its own, and the dialogue carries them out by `turn.wayBack.call`.
 */
export interface LineAgentFacts {
  readonly name: string;
  readonly program: WantedProgram;
  readonly capabilities: ExternalAgentCapabilities;
  /**
   * The arguments of the program for a turn. They, or the dialogue, carry out the permission mode
   * (`intent.permissionMode`) and the model: nothing else does.
   */
  readonly argumentsOf: (
    turn: ExternalTurn,
    launch: Launch,
  ) => readonly string[] | Promise<readonly string[]>;
  /** Variables that the program gets of the user's environment, besides those of every process. */
  readonly variables: readonly string[];
  /** The names of variables whose values are keys. Keys are replaced in everything that is recorded. */
  readonly keys: readonly string[];
  /** How the gateway of a turn holds its keys. Absent for a program that needs them itself, whose commands can read them. */
  readonly programKeys?: ProgramKeys;
  /** As in `DialogueTurn`, by the environment of the program. Absent where the keys in the gateway say it. */
  readonly unpriced?: (environment: Environment) => readonly string[];
  /** Variables with fixed values, such as one that switches updates off. */
  readonly settings: Readonly<Record<string, string>>;
  /** Variables that tell the program of the tools of the session. They may not hold the token, because its commands could read it. */
  readonly toolVariables?: (wayBack: WayBack) => Readonly<Record<string, string>>;
  /** Writes a file that tells the program of the tools of the session. `writeWayBack` writes one in the form of `.mcp.json`. */
  readonly toolFile?: (wayBack: WayBack) => ToolFile;
  /**
   * Whether the program opens its session under the id of our choice (`intent.agentSessionId`), and is resumed
   * by it. Otherwise the program chooses the id, the dialogue names it as `boundId` in `session_started`, and a
   * session that ended before has no id to resume.
   */
  readonly takesOurId: boolean;
  readonly dialogue: MakeDialogue;
  /** From the end of a turn to SIGTERM, for a program that needs more than two seconds to end. */
  readonly exitMs?: number;
  /** From a request to interrupt to the end of the input, for a program that answers it later than in half a second. */
  readonly interruptMs?: number;
  /**
   * Where the program stores its sessions, and its files with MCP servers. Absent where that is not known:
   * then no receipt sees that one of these files is lost, and there is no copy of it.
   */
  readonly files?: (environment: Environment, id: string, folder: string) => Omit<AgentTraces, "environment">;
  /**
   * As in the port. Absent for a program without a record in the file of its session (`files`). The usage of a
   * turn that was killed is unknown then. @param unpriced as in `DialogueTurn`.
   */
  readonly recordedCalls?: (
    lines: readonly Fields[],
    from: number,
    unpriced: readonly string[],
  ) => RecordedCalls;
  /** The places of the program itself besides its folder. It reads them in a sandbox. */
  readonly reads?: readonly string[];
  /** The folders that it needs in a sandbox. Absent where they are not known: then it works in none. */
  readonly ownFolders?: (environment: Environment) => OwnFolders;
  readonly ruledCall: (call: Pick<PermissionRequest, "tool" | "input">, folder: string) => RuledCall;
}

/** Options of `new LineAgent`. */
export interface LineAgentOptions {
  readonly facts: LineAgentFacts;
  /** The environment of this process by default. */
  readonly environment?: Environment;
  /** The folder in which the program is asked for its version. */
  readonly folder: string;
  /** How long the steps of an abort take. */
  readonly stopLimits?: StopLimits | undefined;
}

/** The adapter for a program that writes lines of JSON, such as Codex and Pi. */
export class LineAgent implements ExternalAgentProtocol {
  readonly name: string;
  readonly keys: readonly string[];
  readonly recordedCalls?: NonNullable<ExternalAgentProtocol["recordedCalls"]>;
  readonly #facts: LineAgentFacts;
  readonly #environment: Environment;
  readonly #folder: string;
  readonly #stopLimits: StopLimits | undefined;
  readonly #supervisor: ProcessSupervisor;
  readonly #answers: ProgramAnswers;
  readonly #kept = new KeptPrograms<LineProgram>(KEPT_MAX);

  constructor({ facts, environment = hostEnvironment, folder, stopLimits }: LineAgentOptions) {
    this.name = facts.name;
    this.keys = facts.keys;
    this.#facts = facts;
    this.#environment = environment;
    this.#folder = folder;
    this.#stopLimits = stopLimits;
    this.#supervisor = new ProcessSupervisor({ environment, namespaces: "never" });
    this.#answers = new ProgramAnswers(this.#supervisor);
    const { recordedCalls } = facts;
    if (recordedCalls !== undefined)
      this.recordedCalls = (lines, from, chosen) => recordedCalls(lines, from, this.#unpriced(chosen));
  }

  capabilities(chosen?: ChosenProgram): ExternalAgentCapabilities {
    const { pricePrefix, ...others } = this.#facts.capabilities;
    const isPriced = pricePrefix !== undefined && this.#unpriced(chosen).length === 0;
    return { ...others, ...(isPriced ? { pricePrefix } : {}) };
  }

  find(chosen?: ChosenProgram): Promise<{ readonly program: string; readonly version: string }> {
    const wanted = chosenProgram(this.#facts.program, chosen);
    const env = withoutKeysOf(this.#env(chosen), [...this.keys, ...(chosen?.keys ?? [])]);
    return findProgram(wanted, this.#answers, env, this.#folder);
  }

  locate(chosen?: ChosenProgram): string {
    return locateProgram(chosenProgram(this.#facts.program, chosen), this.#env(), this.#folder);
  }

  start(turn: ExternalTurn): Promise<ExternalAgent> {
    return this.#begin(turn, { resumedId: null, isCutOff: false });
  }

  async sendMessage(turn: ExternalTurn): Promise<ExternalAgent> {
    return this.#reopen(turn, false);
  }

  async resume(turn: ExternalTurn): Promise<ExternalAgent> {
    return this.#reopen(turn, true);
  }

  /** external-agent-protocol-4. A session without an id, and one of a program that cannot resume, is not known. */
  #reopen(turn: ExternalTurn, isCutOff: boolean): ExternalAgent | Promise<ExternalAgent> {
    const { takesOurId, capabilities } = this.#facts;
    const resumedId = takesOurId ? turn.intent.agentSessionId : turn.boundId;
    if (resumedId === null || capabilities.resume === "none") return unknownSession();
    return this.#begin(turn, { resumedId, isCutOff });
  }

  /**
   * Begins the turn with the program that waits for it. A program is ended first where its session was cut off
   * or begins again, and where it would be started in another way now.
   */
  async #continue(
    turn: ExternalTurn,
    { resumedId, isCutOff }: Pick<DialogueTurn, "resumedId" | "isCutOff">,
  ): Promise<ExternalAgent | undefined> {
    const program = this.#kept.take(turn.tag);
    if (program === undefined) return undefined;
    if (resumedId !== null && !isCutOff && program.launch === launchOf(turn)) {
      program.wire.onLine = turn.onLine;
      return this.#turnOf(program, turn, turn);
    }
    await program.stop("its session begins otherwise");
    return undefined;
  }

  #turnOf(
    program: LineProgram,
    { tag, keepMs = 0, enclose }: ExternalTurn,
    next: Partial<Pick<ExternalTurn, "prompt" | "isCommand">> = {},
  ): LineTurn {
    // The places that a sandbox guards are looked up at the start of a program.
    const isKept = keepMs > 0 && enclose === undefined;
    const keep = isKept ? () => this.#kept.keep(tag, program, keepMs) : undefined;
    return new LineTurn(program, {
      ...defined({ prompt: next.prompt, isCommand: next.isCommand }),
      keep,
      interruptMs: this.#facts.interruptMs,
    });
  }

  ruledCall(call: Pick<PermissionRequest, "tool" | "input">, folder: string): RuledCall {
    return this.#facts.ruledCall(call, folder);
  }

  traces({ intent, boundId }: Pick<ExternalTurn, "intent" | "boundId">): AgentTraces | undefined {
    const { files, variables, keys, takesOurId } = this.#facts;
    const id = (takesOurId ? null : boundId) ?? intent.agentSessionId;
    if (files === undefined) return undefined;
    const { mcpFile = null, variables: ownVariables = [], keys: ownKeys = [] } = intent.profile ?? {};
    const { mcpFiles, ...sessions } = files(this.#environment, id, intent.folder);
    return {
      ...sessions,
      mcpFiles: [...mcpFiles, ...(mcpFile === null ? [] : [mcpFile])],
      environment: tracedVariables(this.#environment, [...variables, ...ownVariables], [...keys, ...ownKeys]),
    };
  }

  keyAccess(chosen?: ChosenProgram): KeyAccess {
    return keyAccess(this.#facts, this.#environment, chosen);
  }

  #unpriced(chosen?: ChosenProgram): readonly string[] {
    return this.#facts.unpriced?.(this.#env(chosen)) ?? unpricedApis(this.keyAccess(chosen).byGateway);
  }

  ownFolders(chosen?: ChosenProgram): OwnFolders | undefined {
    return chosenFolders(this.#facts.ownFolders?.(this.#environment), chosen);
  }

  async endLost(tag: string): Promise<void> {
    if (!this.#kept.has(tag)) await endTagged(tag);
  }

  endWaiting(tag: string): Promise<void> {
    return this.#kept.end(tag, "its session needs it no more");
  }

  /** Ends the programs that wait for the next turns of their sessions. Our process stays alive for them. */
  close(): Promise<void> {
    return this.#kept.close("its adapter is closed");
  }

  #env(chosen?: ChosenProgram): Record<string, string> {
    const { variables, settings } = this.#facts;
    const names = [...chosenVariables(chosen), ...variables];
    const passed = Object.fromEntries(names.map((name) => [name, this.#environment[name]]));
    return scrubEnvironment(this.#environment, passed, settings);
  }

  async #begin(
    turn: ExternalTurn,
    opening: Pick<DialogueTurn, "resumedId" | "isCutOff">,
  ): Promise<ExternalAgent> {
    const kept = await this.#continue(turn, opening);
    if (kept !== undefined) return kept;
    const { intent, prompt, isCommand, tag, wayBack, gateway, onLine, enclose = (argv) => argv } = turn;
    const { argumentsOf, keys, dialogue, reads = [], toolFile, toolVariables, programKeys } = this.#facts;
    const secrets = [...keys, ...(intent.profile?.keys ?? [])].flatMap(
      (name) => this.#environment[name] ?? [],
    );
    const tokens = [wayBack, gateway].flatMap((one) => one?.token ?? []);
    const wire = new LineWire(new Redactor([...secrets, ...tokens]), onLine);
    const set = gateway && programKeys?.settings?.(gateway, this.#environment);
    const own = this.#env(intent.profile);
    const env = {
      ...withGateway(own, gateway, set?.env),
      ...(wayBack === undefined ? {} : toolVariables?.(wayBack)),
    };
    const file = wayBack && toolFile?.(wayBack);
    const args = await argumentsOf(turn, {
      isResumed: opening.resumedId !== null,
      toolFile: file?.path,
      help: async () =>
        (await this.#answers.of(intent.program, "--help", { env, cwd: intent.folder })).stdout,
    });
    const process = await this.#supervisor.start({
      argv: enclose([intent.program, ...(set?.args ?? []), ...args], env, [
        ...reads,
        ...(file === undefined ? [] : [file.path]),
      ]),
      cwd: intent.folder,
      env,
      keepsInputOpen: true,
      needsOutput: true,
      outputBytes: OUTPUT_BYTES,
      killGraceMs: STOP_LIMITS.graceMs,
      tag,
      onOutput: (stream, text) => {
        if (stream === "stdout") wire.push(text);
      },
    });
    void process.ended.then(() => file?.remove());
    const unpriced = this.#facts.unpriced?.(own) ?? unpricedApis(gateway?.held ?? []);
    const program = new LineProgram(process, wire, {
      make: dialogue,
      turn: { ...intent, prompt, isCommand, ...opening, wayBack, toolFile: file, unpriced },
      limits: this.#stopLimits,
      exitMs: this.#facts.exitMs,
      launch: launchOf(turn),
    });
    return this.#turnOf(program, turn);
  }
}

/** All of a turn by which its program is started. A program's own limit of costs counts from its start. */
function launchOf({ intent, wayBack, gateway, costMicroUsdMax }: ExternalTurn): string {
  return JSON.stringify([intent, wayBack?.token, gateway?.token, costMicroUsdMax]);
}
