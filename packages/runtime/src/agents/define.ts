// defineAgent and defineTask: how authors write agents and tasks.

import {
  AgentContext as CoreAgentContext,
  checkBudget,
  isName,
  UsageError,
  type AgentMode,
  type Budget,
  type EffectClass,
  type RemainingBudget,
  type Reducers,
  type RetryPolicy,
  type Session,
  type StandardSchemaV1,
  type StateDefinition,
  type StatePatch,
  type TaskCost,
  type TaskType,
  type TokenUsage,
} from "@holdfast/core";
import type { OptionalSecrets } from "@holdfast/system";
import { checkAgent, checkState, checkTask } from "./define-arguments.ts";

/** The first argument of an agent's function; see the methods of the class. */
export type AgentContext<Input = unknown, State = unknown, Patch = StatePatch<State>> = CoreAgentContext<
  TaskContext,
  Input,
  State,
  Patch
>;

/** The second argument of a task's handler. */
export interface TaskContext {
  readonly sessionId: string;
  /** The same for every attempt. */
  readonly taskId: string;
  /** From 1. */
  readonly attempt: number;
  /** The same for every attempt, for effects on the outside world: pass it on to services that deduplicate. */
  readonly idempotencyKey: string;
  /**
   * W3C trace context of this attempt, for the `traceparent` header of outgoing calls. Absent without
   * tracing.
   */
  readonly traceparent?: string | undefined;
  /**
   * Fires on cancellation, time-out and shutdown; pass it to every call that waits. Read it again before an
   * effect, as in `task.signal.aborted`: after its process was suspended past its lease, it is aborted.
   */
  readonly signal: AbortSignal;
  /**
   * The value of a secret that the task declares, or for a function of `ctx.run` the agent. It is not
   * recorded: in outputs, errors and progress it is replaced by `[secret]`.
   *
   * @throws UsageError for a name that is not declared, HoldfastError `secret_missing` without a value.
   */
  secret(name: string): string;
  /**
   * Signal the session of this task. The signal is stored when the promise resolves, and it outlives the
   * attempt. With a `dedupKey`, a repetition by another attempt stores nothing. `spends` is charged to the
   * budget of the session, once, with the signal.
   *
   * @returns for a signal that `spends` what is not spent of the limits of its budget.
   * @throws HoldfastError when the attempt has ended or storage refuses, UsageError for a task that another
   * process queued.
   */
  signalSession(
    name: string,
    payload?: unknown,
    options?: TaskSignalOptions,
  ): Promise<RemainingBudget | undefined>;
  /**
   * The stored row of the session of this task, or of one of its children; `undefined` for any other session.
   *
   * @throws UsageError for a task that another process queued.
   */
  readSession(sessionId?: string): Promise<Session | undefined>;
  /**
   * The amounts that are not spent or reserved of the budgets that pay for the session of this task, as they
   * are stored now. `undefined` without a budget.
   *
   * @throws UsageError for a task that another process queued.
   */
  remainingBudget(): Promise<RemainingBudget | undefined>;
  /**
   * Whether the handler of an earlier attempt still runs in this process. It was told to stop, and had not
   * settled after `cancelGraceMs`.
   */
  readonly overlaps: boolean;
  /** Show text while it is made. Provisional: only the output is recorded. */
  streamToken(text: string): void;
  /** Show the progress of the task. Provisional. */
  progress(data: unknown): void;
  /** Report the tokens that a model call used. With `isCharged`, signals of the task have charged them. */
  reportUsage(usage: TokenUsage): void;
}

/** Options of a signal that a running task sends to its session. */
export interface TaskSignalOptions {
  readonly dedupKey?: string;
  readonly spends?: readonly TokenUsage[];
}

/**
 * A task, as `defineTask` takes it. `Given` is what callers pass: with an input schema, what the schema
 * accepts. `Input` is what it makes of that.
 */
export interface TaskDefinition<Input = unknown, Output = unknown, Given = Input> extends TaskType<
  Given,
  Output
