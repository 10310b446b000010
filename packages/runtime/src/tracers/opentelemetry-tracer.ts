// Sessions as OpenTelemetry spans, after the GenAI semantic conventions.
//
// Names and attributes are those of version 1.41.0 of the conventions (docs/gen-ai/gen-ai-agent-spans.md and
// gen-ai-spans.md there). The conventions are in development, so the strings are copied here: no stable
// package has them.
//
//   session, in one process   `invoke_agent {agent}`
//     turn                    `turn {n}`: the conventions have no name for it
//       attempt of a task     `chat {model}` if it reports what a model used, else `execute_tool {kind}`
//
//   - A span lives in one process, so a resumed session has another `invoke_agent` span in the same trace.
//     Its parent is recorded with the session: the caller's span if the session was started within a trace,
//     else its own first span. The active context of OpenTelemetry is read in the call of `runtime.start`
//     alone, because any other code may run in the context of another request.
//   - Users' data stays out: no inputs, outputs, prompts or contents.
//   - The code that made the provider owns it, and decides what to export, where, and how much.
//
// The tracer is given the parts of OpenTelemetry that it uses, and their types are written down here. Nobody
// has to install OpenTelemetry without using it, not even for a compiler that checks the declarations of
// packages.

import { clearTimeout, setTimeout } from "node:timers";
import type { AgentTracer, RecordedError, TokenUsage, TraceEvent } from "@holdfast/core";

type Attributes = Readonly<Record<string, string | number | boolean | string[]>>;

/** The context of `@opentelemetry/api`; opaque. */
type Context = object;

interface SpanContext {
  readonly traceId: string;
  readonly spanId: string;
  readonly traceFlags: number;
  readonly isRemote?: boolean;
}

interface Span {
  spanContext(): SpanContext;
  setAttribute(name: string, value: string | number | boolean): Span;
  setAttributes(attributes: Attributes): Span;
  addEvent(name: string, attributes: Attributes, at: number): Span;
  setStatus(status: { readonly code: number; readonly message: string }): Span;
  updateName(name: string): Span;
  recordException(error: { readonly name: string; readonly message: string }, at: number): void;
  end(at: number): void;
}

interface SpanStart {
  readonly kind?: number;
  readonly startTime: number;
  readonly attributes: Attributes;
}

/** The part of `@opentelemetry/api`'s `Tracer` that makes spans. */
export interface OpenTelemetrySpans {
  startSpan(name: string, options?: SpanStart, context?: Context): Span;
}

/** The module `@opentelemetry/api`, as far as it is used. */
export interface OpenTelemetryApi {
  readonly trace: {
    getTracer(name: string): OpenTelemetrySpans;
    setSpan(context: Context, span: Span): Context;
    setSpanContext(context: Context, parent: SpanContext): Context;
    getSpanContext(context: Context): SpanContext | undefined;
  };
  readonly ROOT_CONTEXT: Context;
  readonly context: { active(): Context };
  readonly SpanKind: { readonly INTERNAL: number; readonly CLIENT: number };
  readonly SpanStatusCode: { readonly ERROR: number };
  isSpanContextValid(context: SpanContext): boolean;
}

/** Options of `openTelemetryTracer`. */
export interface OpenTelemetryTracerOptions {
  /** `import * as api from "@opentelemetry/api"`. */
  readonly api: OpenTelemetryApi;
  /** Default: the global provider's. */
  readonly tracer?: OpenTelemetrySpans;
  /** Kinds of tasks that call a model: `chat` spans from their start, not only when they report usage. */
  readonly modelTasks?: readonly string[];
  /** Export what is held back: `() => provider.forceFlush()`. */
  readonly flush?: () => Promise<void>;
}

/** A tracer that makes spans of OpenTelemetry. */
export function openTelemetryTracer(options: OpenTelemetryTracerOptions): AgentTracer {
  return new SpanTracer(options);
}

type Of<T extends TraceEvent["type"]> = Extract<TraceEvent, { type: T }>;

interface OpenSession {
  readonly span: Span;
  readonly context: Context;
  readonly usage: Usage;
  turn: { readonly span: Span; readonly context: Context } | undefined;
}

interface OpenAttempt {
  readonly span: Span;
  readonly usage: Usage;
}

const FLUSH_MS = 5_000;

class SpanTracer implements AgentTracer {
  readonly #api: OpenTelemetryApi;
  readonly #tracer: OpenTelemetrySpans;
  readonly #modelTasks: ReadonlySet<string>;
  readonly #flush: () => Promise<void>;
  readonly #sessions = new Map<string, OpenSession>();
  readonly #attempts = new Map<string, OpenAttempt>();

