// `ChildAsks`: the asks of an agent that concern its children and its parent.
//
// Each such ask is a command with an effect on the other session. The commit that records the command applies
// the effect, so it happens exactly once (S5). Events and answers of other sessions arrive as signals under
// the names of `signal-names.ts`. `child-creation.ts` makes the sessions, and `child-ends.ts` has their ends.
//
//   - The kernel schedules a task for a child's request, and answers with the task's outcome. The agent sees
//     none of it.
//   - A hand-over is an end. The batch that ends this session creates the successor, so that one of the two
//     has the place at any time (S4). The end waits as any end does, and a session that fails or is cancelled
//     before has no successor.

import { callerLine } from "../errors/author-line.ts";
import { ChildFailedError, HoldfastError, UsageError } from "../errors/errors.ts";
import { positionId } from "../ids.ts";
import type { ChildRequest, CommandRecord } from "../journal/record.ts";
import { childEndName, replyName, requestName } from "../journal/signal-names.ts";
import type { JsonText } from "../json/json.ts";
import { at } from "../replay/faults.ts";
import type { DurableFuture } from "../replay/future.ts";
import type { Draft } from "../replay/journal-cursor.ts";
import type { KernelParts } from "../replay/turn.ts";
import { BUDGET_LOW, toParent, type ChildEvent } from "../rules/consequences.ts";
import type { CreateSession, Effect } from "../session/changes.ts";
import { checkGrace } from "./checks.ts";
import { ChildCreation, type AgentMode, type ChildHandle, type SpawnOptions } from "./child-creation.ts";
import { ChildEnds } from "./child-ends.ts";
import type { SessionRelations } from "./session-relations.ts";
import type { TaskAsks } from "./task-asks.ts";
import type { WaitAsks } from "./wait-asks.ts";

/** A handle that contains how to ask for the child again. */
interface Spawned extends ChildHandle {
  readonly notify?: "end" | "callback";
  readonly respawn?: {
    readonly mode: AgentMode;
    readonly input: unknown;
    readonly options: SpawnOptions;
    readonly attempt: number;
  };
}

/** How an agent waits for a child. */
interface ChildWait {
  readonly timeoutMs: number | undefined;
  readonly sheltered: boolean;
}

export class ChildAsks {
  readonly relations: SessionRelations;
  readonly ends: ChildEnds;
  readonly #parts: KernelParts;
  readonly #waits: WaitAsks;
  readonly #creation: ChildCreation;
  /** The creation of the successor at the end. */
  #successor: (() => CreateSession) | undefined;

  constructor(parts: KernelParts, relations: SessionRelations, waits: WaitAsks) {
    this.#parts = parts;
    this.relations = relations;
    this.ends = new ChildEnds(parts);
    this.#waits = waits;
    this.#creation = new ChildCreation(parts, relations);
  }

  /** Ask for a child. */
  spawn<O>(mode: AgentMode<unknown, O>, input: unknown, options: SpawnOptions): ChildHandle<O> {
    if (options.notify === "callback" && options.respawn !== undefined)
      throw this.#parts.faults.fail(respawnCalledBack());
    const sessionId = this.#spawned(mode, input, options);
    const respawn = options.respawn === undefined ? {} : { respawn: { mode, input, options, attempt: 1 } };
    return Object.freeze({ sessionId, agentName: mode.name, ...noticeOf(options), ...respawn });
  }

  /** The number of a child whose events its parent is told. */
  listenedTo(child: Spawned): number {
    const number = this.relations.numberOf(child.sessionId);
    if (child.notify !== undefined) throw this.#parts.faults.fail(unreceived(child));
    return number;
  }