> {
  /** The name, which is recorded with each task. */
  readonly name: string;
  /** A text for people and models. */
  readonly description?: string;
  /** Checked where the task runs; a mismatch fails it without another attempt. */
  readonly input?: StandardSchemaV1<Given, Input>;
  /** Checked where the task runs; a mismatch fails it without another attempt. */
  readonly output?: StandardSchemaV1<unknown, Output>;
  /** Without one: up to 3 attempts for errors, and as many as it takes for attempts lost with their process. */
  readonly retry?: RetryPolicy;
  /**
   * Whether the task may be repeated when an attempt was lost with its process. `keyed` by default: the
   * receiver removes duplicates by `task.idempotencyKey`. An attempt of a task that happens `once` is not run
   * again when it was lost or has timed out: the agent gets an `UncertainEffectError`.
   */
  readonly effect?: EffectClass;
  /** One attempt may take this long. No limit by default. */
  readonly timeoutMs?: number;
  /** The whole task may take this long, over all attempts, back-offs and restarts. Milliseconds; no limit by default. */
  readonly deadlineMs?: number;
  /** Warn at the fifth call with the same input and result; at the tenth, ask a person before it continues. */
  readonly guardRepeats?: boolean;
  /** The most an attempt with this input may cost: reserved from the budget before it starts, settled by `reportUsage`. */
  readonly cost?: (input: Input) => TaskCost;
  /** Names of the secrets that the handler may read with `task.secret(name)`. */
  readonly secrets?: readonly string[];
  /**
   * `import.meta.url` of the module that exports this task. Each attempt then runs in a worker thread, which
   * imports the module: code that computes for long or blocks, as `execSync` does, stops nothing else. Input,
   * output and reports are copied. An attempt that is aborted, or times out, is terminated after half the
   * grace of a cancel, if its code has not ended before.
   */
  readonly inThread?: string;
  /** Does the work. It is called once for each attempt. */
  readonly run: (input: Input, task: TaskContext) => Output | Promise<Output>;
  /**
   * End the work of a lost attempt that is not retried, because its process ended while it ran. The agent
   * gets the loss afterwards. `input` is the recorded input.
   */
  readonly endLost?: (input: unknown, idempotencyKey: string) => Promise<void>;
  /**
   * A session whose agent has this task left the memory of this process. End what the task holds for it, such
   * as a process. Called for every session, whether or not the task ran.
   */
  readonly sessionLeft?: (sessionId: string, how: SessionLeft) => Promise<void>;
}

/** How a session left the memory of a process. */
export interface SessionLeft {
  /** It only waits. */
  readonly isWaiting: boolean;
  /** It has ended, and no process runs it again. */
  readonly hasEnded: boolean;
}

/** An error a task throws when another attempt cannot help. */
export class NonRetryableError extends Error {
  override name = "NonRetryableError";
}

/** Define a task: a unit of work outside replay. It runs at least once, and its outcome is recorded once. */
export function defineTask<Input, Output, Given = Input>(
  definition: TaskDefinition<Input, Output, Given>,
): TaskDefinition<Input, Output, Given> {
  checkTask(definition);
  const { name, run } = definition as { readonly name?: unknown; readonly run?: unknown };
  if (typeof name !== "string" || !isName(name))
    throw new UsageError(`"${String(name)}" cannot be the name of a task`, {
      expected: "1 to 200 letters, digits, spaces and . _ : / @ + -",
      fix: 'give defineTask a name: defineTask({ name: "build", run })',
    });
  if (run === undefined)
    throw new UsageError(`task "${name}" has no \`run\` function`, {
      fix: "defineTask({ name, run: (input, task) => output })",
    });
  return definition;
}

interface AgentCommon<Input, Output, Given> {
  readonly name: string;
  /**
   * Names of the secrets that the agent needs: those of its functions in `ctx.run`, and those of its
   * executor. A command asks for a value that is missing before it starts. Tasks declare their own.
   */
  readonly secrets?: readonly string[];
  /**
   * Secrets that its sessions can start without, such as the key of a model. Their values are replaced in all
   * that is recorded.
   */
  readonly optionalSecrets?: readonly OptionalSecrets[];
  /** Recorded with each session. Raise it when the code changes what a running session would ask for. */
  readonly version?: string;
  readonly description?: string;
  /** Words by which lists of agents are filtered. */
  readonly tags?: readonly string[];
  /**
   * The budget of each session that is started or scheduled of this agent, where the start gives none. A child
   * has the budget that its parent gives it.
   */
  readonly budget?: Budget | undefined;
  /** Names of variables that each start of a session gives (`environment` of `StartOptions`). */
  readonly requiredVariables?: readonly string[];
  readonly input?: StandardSchemaV1<Given, Input>;
  readonly output?: StandardSchemaV1<unknown, Output>;
  /** Tasks the agent schedules by name or definition. */
  // oxlint-disable-next-line typescript/no-explicit-any -- a list of tasks of any input and output has no other type.
  readonly tasks?: readonly TaskDefinition<any, any>[];
  /** Agents that it may spawn as children, by name. */
  // oxlint-disable-next-line typescript/no-explicit-any -- the same for agents.
  readonly agents?: readonly Agent<any, any>[];
  /** Tasks that answer `ctx.requestFromParent(name)` of its children. */
  // oxlint-disable-next-line typescript/no-explicit-any -- the same for tasks.
  readonly handlers?: { readonly [request: string]: TaskDefinition<any, any> };
}