  constructor({
    api,
    tracer,
    modelTasks = ["model"],
    flush = () => Promise.resolve(),
  }: OpenTelemetryTracerOptions) {
    this.#api = api;
    this.#tracer = tracer ?? api.trace.getTracer("holdfast");
    this.#modelTasks = new Set(modelTasks);
    this.#flush = flush;
  }

  trace(event: TraceEvent): void {
    if (event.type === "session_started") return this.#startSession(event);
    const session = this.#sessions.get(event.sessionId);
    if (session === undefined) return;
    switch (event.type) {
      case "turn_started":
        return this.#startTurn(event, session);
      case "turn_ended":
        session.turn?.span.setAttribute("holdfast.turn.outcome", event.outcome).end(event.at);
        session.turn = undefined;
        return;
      case "task_started":
        return this.#startAttempt(event, session);
      case "task_delta":
        if (event.delta.type === "usage") this.#noteUsage(event, event.delta.usage, session);
        return;
      case "task_ended":
        return this.#endAttempt(event);
      case "session_ended":
      case "session_released":
        return this.#endSession(event, session);
      case "waiting":
        spanOf(session).addEvent("waiting", { "holdfast.waits": event.waits.map(nameOfWait) }, event.at);
        return;
      case "signal_received":
        spanOf(session).addEvent("signal_received", { "holdfast.signal.name": event.name }, event.at);
        return;
      case "task_lost": {
        const lost = {
          "gen_ai.tool.name": event.kind,
          "gen_ai.tool.call.id": event.taskId,
          "holdfast.attempt": event.attempt,
        };
        spanOf(session).addEvent("task_lost", lost, event.at);
        return;
      }
      case "warned":
        spanOf(session).addEvent("warned", { "holdfast.warning": event.message }, event.at);
        return;
      case "committed":
      case "entry_appended": // As many as there are steps, and no part of what takes time.
        return;
    }
  }

  traceparent(
    sessionId: string,
    attempt?: { readonly taskId: string; readonly attempt: number },
  ): string | undefined {
    const open = attempt === undefined ? this.#sessions.get(sessionId) : this.#attempts.get(keyOf(attempt));
    return this.#textOf(open?.span.spanContext());
  }

  callersTraceparent(): string | undefined {
    const { trace, context } = this.#api;
    return this.#textOf(trace.getSpanContext(context.active()));
  }

  #textOf(context: SpanContext | undefined): string | undefined {
    if (context === undefined || !this.#api.isSpanContextValid(context)) return undefined;
    return `00-${context.traceId}-${context.spanId}-${context.traceFlags.toString(16).padStart(2, "0")}`;
  }

