// `ChildAsks`: the asks of an agent that concern its children and its parent.
//
// Each such ask is a command with an effect on the other session. The commit that records the command applies
// the effect, so it happens exactly once (S5). Events and answers of other sessions arrive as signals under
// the names of `signal-names.ts`.
//
//   child-asks-1. A child's id is made of the position that asked for it, so replay finds the same child.
//   child-asks-2. A child's end can be awaited any number of times in a turn; it is consumed once.
//   child-asks-3. The kernel schedules a task for a child's request, and answers with the task's outcome. The
//       agent sees none of it.
//   child-asks-4. After a fork, earlier children and the parent are another session's. Their records replay.
//   child-asks-5. The runtime redelivers a child's end that was received before, also before a checkpoint, to
//       a new wait for it. This file tells the runtime which child that may be.
//   child-asks-6. A hand-over is an end. The batch that ends this session creates the successor, so that one
//       of the two has the place at any time (S4). The end waits as any end does, and a session that fails or
//       is cancelled before has no successor.
//   child-asks-7. A minimal session becomes persistent by the command that creates a child, asks its parent,
//       or takes signals as a child. No answer is then lost with its process, and no session that restarts
//       from scratch has asked another one before.

import { CancelledError, HoldfastError, UsageError } from "../errors/errors.ts";
import { isName, positionId, positionIn } from "../ids.ts";
import { encodeJson, type JsonText } from "../json/json.ts";
import type { ChildRequest, CommandRecord, Persisting } from "../journal/record.ts";
import { childEndName, replyName, requestName, tellingChild } from "../journal/signal-names.ts";
import { shown } from "../options.ts";
import type { CreateSession, Effect } from "../session/changes.ts";
import { checkBudget, type Budget } from "../session/budget.ts";
import { BUDGET_LOW, isLastEvent, toParent, type ChildEvent } from "../rules/consequences.ts";
import {
  type AgentRef,
  type ParentEndPolicy,
  type ParentRef,
  type Persistence,
  type SharedContext,
} from "../session/session.ts";
import type { KernelParts } from "../replay/turn.ts";
import { callerLine } from "../errors/author-line.ts";
import { checkGrace, checkTimeout } from "./checks.ts";
import { limitReached } from "../replay/faults.ts";
import { DurableFuture } from "../replay/future.ts";
import type { Draft } from "../replay/journal-cursor.ts";

/** An agent and its place: this machine, or any that has it. Without a coordinator: this process. */
export interface AgentMode<Input = unknown, Output = unknown> {
  readonly type: "local" | "remote";
  readonly name: string;
  /** The version of an agent that may be unknown here. */
  readonly version?: string;
  readonly types?: { readonly input: Input; readonly output: Output };
}

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
  /** Create a failed child again, with its reported progress. `maxAttempts` includes the first attempt. */
  readonly respawn?: { readonly maxAttempts: number };
}

/** A child that was asked for. Never thenable: await the future that `ctx.waitForChild(child)` returns. */
export interface ChildHandle<Output = unknown> {
  readonly sessionId: string;
  readonly agentName: string | undefined;
  readonly types?: { readonly output: Output };
}

export class ChildAsks {
  readonly #parts: KernelParts;
  #ends: Map<number, DurableFuture<unknown>> | undefined;
  readonly #awaited: Set<number>;
  /** Children whose end was received in this turn. */
  #ended: Set<number> | undefined;
  /** Children whose end the session's own end waits for, and the waits that its slices have added. */
  #endsAwaited: Set<number> | undefined;
  #endWaits: Set<DurableFuture<unknown>> | undefined;
  #children: number;
  #parent: ParentRef | undefined;
  #seed: number;
  /** The persistence of this session so far. */
  #persistence: Persistence;
  /** Children with a lower number are another session's (child-asks-4). */
  #firstChild = 0;
  /** The creation of the successor at the end. */
  #heir: (() => CreateSession) | undefined;

  constructor(parts: KernelParts) {
    this.#parts = parts;
    this.#parent = parts.options.relations.parent;
    this.#seed = parts.options.seed;
    this.#children = parts.options.relations.children;
    this.#persistence = parts.options.relations.persistence;
    this.#awaited = new Set(parts.options.relations.awaited);
  }