/** Free form: called with the input, and again from the top, with `ctx.state`, after each checkpoint. */
export interface RunAgent<
  Input,
  Output,
  State,
  Given = Input,
  FieldReducers = Reducers<State>,
> extends AgentCommon<Input, Output, Given> {
  /** Makes the state typed: see `ctx.state`, `ctx.update`. */
  readonly state?: StateDefinition<State, Input, FieldReducers>;
  /** Refused in this form: only the turn form makes checkpoints automatically (decision 17). */
  readonly checkpoint?: undefined;
  /** Returns the output of the session. */
  readonly run: (
    ctx: AgentContext<Input, State, StatePatch<State, FieldReducers>>,
    input: Input,
  ) => Promise<Output>;
}

/**
 * Turn-structured: the function is called with a state and returns the next state or the output. Each turn
 * ends in a checkpoint.
 */
export interface TurnAgent<
  Input,
  Output,
  State,
  Given = Input,
  FieldReducers = Reducers<State>,
> extends AgentCommon<Input, Output, Given> {
  /** The state of the first turn. */
  readonly initial?: (input: Input) => State;
  /** Instead of `initial`: makes the state typed, so that a turn may return only its changes. */
  readonly state?: StateDefinition<State, Input, FieldReducers>;
  /** The only behaviour of this form. */
  readonly checkpoint?: "every_turn";
  /**
   * True when the agent counts its turns, and ends or asks a person at a number of its own. Its sessions are
   * started without a warning that nothing limits them. Where bounds are strict they need one nevertheless.
   */
  readonly limitsTurns?: boolean;
  /** Returns the next state, a change of the state, or the output. */
  readonly turn: (
    ctx: AgentContext<Input, State, StatePatch<State, FieldReducers>>,
    state: State,
  ) => Promise<TurnResult<State, Output, StatePatch<State, FieldReducers>>>;
}

/** The result of a turn: the next state, a change of the state, or the output of the session. */
export type TurnResult<State, Output, Patch = StatePatch<State>> =
  | { readonly state: State }
  /** Typed state: the changes, in addition to those by `ctx.update`. */
  | { readonly update: Patch }
  | { readonly done: Output };

const AGENT = Symbol.for("holdfast.agent");

/**
 * An agent as a runtime runs it. Only `defineAgent` makes one. `Given` is what callers pass: with an input
 * schema, what the schema accepts. `Input` is what it makes of that.
 */
export interface Agent<Input = unknown, Output = unknown, Given = Input> {
  readonly [AGENT]: true;
  /** The name by which sessions, children and schedules find the agent. */
  readonly name: string;
  /** Recorded with each session. */
  readonly version: string;
  /** The work of the agent, for people and for models that may start it. */
  readonly description: string | undefined;
  /** Words by which it can be found. */
  readonly tags: readonly string[];
  /** The budget of its sessions, where their start gives none. */
  readonly budget: Budget | undefined;
  /** Names of variables that each start of a session gives. */
  readonly requiredVariables: readonly string[];
  /** The schema of what callers pass. */
  readonly input: StandardSchemaV1<Given, Input> | undefined;
  /** The schema of its output. */
  readonly output: StandardSchemaV1<unknown, Output> | undefined;
  /** The tasks that it may schedule by name. */
  readonly tasks: readonly TaskDefinition[];
  /** The agents that it starts as children or hands over to. */
  readonly agents: readonly Agent[];
  /** The tasks that answer `ctx.requestFromParent` of its children, by name. */
  readonly handlers: { readonly [request: string]: TaskDefinition };
  /** The names of the secrets that it needs. */
  readonly secrets: readonly string[];
  /** The secrets that it uses where they are there. */
  readonly optionalSecrets: readonly OptionalSecrets[];
  /** Its durable state, and the functions that change it. */
  readonly state: StateDefinition | undefined;
  /** Whether the agent has the turn form, in which every call ends in a checkpoint. */
  readonly turns: boolean;
  /** Whether it says that it limits the number of its turns. */
  readonly limitsTurns: boolean;
  /** The function that runs in each session. */
  readonly main: (ctx: AgentContext<Input>) => Promise<Output>;
}

/** Define an agent from an async function, free-form (`run`) or turn-structured (`turn`). */
export function defineAgent<
  Input = unknown,
  Output = unknown,
  State = unknown,
  Given = Input,
  const FieldReducers extends Reducers<State> = Reducers<State>,
