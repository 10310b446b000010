// `ChildCreation`: the session that is created for a child or a successor, from what its agent was asked for.
//
//   - A child's id is made of the position that asked for it, so replay finds the same child.
//   - The hash of an ask holds what the author gave, and nothing of this process or this machine.

import { callerLine } from "../errors/author-line.ts";
import { UsageError } from "../errors/errors.ts";
import { isName, positionId } from "../ids.ts";
import { encodeJson, type JsonText } from "../json/json.ts";
import { shown } from "../options.ts";
import { at, limitReached } from "../replay/faults.ts";
import type { KernelParts } from "../replay/turn.ts";
import type { Budget } from "../budget/budget.ts";
import { checkBudget } from "../budget/check-budget.ts";
import type { CreateSession } from "../session/changes.ts";
import {
  type AgentRef,
  type ParentEndPolicy,
  type ParentNotice,
  type ParentRef,
  type Persistence,
  type SharedContext,
} from "../session/session.ts";
import { checkTimeout } from "./checks.ts";
import type { SessionRelations } from "./session-relations.ts";

/** An agent and its place: this machine, or any that has it. Without a coordinator: this process. */
export interface AgentMode<Input = unknown, Output = unknown> {
  readonly type: "local" | "remote";
  /** The name of the agent. */
  readonly name: string;
  /** The version of an agent that may be unknown here. */
  readonly version?: string;
  readonly types?: { readonly input: Input; readonly output: Output };
}

/** Options of `ctx.spawnAgent`. */
export interface SpawnOptions {
  /** `full` by default; in an ephemeral session, `ephemeral`. */
  readonly persistence?: Persistence;
  /** The part of this session's context that the child sees. `none` by default. */
  readonly shared?: "none" | "conversation" | "conversation_read_only" | { readonly custom: unknown };
  /** The budget of the child and the sessions below it, within the budgets of the sessions above. */
  readonly budget?: Budget;
  /** The child is cancelled this long after it was asked for. */
  readonly timeoutMs?: number;
  /** The policy for the end of this session: `cancel` by default. */
  readonly onParentEnd?: ParentEndPolicy;
  /** The machine to run on, by the label of its runner; `local` means this machine. */
  readonly machine?: string;
  /** Labels that its runner must have, with these values. */
  readonly labels?: Readonly<Record<string, string>>;
  /** The notices of the child that reach this session: `events` by default. */
  readonly notify?: ParentNotice;
  /** Create a failed child again, with its reported progress. `maxAttempts` includes the first attempt. */
  readonly respawn?: { readonly maxAttempts: number };
}

/** A child that was asked for. Never thenable: await the future that `ctx.waitForChild(child)` returns. */
export interface ChildHandle<Output = unknown> {
  readonly sessionId: string;
  readonly agentName: string | undefined;
  readonly types?: { readonly output: Output };
}

/** A child that is asked for, before it has a number. */
export interface DraftChild {
  readonly mode: AgentMode;
  readonly options: SpawnOptions;
  readonly agent: string;
  readonly input: JsonText | undefined;
  readonly resumed: JsonText | undefined;
  readonly shared: SharedContext | undefined;
  readonly budget: Budget | undefined;
  readonly persistence: Persistence | undefined;
  readonly timeoutMs: number | undefined;
  readonly hash: string;
}

export class ChildCreation {
  readonly #parts: KernelParts;
  readonly #relations: SessionRelations;

  constructor(parts: KernelParts, relations: SessionRelations) {
    this.#parts = parts;
    this.#relations = relations;
  }

  /** Check what a child is asked for with, and encode it. @throws HoldfastError, which is remembered. */
  draft(
    call: string,
    mode: AgentMode,
    input: unknown,
    options: SpawnOptions,
    resumedFrom?: unknown,
  ): DraftChild {
    const { turn, cursor, faults } = this.#parts;
    turn.guard();
    const agent = this.#named(call, mode);
    const { limits, relations } = this.#parts.options;
    if (cursor.slice === "live") {
      if (relations.depth >= limits.depth)
        throw faults.fail(
          limitReached(
            "depth",
            limits.depth,
            "end the circle of agents that ask for each other",
            callerLine(),
          ),
        );
      if (this.#relations.children >= limits.children)
        throw faults.fail(
          limitReached("children", limits.children, "reuse children by signalling them", callerLine()),
        );
      faults.check((ms) => checkTimeout(ms, "a child"), options.timeoutMs);
    }
    if (!isName(agent))
      throw faults.fail(new UsageError(`"${agent}" cannot be the name of an agent`, at(callerLine())));
    const budget = options.budget === undefined ? undefined : faults.check(checkBudget, options.budget);
    const text = turn.encode(input, `input of agent "${agent}"`);
    const resumed = turn.encode(resumedFrom, "progress");
    const shared = this.#sharedContext(options.shared);
    const { persistence, onParentEnd = "cancel" } = options;
    const timeoutMs = options.timeoutMs === Infinity ? undefined : options.timeoutMs;
    const asked = {
      budget,
      shared: this.#asHashed(shared),
      persistence: persistence ?? "full",
      onParentEnd,
      timeoutMs,
    };
    const optionsText = encodeJson(asked, "options");
    const hash = this.#parts.options.hash(`${text ?? ""} ${optionsText ?? ""} ${resumed ?? ""}`);
    const placed = this.#placedHash(hash, options);
    return {
      mode,
      options,
      agent,
      input: this.#isRecorded(agent, placed) ? text : this.#accepted(mode, agent, input),
      resumed,
      shared,
      budget,
      persistence,
      timeoutMs,
      hash: placed,
    };
  }

  /** Whether the journal has this very ask here. Its child has its input already, and the schema may have changed since. */
  #isRecorded(agent: string, hash: string): boolean {
    const { slice, next } = this.#parts.cursor;
    return slice === "replay" && next?.type === "spawn_child" && next.agent === agent && next.hash === hash;
  }

