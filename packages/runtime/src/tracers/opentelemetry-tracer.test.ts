// Sessions as spans, checked where they arrive: at an OTLP/HTTP receiver, sent there by the official SDK.

import { AsyncLocalStorage } from "node:async_hooks";
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { gunzipSync } from "node:zlib";
import { context, ROOT_CONTEXT, trace, type Context } from "@opentelemetry/api";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { defineAgent, type Agent } from "../agents/define.ts";
import type { Runtime } from "../api/runtime-api.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime } from "../runtime.ts";
import { otlpTracer } from "./otlp-tracer.ts";

interface WireValue {
  readonly stringValue?: string;
  readonly intValue?: number | string;
  readonly boolValue?: boolean;
  readonly arrayValue?: { readonly values: readonly WireValue[] };
}
interface WireSpan {
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { readonly key: string; readonly value: WireValue }[];
  readonly events: readonly { readonly name: string }[];
  readonly status: { readonly code?: number; readonly message?: string };
}
interface WireRequest {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: WireSpan["attributes"] };
    readonly scopeSpans: readonly { readonly spans: readonly WireSpan[] }[];
  }[];
}

const INTERNAL = 1;
const CLIENT = 3;
const ERROR = 2;

let receiver: Server;
let url: string;
let requests: { readonly path: string | undefined; readonly body: WireRequest }[];
let status = 200;
const opened: Runtime[] = [];