>(
  definition:
    | RunAgent<Input, Output, State, Given, FieldReducers>
    | TurnAgent<Input, Output, State, Given, FieldReducers>,
): Agent<Input, Output, Given> {
  checkAgent(definition);
  const { name, version = "1" } = definition;
  if (typeof name !== "string" || !isName(name)) {
    throw new UsageError(`"${name}" cannot be the name of an agent`, {
      expected: "1 to 200 letters, digits, spaces and . _ : / @ + -",
      fix: 'give defineAgent a name: defineAgent({ name: "my-agent", run })',
    });
  }
  return {
    [AGENT]: true,
    name,
    version,
    description: definition.description,
    tags: definition.tags ?? [],
    budget: definition.budget === undefined ? undefined : checkBudget(definition.budget),
    requiredVariables: definition.requiredVariables ?? [],
    input: definition.input,
    output: definition.output,
    tasks: [
      ...(definition.tasks ?? []),
      ...Object.values(definition.handlers ?? {}),
    ] as readonly TaskDefinition[],
    agents: (definition.agents ?? []) as readonly Agent[],
    handlers: definition.handlers ?? {},
    secrets: definition.secrets ?? [],
    optionalSecrets: definition.optionalSecrets ?? [],
    state: checkState(name, definition.state as StateDefinition | undefined),
    turns: "turn" in definition,
    limitsTurns: "turn" in definition && definition.limitsTurns === true,
    main: "turn" in definition ? turnMain(definition) : runMain(definition),
  };
}

/** Structural, so that it also holds across two copies of this package. */
export function isAgent(value: unknown): value is Agent {
  return typeof value === "object" && value !== null && AGENT in value;
}

function runMain<Input, Output, State, Given, FieldReducers>({
  name,
  run,
  checkpoint,
}: RunAgent<Input, Output, State, Given, FieldReducers>): Agent<Input, Output>["main"] {
  if (checkpoint !== undefined) {
    throw new UsageError(`agent "${name}" is free-form, and cannot have a checkpoint made every turn`, {
      got: "`checkpoint` beside `run`",
      expected: "the turn form, which says what the next turn starts from",
      fix: "defineAgent({ name, initial: (input) => state, turn: async (ctx, state) => ({ state }) }), or call ctx.checkpoint(state)",
    });
  }
  if (typeof run !== "function") {
    throw new UsageError(`agent "${name}" has neither a \`run\` nor a \`turn\` function`, {
      fix: "defineAgent({ name, run: async (ctx, input) => output })",
    });
  }
  return (ctx) => run(ctx as unknown as Parameters<typeof run>[0], ctx.input);
}

function turnMain<Input, Output, State, Given, FieldReducers>(
  definition: TurnAgent<Input, Output, State, Given, FieldReducers>,
): Agent<Input, Output>["main"] {
  return async (anyCtx) => {
    const ctx = anyCtx as unknown as Parameters<typeof definition.turn>[0];
    const result = await definition.turn(ctx, ctx.state ?? first(definition, ctx.input));
    if (typeof result === "object" && result !== null) {
      if ("done" in result) return result.done;
      if ("state" in result) return ctx.checkpoint(result.state, { openTasks: "wait" });
      if ("update" in result) {
        ctx.update(result.update);
        return ctx.checkpoint(undefined, { openTasks: "wait" });
      }
    }
    throw new UsageError(`a turn of agent "${definition.name}" returned neither { state } nor { done }`, {
      expected:
        "{ state } or, of typed state, { update } to go on with the next turn, or { done: output } to end",
    });
  };
}

function first<Input, Output, State>(
  { name, initial }: Pick<TurnAgent<Input, Output, State>, "name" | "initial">,
  input: Input,
): State {
  if (initial !== undefined) return initial(input);
  throw new UsageError(`agent "${name}" has no state to begin its first turn with`, {
    fix: "defineAgent({ name, initial: (input) => state, turn })",
  });
}

/**
 * An agent as a child: on the parent's machine. Without a coordinator every agent runs in this process. The
 * schema of its input is applied as at a start, where the process of the parent knows the agent.
 */
export function local<Input = unknown, Output = unknown, Given = Input>(
  agent: string | Agent<Input, Output, Given>,
): AgentMode<Given, Output> {
  return { type: "local", ...named(agent) };
}

/** An agent as a child: on any runner that has it. Without a coordinator every agent runs in this process. */
export function remote<Input = unknown, Output = unknown, Given = Input>(
  agent: string | Agent<Input, Output, Given>,
): AgentMode<Given, Output> {
  return { type: "remote", ...named(agent) };
}

function named(agent: string | Pick<Agent, "name" | "version">): {
  readonly name: string;
  readonly version?: string;
} {
  return typeof agent === "string" ? { name: agent } : { name: agent.name, version: agent.version };
}