  /** An exporter may wait long for an answer, so a close waits only for a limited time. */
  async flush(): Promise<void> {
    const waited = Promise.withResolvers<void>();
    const timer = setTimeout(waited.resolve, FLUSH_MS);
    await Promise.race([this.#flush().catch(() => {}), waited.promise]);
    clearTimeout(timer);
  }

  #startSession({ sessionId, agent, version, recovered, traceparent, at }: Of<"session_started">): void {
    const { trace, ROOT_CONTEXT, SpanKind } = this.#api;
    const remote = traceparent === undefined ? undefined : parseTraceparent(traceparent);
    const parent = remote === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, remote);
    const attributes: Attributes = {
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.provider.name": "holdfast",
      "gen_ai.agent.name": agent,
      "gen_ai.agent.version": version,
      "gen_ai.conversation.id": sessionId,
      "holdfast.recovered": recovered,
    };
    const options = { kind: SpanKind.INTERNAL, startTime: at, attributes };
    const span = this.#tracer.startSpan(`invoke_agent ${agent}`, options, parent);
    this.#sessions.set(sessionId, {
      span,
      context: trace.setSpan(parent, span),
      usage: new Usage(),
      turn: undefined,
    });
  }

  #startTurn({ sessionId, turn, recovered, at }: Of<"turn_started">, session: OpenSession): void {
    const attributes = {
      "gen_ai.conversation.id": sessionId,
      "holdfast.turn": turn,
      "holdfast.recovered": recovered,
    };
    const span = this.#tracer.startSpan(`turn ${turn}`, { startTime: at, attributes }, session.context);
    session.turn = { span, context: this.#api.trace.setSpan(session.context, span) };
  }

  #startAttempt(event: Of<"task_started">, session: OpenSession): void {
    const { SpanKind } = this.#api;
    const isModel = this.#modelTasks.has(event.kind);
    const attributes: Attributes = {
      "gen_ai.operation.name": isModel ? "chat" : "execute_tool",
      "gen_ai.conversation.id": event.sessionId,
      "holdfast.task.id": event.taskId,
      "holdfast.attempt": event.attempt,
    };
    const name = isModel ? "chat" : `execute_tool ${event.kind}`;
    const options = { kind: isModel ? SpanKind.CLIENT : SpanKind.INTERNAL, startTime: event.at, attributes };
    const span = this.#tracer.startSpan(name, options, session.turn?.context ?? session.context);
    this.#attempts.set(keyOf(event), { span, usage: new Usage() });
  }

  #noteUsage(event: Of<"task_delta">, usage: TokenUsage, session: OpenSession): void {
    const attempt = this.#attempts.get(keyOf(event));
    if (attempt === undefined) return;
    attempt.usage.add(usage);
    session.usage.add(usage);
    // As our models are named: provider/model.
    const slash = usage.model.indexOf("/");
    const model = usage.model.slice(slash + 1);
    attempt.span.updateName(`chat ${model}`).setAttributes({
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": slash === -1 ? "_OTHER" : usage.model.slice(0, slash),
      "gen_ai.request.model": model,
      "gen_ai.response.model": model,
    });
  }

  #endAttempt(event: Of<"task_ended">): void {
    const attempt = this.#attempts.get(keyOf(event));
    if (attempt === undefined) return;
    this.#attempts.delete(keyOf(event));
    const { span, usage } = attempt;
    span.setAttribute("holdfast.outcome", event.outcome).setAttributes(usage.attributes());
    if (usage.isEmpty && !this.#modelTasks.has(event.kind)) {
      span.setAttributes({
        "gen_ai.tool.name": event.kind,
        "gen_ai.tool.call.id": event.taskId,
        "gen_ai.tool.type": "function",
      });
    }
    this.#noteError(span, event.error, event.at);
    span.end(event.at);
  }

  #endSession(event: Of<"session_ended"> | Of<"session_released">, session: OpenSession): void {
    this.#sessions.delete(event.sessionId);
    const { span, usage } = session;
    span.setAttribute("holdfast.status", event.type === "session_ended" ? event.status : "released");
    span.setAttributes(usage.attributes());
    this.#noteError(span, event.error, event.at);
    span.end(event.at);
  }

  #noteError(span: Span, error: RecordedError | undefined, at: number): void {
    if (error === undefined) return;
    span.setAttribute("error.type", error.code ?? error.name);
    span.recordException({ name: error.name, message: error.message }, at);
    span.setStatus({ code: this.#api.SpanStatusCode.ERROR, message: error.message });
  }
}

/** The usage, summed over reports. */
class Usage {
  #input = 0;
  #output = 0;
  #cacheRead = 0;
  #cacheWrite = 0;
  #costMicroUsd = 0;
  isEmpty = true;

  add(usage: TokenUsage): void {
    this.isEmpty = false;
    this.#input += usage.inputTokens;
    this.#output += usage.outputTokens;
    this.#cacheRead += usage.cacheReadTokens ?? 0;
    this.#cacheWrite += usage.cacheWriteTokens ?? 0;
    this.#costMicroUsd += usage.costMicroUsd ?? 0;
  }

  attributes(): Attributes {
    if (this.isEmpty) return {};
    return {
      "gen_ai.usage.input_tokens": this.#input,
      "gen_ai.usage.output_tokens": this.#output,
      "gen_ai.usage.cache_read.input_tokens": this.#cacheRead,
      "gen_ai.usage.cache_creation.input_tokens": this.#cacheWrite,
      "holdfast.cost_micro_usd": this.#costMicroUsd,
    };
  }
}

/** The innermost span that is open. */
function spanOf({ turn, span }: OpenSession): Span {
  return turn?.span ?? span;
}

function keyOf({ taskId, attempt }: { readonly taskId: string; readonly attempt: number }): string {
  return `${taskId} ${attempt}`;
}

function nameOfWait(wait: Of<"waiting">["waits"][number]): string {
  return wait.type === "timer" ? "timer" : wait.name;
}

/** https://www.w3.org/TR/trace-context/#traceparent-header; what is not one is none. */
function parseTraceparent(text: string) {
  const [, traceId, spanId, flags] =
    /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})/.exec(text) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  return { traceId, spanId, traceFlags: parseInt(flags, 16), isRemote: true };
}