beforeEach(async () => {
  requests = [];
  status = 200;
  receiver = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      const bytes = Buffer.concat(parts);
      const text = request.headers["content-encoding"] === "gzip" ? gunzipSync(bytes) : bytes;
      requests.push({ path: request.url, body: JSON.parse(text.toString()) as WireRequest });
      response.writeHead(status, { "content-type": "application/json" }).end("{}");
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`;
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((runtime) => runtime.close()));
  receiver.closeAllConnections();
  if (receiver.listening) await new Promise((resolve) => receiver.close(resolve));
});

test("a compiler that checks the declarations of packages does not need OpenTelemetry", () => {
  const source = readFileSync(new URL("opentelemetry-tracer.ts", import.meta.url), "utf8");
  expect(source).toContain('from "@holdfast/core"');
  expect(source).not.toMatch(/^import.*"@opentelemetry\//m);
});

describe("spans that arrive at a receiver", () => {
  // The loops of a runtime serve all sessions, so the active context there would be that of some request.
  test("C1: a session's parent is the active span of its start, also for what runs after another request", async () => {
    const active = new AsyncLocalStorage<Context>();
    context.setGlobalContextManager({
      active: () => active.getStore() ?? ROOT_CONTEXT,
      with: (given, fn, self, ...args) => active.run(given, () => fn.apply(self!, args)),
      bind: (_, target) => target,
      enable: () => context as never,
      disable: () => context as never,
    });
    const { runtime } = await open();
    const agent = defineAgent({
      name: "writer",
      run: async (ctx) => {
        await ctx.waitForSignal("go");
        return ctx.run("shell", () => trace.getSpanContext(context.active())?.spanId ?? "none");
      },
    });
    const inRequest = <T>(spanId: string, fn: () => Promise<T>): Promise<T> => {
      const span = { traceId: spanId.repeat(2), spanId, traceFlags: 1 };
      return context.with(trace.setSpanContext(ROOT_CONTEXT, span), fn);
    };
    const starts = ["a", "b"].map((letter) => letter.repeat(16));
    const handles = await Promise.all(starts.map((id) => inRequest(id, () => runtime.start(agent))));
    await inRequest("c".repeat(16), () => Promise.all(handles.map((handle) => handle.signal("go"))));
    const outputs = await Promise.all(handles.map((handle) => handle.result()));
    await runtime.close();
    context.disable();

    expect(outputs).toEqual(["none", "none"]);
    const roots = named(received(), "invoke_agent writer");
    expect(new Set(roots.map(({ parentSpanId }) => parentSpanId))).toEqual(new Set(starts));
    expect(new Set(received().map(({ traceId }) => traceId))).toEqual(
      new Set(starts.map((id) => id.repeat(2))),
    );
  });

  test("session, turns, model calls and tools, each under its parent, with what the conventions ask for", async () => {
    const { runtime } = await open();
    const agent = defineAgent({
      name: "writer",
      version: "3",
      initial: () => ({ n: 0 }),
      turn: async (ctx, { n }: { n: number }) => {
        await ctx.run("model", (task) => {
          const usage = {
            model: "acme/big-1",
            inputTokens: 100,
            outputTokens: 20,
            cacheReadTokens: 40,
            costMicroUsd: 7,
          };
          task.reportUsage(usage);
          return "secret words";
        });
        await ctx.run("shell", () => "ok", { retry: { maxAttempts: 1 } });
        return n === 1 ? { done: n } : { state: { n: 1 } };
      },
    });
    const handle = await runtime.start(agent, { secret: "words" });
    await handle.result();
    await runtime.close();

    const spans = received();
    const [root] = named(spans, "invoke_agent writer");
    expect(spans.map(({ name }) => name).toSorted()).toEqual([
      "chat big-1",
      "chat big-1",
      "execute_tool shell",
      "execute_tool shell",
      "invoke_agent writer",
      "turn 0",
      "turn 1",
    ]);
    expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
    expect(root!.parentSpanId ?? "").toBe("");
    expect(root).toMatchObject({ kind: INTERNAL });
    expect(attributes(root!)).toMatchObject({
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.agent.name": "writer",
      "gen_ai.agent.version": "3",
      "gen_ai.conversation.id": handle.sessionId,
      "gen_ai.usage.input_tokens": 200,
      "gen_ai.usage.output_tokens": 40,
      "holdfast.cost_micro_usd": 14,
      "holdfast.status": "completed",
    });
    const turns = [...named(spans, "turn 0"), ...named(spans, "turn 1")];
    expect(turns.map(({ parentSpanId }) => parentSpanId)).toEqual([root!.spanId, root!.spanId]);
    expect(turns.map((turn) => attributes(turn)["holdfast.turn.outcome"])).toEqual([
      "checkpointed",
      "completed",
    ]);
    const chats = named(spans, "chat big-1");
    expect(chats.map(({ parentSpanId }) => parentSpanId)).toEqual(turns.map(({ spanId }) => spanId));
    expect(chats[0]).toMatchObject({ kind: CLIENT });
    expect(attributes(chats[0]!)).toMatchObject({
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "acme",
      "gen_ai.request.model": "big-1",
      "gen_ai.usage.input_tokens": 100,
      "gen_ai.usage.output_tokens": 20,
      "gen_ai.usage.cache_read.input_tokens": 40,
    });
    const tool = named(spans, "execute_tool shell")[0]!;
    expect(tool).toMatchObject({ kind: INTERNAL, parentSpanId: turns[0]!.spanId });
    expect(attributes(tool)).toMatchObject({
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": "shell",
    });
    for (const span of spans)
      expect(BigInt(span.endTimeUnixNano) >= BigInt(span.startTimeUnixNano)).toBe(true);
    expect(JSON.stringify(requests)).not.toContain("words");
    expect(requests[0]!.path).toBe("/v1/traces");
  });

  test("errors: of each attempt, and of the session", async () => {
    const { runtime } = await open();
    const retry = { maxAttempts: 2, initialDelayMs: 1 };
    const agent = defineAgent({
      name: "failing",
      run: (ctx) => ctx.run("bad", () => raise(new RangeError("too far")), { retry }),
    });
    await (await runtime.start(agent)).settled();
    await runtime.close();
    const attempts = named(received(), "execute_tool bad");
    expect(attempts.map((span) => attributes(span)["holdfast.outcome"])).toEqual(["retrying", "failed"]);
    for (const span of attempts) {
      expect(span.status).toMatchObject({ code: ERROR, message: "too far" });
      expect(attributes(span)["error.type"]).toBe("RangeError");
      expect(span.events.map(({ name }) => name)).toEqual(["exception"]);
    }
    const [session] = named(received(), "invoke_agent failing");
    expect(session!.status).toMatchObject({ code: ERROR });
    expect(attributes(session!)["error.type"]).toBe("task_failed");
  });

  test("a session that goes on in another process goes on in the same trace, and its tasks can pass it on", async () => {
    const storage = new MemoryStorage();
    const contexts: (string | undefined)[] = [];
    const agent = defineAgent({
      name: "long",
      run: async (ctx) => {
        await ctx.waitForSignal("go");
        await ctx.run("call", (task) => void contexts.push(task.traceparent));
      },
    });
    const first = await open(storage, [agent]);
    const { sessionId } = await first.runtime.start(agent);
    await first.runtime.close();
    const next = await open(storage, [agent]);
    const handle = await next.runtime.resume(sessionId);
    await handle.signal("go");
    await handle.result();
    await next.runtime.close();

    const lives = named(received(), "invoke_agent long");
    expect(lives.map((life) => attributes(life)["holdfast.status"])).toEqual(["released", "completed"]);
    expect(lives[1]).toMatchObject({ traceId: lives[0]!.traceId, parentSpanId: lives[0]!.spanId });
    expect(named(received(), "turn 0")[0]!.events.map(({ name }) => name)).toEqual(["waiting"]);
    const [call] = named(received(), "execute_tool call");
    expect(contexts).toEqual([`00-${call!.traceId}-${call!.spanId}-01`]);
  });

  test("a session that is started within a trace is part of it", async () => {
    const { runtime } = await open();
    const agent = defineAgent({ name: "inner", run: () => Promise.resolve(1) });
    const caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    await (await runtime.start(agent, undefined, { traceparent: caller })).result();
    await runtime.close();
    expect(named(received(), "invoke_agent inner")).toMatchObject([
      { traceId: "0af7651916cd43dd8448eb211c80319c", parentSpanId: "b7ad6b7169203331" },
    ]);
  });

  test("a receiver that refuses is told of once, and costs the session nothing", async () => {
    status = 400;
    const { runtime, problems } = await open();
    const agent = defineAgent({ name: "inner", run: () => Promise.resolve(1) });
    expect(await (await runtime.start(agent)).result()).toBe(1);
    await runtime.close();
    expect(problems).toEqual([expect.stringContaining("traces are not delivered")]);
  });
});

test("a receiver that is not there is told of once, and holds up nothing for long", async () => {
  receiver.close();
  const { runtime, problems } = await open();
  const agent = defineAgent({ name: "inner", run: () => Promise.resolve(1) });
  expect(await (await runtime.start(agent)).result()).toBe(1);
  await runtime.close();
  expect(problems).toEqual([expect.stringContaining("traces are not delivered")]);
});

test("an address that is none is refused", async () => {
  await expect(otlpTracer({ url: "localhost:1", onProblem: () => {} })).rejects.toThrow(/not the address/);
});

async function open(storage = new MemoryStorage(), agents: readonly Agent[] = []) {
  const problems: string[] = [];
  const tracer = await otlpTracer({ url, onProblem: (message) => problems.push(message) });
  const runtime = createRuntime({ storage, tracer, agents, development: false });
  opened.push(runtime);
  return { runtime, problems };
}

function received(): WireSpan[] {
  return requests
    .flatMap(({ body }) => body.resourceSpans)
    .flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans))
    .toSorted((a, b) => Number(BigInt(a.startTimeUnixNano) - BigInt(b.startTimeUnixNano)));
}

function named(spans: readonly WireSpan[], name: string): WireSpan[] {
  return spans.filter((span) => span.name === name);
}

function attributes(span: WireSpan): Record<string, unknown> {
  return Object.fromEntries(
    span.attributes.map(({ key, value }) => [
      key,
      value.stringValue ??
        value.boolValue ??
        (value.intValue === undefined ? value.arrayValue : Number(value.intValue)),
    ]),
  );
}

function raise(error: Error): never {
  throw error;
}