  /** How many children were ever asked for. */
  get children(): number {
    return this.#children;
  }

  /** The parent, as far as the agent knows. */
  get parentId(): string | undefined {
    return this.#parent?.sessionId;
  }

  /** How much of this session survives its process, so far. */
  get persistence(): Persistence {
    return this.#persistence;
  }

  becomePersistent(): void {
    this.#persistence = "full";
  }

  /** The persistence of a child whose options name none. It is not hashed, so replay may have another one. */
  get #inherited(): Persistence {
    return this.#persistence === "ephemeral" ? "ephemeral" : "full";
  }

  /** child-asks-4. */
  goOnAlone(seed: number): void {
    this.#seed = seed;
    this.#parent = undefined;
    this.#awaited.clear();
    this.#endsAwaited = undefined;
    this.#endWaits = undefined;
    this.#firstChild = this.#parts.cursor.id;
  }

  /** Children whose end this session's end waits for, and which have not ended so far. */
  get awaited(): readonly number[] {
    return [...this.#awaited];
  }

  /** Take note of an event from a child. */
  heard(name: string, event: unknown): void {
    const child = tellingChild(name);
    if (child === undefined || !isLastEvent(event as ChildEvent)) return;
    (this.#ended ??= new Set()).add(child);
    if (name === childEndName(child)) this.#awaited.delete(child);
  }

  /** child-asks-5. The number of the child behind this name, if its end may be known already. */
  mayHaveEnded(name: string): number | undefined {
    const child = tellingChild(name);
    if (child === undefined) return undefined;
    if (child >= this.#parts.options.baseId && this.#ended?.has(child) !== true) return undefined;
    return child;
  }

  /** K13. Wait for the ends of children with that policy, once the agent has returned. */
  awaitEnds(): void {
    for (const child of this.#awaited) {
      if (this.#endsAwaited?.has(child) === true) continue;
      const name = childEndName(child);
      const id = this.#parts.cursor.append({ type: "wait_signal", name, mode: "consume" });
      const future = new DurableFuture<unknown>(this.#parts.turn, "signal", id, `the end of child ${child}`);
      this.#parts.open.add({ future, name, sheltered: true });
      (this.#endsAwaited ??= new Set()).add(child);
      (this.#endWaits ??= new Set()).add(future);
    }
  }

  /** Whether the session is active only because its children are. */
  get awaitsEnd(): boolean {
    return this.#endWaits !== undefined;
  }

  isEndWait(future: DurableFuture<unknown>): boolean {
    return this.#endWaits?.has(future) === true;
  }

  /** child-asks-3. */
  handle(request: ChildRequest, schedule: (kind: string, request: ChildRequest) => void): void {
    const kind = this.#parts.options.handlerOf(request.name);
    if (kind !== undefined) return this.#askedByKernel(() => schedule(kind, request));
    const message = `the parent has no handler "${request.name}"`;
    this.reply(request, JSON.stringify({ error: { name: "UsageError", message, code: "usage" } }));
  }

  /** Ask for a child. Returns its session id. */
  spawn(mode: AgentMode, input: unknown, options: SpawnOptions, resumedFrom?: unknown): string {
    const name = this.#named("spawnAgent", mode);
    const draft = this.#draftChild(name, input, options, resumedFrom);
    const { onParentEnd: onEnd = "cancel" } = options;
    const hash = this.#placedHash(draft.hash, options);
    const id = this.#append({ type: "spawn_child", agent: name, hash, ...this.persisting() });
    if (this.#parts.cursor.slice === "live") this.#children++; // A recorded child is counted already.
    if (onEnd === "wait") this.#awaited.add(id);
    const parent: ParentRef = { sessionId: this.#sessionId, child: id, onEnd };
    this.#effect(() => this.#placed(this.#creation(id, draft, parent), mode, options));
    return positionId(this.#sessionId, id);
  }

  /** child-asks-6. Ask for a successor, which will notify the parent in this session's place. */
  handOff(mode: AgentMode, input: unknown, options: SpawnOptions): void {
    const name = this.#named("handoffToAgent", mode);
    const draft = this.#draftChild(name, input, options, undefined);
    const hash = this.#placedHash(draft.hash, options);
    const id = this.#append({ type: "spawn_child", agent: name, hash, handOff: true, ...this.persisting() });
    this.#heir = () => this.#placed(this.#creation(id, draft, this.#parent), mode, options);
    // mutant: successor-created-early
    if (this.#parts.cursor.slice === "live") this.#described(name);
  }

  /** child-asks-6. Create the successor, if one was asked for, and return its id. */
  handOver(): string | undefined {
    const heir = this.#heir?.();
    if (heir !== undefined) this.#effect(() => heir);
    return heir?.sessionId;
  }

  tellChild(childId: string, name: string, payload: unknown): void {
    const child = this.numberOf(childId);
    const text = this.#parts.turn.encode(payload, `payload of signal "${name}"`);
    const id = this.#append({ type: "tell_session", to: child, name, hash: this.#hash(text) });
    this.#effect(() => this.#signal(id, childId, name, text));
  }

  /** Signal the parent, if there is one. Returns whether there is one. */
  tellParent(name: string, event: unknown): boolean {
    const parent = this.#parent;
    this.#parts.turn.guard();
    // A recorded signal was sent before the name was reserved.
    if (name === BUDGET_LOW && this.#parts.cursor.slice === "live")
      throw this.#parts.faults.fail(reservedName());
    const text = this.#parts.turn.encode(event, "what is told to the parent") ?? "null";
    if (parent === undefined) return false;
    const id = this.#append({ type: "tell_session", to: "parent", name, hash: this.#hash(text) });
    this.#effect(() => toParent(parent, positionId(this.#sessionId, id), text));
    return true;
  }

  /** Keep the reported progress, also for observers of the session. */
  progressed(data: unknown): void {
    const text = this.#parts.turn.encode(data, "progress") ?? "null";
    if (this.#parts.cursor.slice === "live") this.#parts.segment.setProgress(text);
  }

  /** Ask the parent. Returns the number of the request; the answer comes as a signal. */
  requestParent(name: string, payload: unknown): number {
    const parent = this.#parent;
    if (parent === undefined) {
      throw this.#parts.faults.fail(
        new UsageError(`ctx.requestFromParent("${name}") in a session without a parent`, {
          ...at(callerLine()),
          fix: "look at ctx.parent first, or start the session with ctx.spawnAgent()",
        }),
      );
    }
    const text = this.#parts.turn.encode(payload, `payload of request "${name}"`);
    const id = this.#append({ type: "request_parent", name, hash: this.#hash(text), ...this.persisting() });
    this.#effect(() => {
      const request: Omit<ChildRequest, "payload"> = { request: id, from: this.#sessionId, name };
      const asked = JSON.stringify(request);
      const whole = text === undefined ? asked : `${asked.slice(0, -1)},"payload":${text}}`;
      return this.#signal(id, parent.sessionId, requestName(parent.child), whole);
    });
    return id;
  }

  /** child-asks-3. */
  reply({ request, from, life }: ChildRequest, answer: JsonText): void {
    const payload = life === undefined ? answer : `{"life":${life},${answer.slice(1)}`;
    this.#askedByKernel(() => {
      const id = this.#append({ type: "reply_child", request, hash: this.#hash(payload) });
      this.#effect(() => this.#signal(id, from, replyName(request), payload));
    });
  }

  /** child-asks-7. The part of a command that takes signals: only a child can lose a signal of its parent. */
  listening(): Persisting {
    return this.#parent === undefined ? {} : this.persisting();
  }

  /** child-asks-7. The part of a command by which a minimal session becomes persistent. */
  persisting(): Persisting {
    if (this.#persistence !== "minimal") return {};
    this.becomePersistent();
    this.#parts.segment.enablePersistence();
    return { persists: true };
  }

  /** K4. The agent's code did not call this, so a fault is remembered and reported at the standstill. */
  #askedByKernel(ask: () => void): void {
    try {
      ask();
    } catch (error) {
      // mutant: child-divergence-thrown
      if (!HoldfastError.is(error)) throw error;
      this.#parts.faults.fail(error);
    }
  }

  cancel(childId: string, mode: "graceful" | "hard", patienceMs: number, reason: string | undefined): void {
    const child = this.numberOf(childId);
    const isNew = this.#parts.cursor.slice === "live";
    const graceMs = isNew
      ? this.#parts.faults.check((ms) => checkGrace(ms, "a child"), patienceMs)
      : patienceMs;
    this.#append({ type: "cancel_child", child, mode });
    const why = reason === undefined ? {} : { reason };
    this.#effect(() => ({ type: "request_cancel", sessionId: childId, mode, graceMs, ...why }));
  }

  /** child-asks-2. The future of a child's end; `ask` makes it for the first wait in this turn. */
  endOf(childId: string, ask: (name: string) => DurableFuture<unknown>): DurableFuture<unknown> {
    const child = this.#numberIn(childId);
    const known = this.#ends?.get(child);
    if (known !== undefined && (known.fulfilled || !known.settled)) return known;
    this.numberOf(childId);
    const future = ask(childEndName(child));
    (this.#ends ??= new Map()).set(child, future);
    return future;
  }

  /** The number in a child's session id. child-asks-4. @throws CancelledError */
  numberOf(childId: string): number {
    const id = this.#numberIn(childId);
    if (id < this.#firstChild) throw new CancelledError(`child ${childId}`, "the session was forked");
    return id;
  }

  #numberIn(childId: string): number {
    const { sessionId, origins = [] } = this.#parts.options;
    const names = [sessionId, ...origins].map((name) => positionIn(childId, name));
    const id = names.find((one) => one !== undefined);
    if (id !== undefined && id < this.#parts.cursor.id) return id;
    throw this.#parts.faults.fail(
      new UsageError(`"${childId}" is no child of this session`, {
        ...at(callerLine()),
        expected: `the sessionId of what ctx.spawnAgent() of session ${this.#sessionId} returned`,
      }),
    );
  }

  get #sessionId(): string {
    return this.#parts.cursor.self;
  }

  /** The name of the agent in `mode`. */
  #named(call: string, mode: AgentMode): string {
    this.#parts.turn.guard();
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

  #draftChild(agent: string, input: unknown, options: SpawnOptions, resumedFrom: unknown): DraftChild {
    this.#parts.turn.guard();
    const { limits, relations } = this.#parts.options;
    if (this.#parts.cursor.slice === "live") {
      if (relations.depth >= limits.depth)
        throw this.#parts.faults.fail(
          limitReached(
            "depth",
            limits.depth,
            "end the circle of agents that ask for each other",
            callerLine(),
          ),
        );
      if (this.#children >= limits.children)
        throw this.#parts.faults.fail(
          limitReached("children", limits.children, "reuse children by signalling them", callerLine()),
        );
      this.#parts.faults.check((ms) => checkTimeout(ms, "a child"), options.timeoutMs);
    }
    if (!isName(agent))
      throw this.#parts.faults.fail(
        new UsageError(`"${agent}" cannot be the name of an agent`, at(callerLine())),
      );
    const budget =
      options.budget === undefined ? undefined : this.#parts.faults.check(checkBudget, options.budget);
    const text = this.#parts.turn.encode(input, `input of agent "${agent}"`);
    const resumed = this.#parts.turn.encode(resumedFrom, "progress");
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
    const told = encodeJson(asked, "options");
    const hash = this.#hash(`${text ?? ""} ${told ?? ""} ${resumed ?? ""}`);
    return { agent, input: text, resumed, shared, budget, persistence, timeoutMs, hash };
  }

  #sharedContext(shared: SpawnOptions["shared"]): SharedContext | undefined {
    if (shared === undefined || shared === "none") return undefined;
    if (typeof shared === "object")
      return { kind: "custom", value: this.#parts.turn.encode(shared.custom, "shared context") ?? "null" };
    const leaf = this.#parts.tip.leaf;
    return { kind: shared, sessionId: this.#sessionId, ...(leaf === undefined ? {} : { leaf }) };
  }

  /** A fork must hash its asks as its origin's journal does. */
  #asHashed(shared: SharedContext | undefined): SharedContext | undefined {
    const first = this.#parts.options.origins?.at(-1);
    return shared === undefined || shared.kind === "custom" || first === undefined
      ? shared
      : { ...shared, sessionId: first };
  }

  #creation(id: number, child: DraftChild, parent: ParentRef | undefined): CreateSession {
    const { relations } = this.#parts.options;
    const { agent, input, resumed, shared, budget, timeoutMs } = child;
    const persistence = child.persistence ?? this.#inherited;
    const deadline = Math.min(timeoutMs ?? Infinity, budget?.ttlMs ?? Infinity);
    return {
      type: "create_session",
      sessionId: positionId(this.#sessionId, id),
      agent: this.#described(agent),
      input,
      seed: (this.#seed ^ Math.imul(id + 1, 0x9e3779b1)) >>> 0,
      flags: relations.flags,
      format: relations.format,
      depth: relations.depth + 1,
      ...(parent === undefined ? {} : { parent }),
      ...(shared === undefined ? {} : { shared }),
      ...(persistence === "full" ? {} : { persistence }),
      ...(budget === undefined ? {} : { budget }),
      ...(deadline === Infinity ? {} : { deadlineAt: Math.ceil(this.#parts.cursor.now + deadline) }),
      ...(resumed === undefined ? {} : { resumedFrom: resumed }),
    };
  }

  #described(agent: string): AgentRef {
    const { describeAgent, agentNames } = this.#parts.options;
    const ref = describeAgent(agent);
    if (ref === undefined) throw this.#parts.faults.fail(unknownAgent(agent, agentNames()));
    return ref;
  }

  /** The hash of an ask with its demands, but without this machine: the ask is the same on another. */
  #placedHash(hash: string, { machine, labels }: SpawnOptions): string {
    if (machine === undefined && labels === undefined) return hash;
    return this.#hash(`${hash} ${encodeJson({ machine, labels }, "options") ?? ""}`);
  }

  #placed(creation: CreateSession, mode: AgentMode, { machine, labels }: SpawnOptions): CreateSession {
    const on = machine ?? (mode.type === "local" ? this.#parts.options.machine : undefined);
    const demands = { ...labels, ...(on === undefined ? {} : { machine: on }) };
    const { version = creation.agent.version } = mode;
    return {
      ...creation,
      agent: { ...creation.agent, version },
      ...(Object.keys(demands).length === 0 ? {} : { placement: { demands } }),
    };
  }

  #signal(id: number, sessionId: string, name: string, payload: JsonText | undefined): Effect {
    return {
      type: "send_signal",
      sessionId,
      signalId: positionId(this.#sessionId, id),
      name,
      payload,
    };
  }

  #append(draft: Draft<CommandRecord>): number {
    return this.#parts.cursor.append(draft, callerLine);
  }

  #effect(make: () => Effect): void {
    if (this.#parts.cursor.slice === "live") this.#parts.segment.addEffect(make());
  }

  #hash(text: JsonText | undefined): string {
    return this.#parts.options.hash(text ?? "");
  }
}

interface DraftChild {
  readonly agent: string;
  readonly input: JsonText | undefined;
  readonly resumed: JsonText | undefined;
  readonly shared: SharedContext | undefined;
  readonly budget: Budget | undefined;
  readonly persistence: Persistence | undefined;
  readonly timeoutMs: number | undefined;
  readonly hash: string;
}

function reservedName(): UsageError {
  return new UsageError(`ctx.signalParent("${BUDGET_LOW}"): this name says that the child's budget is low`, {
    ...at(callerLine()),
    expected: "a name of your own",
    fix: "give the signal another name",
  });
}

function unknownAgent(name: string, known: readonly string[]): UsageError {
  return new UsageError(`no agent "${name}" is known here`, {
    code: "agent_not_found",
    ...at(callerLine()),
    expected: known.length === 0 ? "a defined agent" : `one of ${known.map((one) => `"${one}"`).join(", ")}`,
    fix: "name it in the agent's `agents`, or give it to createRuntime({ agents })",
  });
}

function at(line: string | undefined): { readonly at?: string } {
  return line === undefined ? {} : { at: line };
}