  /** Ask for a child. Returns its session id. */
  #spawned(mode: AgentMode, input: unknown, options: SpawnOptions, resumedFrom?: unknown): string {
    const draft = this.#creation.draft("spawnAgent", mode, input, options, resumedFrom);
    const { agent, hash } = draft;
    const { onParentEnd: onEnd = "cancel" } = options;
    const notice = noticeOf(options);
    const id = this.#append({ type: "spawn_child", agent, hash, ...notice, ...this.relations.persisting() });
    if (this.#parts.cursor.slice === "live") this.relations.children++; // A recorded child is counted already.
    if (onEnd === "wait") this.ends.await(id);
    const parent = { sessionId: this.#sessionId, child: id, onEnd, ...notice };
    this.#effect(() => this.#creation.creation(id, draft, parent));
    return positionId(this.#sessionId, id);
  }

  /** Ask for a successor, which will notify the parent in this session's place. */
  handOff(mode: AgentMode, input: unknown, options: SpawnOptions): void {
    const draft = this.#creation.draft("handoffToAgent", mode, input, options);
    const { agent, hash } = draft;
    const persisting = this.relations.persisting();
    const id = this.#append({ type: "spawn_child", agent, hash, handOff: true, ...persisting });
    this.#successor = () => this.#creation.creation(id, draft, this.relations.parent);
    // mutant: successor-created-early
    if (this.#parts.cursor.slice === "live") this.#creation.described(agent);
  }

  /** Create the successor, if one was asked for, and return its id. */
  handOver(): string | undefined {
    const successor = this.#successor?.();
    if (successor !== undefined) this.#effect(() => successor);
    return successor?.sessionId;
  }

  /** The output of a child, from its end. If the child is created again, the other child's output. */
  outputOf(child: Spawned, wait: ChildWait): DurableFuture<unknown> {
    const { sessionId } = child;
    const id = this.relations.numberIn(sessionId);
    const known = this.ends.asked(id);
    if (known !== undefined) return known;
    this.relations.numberOf(sessionId);
    const { timeoutMs, sheltered } = wait;
    const future = this.#waits
      .waitSignal(childEndName(id), "consume", timeoutMs, sheltered, `the end of child ${sessionId}`)
      .mapped(async (event) => this.#outputFrom(child, event as ChildEvent, wait));
    return this.ends.keep(id, future);
  }

  async #outputFrom(child: Spawned, event: ChildEvent, wait: ChildWait): Promise<unknown> {
    const { sessionId, respawn } = child;
    switch (event.type) {
      case "completed":
        return event.output;
      case "failed": {
        if (respawn === undefined || respawn.attempt >= (respawn.options.respawn?.maxAttempts ?? 1))
          throw new ChildFailedError(sessionId, "failed", event.error);
        const { mode, input, options, attempt } = respawn;
        const next = this.#spawned(mode, input, options, event.progress);
        return this.outputOf(
          { ...child, sessionId: next, respawn: { ...respawn, attempt: attempt + 1 } },
          wait,
        );
      }
      case "timed_out":
        throw new ChildFailedError(sessionId, "timed_out", undefined);
      default: {
        const { reason = null, cause } = event.type === "cancelled" ? event : {};
        const error = reason === null ? undefined : { message: reason };
        throw new ChildFailedError(sessionId, cause === "budget_exceeded" ? cause : "cancelled", error);
      }
    }
  }

  handle(request: ChildRequest, tasks: TaskAsks): void {
    const kind = this.#parts.options.handlerOf(request.name);
    if (kind !== undefined) return this.#askedByKernel(() => tasks.scheduleHandler(kind, request));
    const message = `the parent has no handler "${request.name}"`;
    this.reply(request, JSON.stringify({ error: { name: "UsageError", message, code: "usage" } }));
  }

  sendToChild(childId: string, name: string, payload: unknown): void {
    const child = this.relations.numberOf(childId);
    const text = this.#parts.turn.encode(payload, `payload of signal "${name}"`);
    const id = this.#append({ type: "tell_session", to: child, name, hash: this.#hash(text) });
    this.#effect(() => this.#signal(id, childId, name, text));
  }

  /** Signal the parent, if there is one. Returns whether there is one. */
  sendToParent(name: string, event: unknown): boolean {
    const parent = this.relations.parent;
    this.#parts.turn.guard();
    // A recorded signal was sent before the name was reserved.
    if (name === BUDGET_LOW && this.#parts.cursor.slice === "live")
      throw this.#parts.faults.fail(reservedName());
    const text = this.#parts.turn.encode(event, "the event for the parent") ?? "null";
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
    const parent = this.relations.parent;
    if (parent === undefined) {
      throw this.#parts.faults.fail(
        new UsageError(`ctx.requestFromParent("${name}") in a session without a parent`, {
          ...at(callerLine()),
          fix: "look at ctx.parentId first, or start the session with ctx.spawnAgent()",
        }),
      );
    }
    const text = this.#parts.turn.encode(payload, `payload of request "${name}"`);
    const id = this.#append({
      type: "request_parent",
      name,
      hash: this.#hash(text),
      ...this.relations.persisting(),
    });
    this.#effect(() => {
      const request: Omit<ChildRequest, "payload"> = { request: id, from: this.#sessionId, name };
      const asked = JSON.stringify(request);
      const whole = text === undefined ? asked : `${asked.slice(0, -1)},"payload":${text}}`;
      return this.#signal(id, parent.sessionId, requestName(parent.child), whole);
    });
    return id;
  }

  reply({ request, from }: ChildRequest, payload: JsonText): void {
    this.#askedByKernel(() => {
      const id = this.#append({ type: "reply_child", request, hash: this.#hash(payload) });
      this.#effect(() => this.#signal(id, from, replyName(request), payload));
    });
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
    const child = this.relations.numberOf(childId);
    const isNew = this.#parts.cursor.slice === "live";
    const graceMs = isNew
      ? this.#parts.faults.check((ms) => checkGrace(ms, "a child"), patienceMs)
      : patienceMs;
    this.#append({ type: "cancel_child", child, mode });
    const why = reason === undefined ? {} : { reason };
    this.#effect(() => ({ type: "request_cancel", sessionId: childId, mode, graceMs, ...why }));
  }

  get #sessionId(): string {
    return this.#parts.cursor.self;
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

function reservedName(): UsageError {
  return new UsageError(`ctx.signalParent("${BUDGET_LOW}"): this name says that the child's budget is low`, {
    ...at(callerLine()),
    expected: "a name of your own",
    fix: "give the signal another name",
  });
}

/** The notices that a child's parent wants, as they are recorded. */
function noticeOf({ notify = "events" }: SpawnOptions): Pick<Spawned, "notify"> {
  return notify === "events" ? {} : { notify };
}

function respawnCalledBack(): UsageError {
  return new UsageError("ctx.spawnAgent() with a callback cannot respawn the child", {
    ...at(callerLine()),
    got: '`respawn` with notify: "callback"',
    expected: "one of the two: the callback brings the first end, and a respawned child has another one",
    fix: 'leave out `notify`, and await ctx.waitForChild(child); or start the next child when the callback says "failed"',
  });
}

function unreceived({ sessionId, notify }: Spawned): UsageError {
  return new UsageError(`ctx.waitForChildEvent() of child ${sessionId}, whose events do not arrive`, {
    ...at(callerLine()),
    got: `notify: "${notify}"`,
    expected: 'a child that was asked for with notify: "events", which is the default',
    fix: "leave out `notify`, or wait for the child's end: ctx.waitForChild(child)",
  });
}