  /** The input after the schema, as a start records it. @throws HoldfastError `invalid_input`, also at each replay. */
  #accepted({ version }: AgentMode, agent: string, input: unknown): JsonText | undefined {
    const { acceptInput = (...[, , given]: readonly [string, unknown, unknown]) => given } =
      this.#parts.options;
    return this.#parts.turn.encode(acceptInput(agent, version, input), `input of agent "${agent}"`);
  }

  /** The name of the agent in `mode`. */
  #named(call: string, mode: AgentMode): string {
    const name: unknown = (mode as AgentMode | undefined)?.name;
    if (typeof name === "string") return name;
    throw this.#parts.faults.fail(
      new UsageError(`ctx.${call} cannot take ${shown(mode)} as mode`, {
        ...at(callerLine()),
        expected: "local(agent) or remote(agent)",
        fix: "say where the agent is to run by one of these",
      }),
    );
  }

  #sharedContext(shared: SpawnOptions["shared"]): SharedContext | undefined {
    if (shared === undefined || shared === "none") return undefined;
    if (typeof shared === "object")
      return { kind: "custom", value: this.#parts.turn.encode(shared.custom, "shared context") ?? "null" };
    const leaf = this.#parts.tip.leaf;
    return { kind: shared, sessionId: this.#parts.cursor.self, ...(leaf === undefined ? {} : { leaf }) };
  }

  /** A fork must hash its asks as its origin's journal does. */
  #asHashed(shared: SharedContext | undefined): SharedContext | undefined {
    const first = this.#parts.options.origins?.at(-1);
    return shared === undefined || shared.kind === "custom" || first === undefined
      ? shared
      : { ...shared, sessionId: first };
  }

  /** The session of this number, below `parent`. */
  creation(id: number, child: DraftChild, parent: ParentRef | undefined): CreateSession {
    const { relations, machine } = this.#parts.options;
    const { mode, options, input, resumed, shared, budget, timeoutMs } = child;
    const agent = this.described(child.agent);
    const { version = agent.version } = mode;
    const on = options.machine ?? (mode.type === "local" ? machine : undefined);
    const demands = { ...options.labels, ...(on === undefined ? {} : { machine: on }) };
    const persistence =
      child.persistence ?? (this.#relations.persistence === "ephemeral" ? "ephemeral" : "full");
    const deadline = Math.min(timeoutMs ?? Infinity, budget?.ttlMs ?? Infinity);
    return {
      type: "create_session",
      sessionId: positionId(this.#parts.cursor.self, id),
      agent: { ...agent, version },
      input,
      seed: (this.#relations.seed ^ Math.imul(id + 1, 0x9e3779b1)) >>> 0,
      flags: relations.flags,
      format: relations.format,
      depth: relations.depth + 1,
      ...(parent === undefined ? {} : { parent }),
      ...(shared === undefined ? {} : { shared }),
      ...(persistence === "full" ? {} : { persistence }),
      ...(budget === undefined ? {} : { budget }),
      ...(deadline === Infinity ? {} : { deadlineAt: Math.ceil(this.#parts.cursor.now + deadline) }),
      ...(resumed === undefined ? {} : { resumedFrom: resumed }),
      ...(Object.keys(demands).length === 0 ? {} : { placement: { demands } }),
    };
  }

  /** The agent as this process knows it. @throws UsageError, which is remembered. */
  described(agent: string): AgentRef {
    const { describeAgent, agentNames } = this.#parts.options;
    const ref = describeAgent(agent);
    if (ref === undefined) throw this.#parts.faults.fail(unknownAgent(agent, agentNames()));
    return ref;
  }

  /** The hash of an ask with its demands, but without this machine: the ask is the same on another. */
  #placedHash(hash: string, { machine, labels, notify }: SpawnOptions): string {
    // Asks without these options are hashed as before there were any.
    if (machine === undefined && labels === undefined && notify === undefined) return hash;
    return this.#parts.options.hash(`${hash} ${encodeJson({ machine, labels, notify }, "options") ?? ""}`);
  }
}

function unknownAgent(name: string, known: readonly string[]): UsageError {
  return new UsageError(`no agent "${name}" is known here`, {
    code: "agent_not_found",
    ...at(callerLine()),
    expected: known.length === 0 ? "a defined agent" : `one of ${known.map((one) => `"${one}"`).join(", ")}`,
    fix: "name it in the agent's `agents`, or give it to createRuntime({ agents })",
  });
}
