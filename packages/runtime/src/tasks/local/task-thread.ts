// `performInThread`: a task's handler at work in a worker thread, where it may block or compute for long.
//
//   - The thread imports the module that the task names, and calls the exported task of its name. Input,
//     output and reports are copied. Schemas run in the process, which also knows the secrets.
//   task-thread-2. A thread that still runs `graceMs` after it was told to stop is terminated, and after a
//       second where that is urgent.
//   - The thread has ended when this settles, so no attempt runs beside its predecessor.

import { clearTimeout, setTimeout } from "node:timers";
import type { MessagePort, Worker } from "node:worker_threads";
import {
  type ErrorCode,
  errorFrom,
  PauseError,
  type PauseRequest,
  type RecordedError,
  recordWholeError,
  toError,
  UsageError,
} from "@holdfast/core";
import type { TaskContext, TaskDefinition } from "../../agents/define.ts";
import { isUrgentAbort, ownFile } from "@holdfast/system";

/** Loaded with the first thread: most programs have none. */
const threads = () => process.getBuiltinModule("node:worker_threads");

/** The data that a thread is started with. */
export interface ThreadStart extends Pick<
  TaskContext,
  "sessionId" | "taskId" | "attempt" | "idempotencyKey" | "traceparent" | "overlaps"
> {
  /** The attempt's messages (`FromThread`, `ToThread`). */
  readonly port: MessagePort;
  readonly task: string;
  readonly module: string;
  /** Modules that it imports before. */
  readonly imports: readonly string[];
  readonly input: unknown;
  readonly declared: readonly string[];
  readonly secrets: ReadonlyMap<string, string>;
}

export type ReportMethod = "streamToken" | "progress" | "reportUsage";
export type CallMethod = "signalSession" | "readSession" | "remainingBudget";

export type FromThread =
  | { readonly type: "report"; readonly method: ReportMethod; readonly argument: unknown }
  | {
      readonly type: "call";
      readonly id: number;
      readonly method: CallMethod;
      readonly given: readonly unknown[];
    }
  | { readonly type: "done"; readonly output: unknown }
  | { readonly type: "failed"; readonly error: SentError };

export type ToThread =
  | { readonly type: "abort"; readonly reason: string }
  | { readonly type: "answer"; readonly id: number; readonly value?: unknown; readonly error?: SentError };

/** A thrown value between threads. */
export interface SentError {
  readonly recorded: RecordedError;
  readonly pause?: PauseRequest;
}

export function sendError(thrown: unknown): SentError {
  const recorded = recordWholeError(thrown);
  return PauseError.is(thrown) ? { recorded, pause: { ...thrown.pause } } : { recorded };
}

export function receiveError({ recorded, pause }: SentError): Error {
  if (pause === undefined) return errorFrom(recorded);
  const { code, message, cause: _, ...details } = recorded;
  return new PauseError(code as ErrorCode, message, { ...details, pause });
}

/** task-thread-2. The process ends soon after. */
const URGENT_MS = 1_000;

const imports = new Set<string>();

/** Threads of tasks import this module, by its URL, before that of the task: it may install hooks of a loader. */
export function importInTaskThreads(module: string): void {
  imports.add(module);
}

/** In a thread, the task that runs there. Registered, as a thread may have two copies of this package. */
const TASK_HERE = Symbol.for("@holdfast/runtime/task-of-thread");

export function markTaskThread(task: string): void {
  Object.assign(globalThis, { [TASK_HERE]: task });
}

/** @throws UsageError in the thread of a task: its module would run what it serves once more. */
export function refuseInTaskThread(): void {
  const task = (globalThis as { readonly [TASK_HERE]?: string })[TASK_HERE];
  if (task === undefined) return;
  throw new UsageError(`the module of task "${task}" opens a runtime when a thread imports it`, {
    expected: "a module that only defines tasks, as `inThread` names it",
    fix: "define the task in a module of its own, and import that where the runtime is opened",
  });
}

export interface ThreadCall {
  readonly definition: Pick<TaskDefinition, "name" | "secrets">;
  /** The module's URL. */
  readonly module: string;
  readonly input: unknown;
  readonly context: TaskContext;
  /** task-thread-2. Less than the next attempt waits. */
  readonly graceMs: number;
}

/** @throws what the handler throws, and UsageError for an input or output that cannot be copied. */
export async function performInThread(call: ThreadCall): Promise<unknown> {
  const { definition, context, graceMs } = call;
  const { signal } = context;
  // A port of its own: what a library of the task says by that of the thread is nothing of ours.
  const { port1: port, port2 } = new (threads().MessageChannel)();
  const worker = startThread(call, port2);
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  const send = (message: ToThread): void => port.postMessage(message);
  let grace: NodeJS.Timeout | undefined;
  const stop = (): void => {
    clearTimeout(grace);
    const { reason } = signal as { readonly reason: Error };
    send({ type: "abort", reason: reason.message });
    // mutant: blocked-thread-kept
    grace = setTimeout(() => reject(reason), isUrgentAbort(signal) ? Math.min(URGENT_MS, graceMs) : graceMs);
  };
  signal.addEventListener("abort", stop);
  port.on("message", (message: FromThread) => {
    if (message.type === "done") resolve(message.output);
    else if (message.type === "failed") reject(receiveError(message.error));
    else if (message.type === "report") report(context, message, reject);
    else void answer(context, message).then(send);
  });
  worker.on("error", reject);
  worker.on("exit", (code) =>
    reject(
      new Error(
        `the thread of task "${definition.name}" ended with exit code ${code} before its handler did`,
      ),
    ),
  );
  try {
    if (signal.aborted) stop();
    return await promise;
  } finally {
    signal.removeEventListener("abort", stop);
    clearTimeout(grace);
    await worker.terminate(); // No attempt may run beside its predecessor.
    port.close();
  }
}

function startThread({ definition, module, input, context }: ThreadCall, port: MessagePort): Worker {
  const { sessionId, taskId, attempt, idempotencyKey, traceparent, overlaps } = context;
  const { name, secrets: declared = [] } = definition;
  const secrets = new Map(declared.flatMap((each) => valueOf(context, each)));
  const start: ThreadStart = {
    sessionId,
    taskId,
    attempt,
    idempotencyKey,
    traceparent,
    overlaps,
    port,
    task: name,
    module,
    imports: [...imports],
    input,
    declared,
    secrets,
  };
  const script = ownFile(`task "${name}", which has \`inThread\`,`, "./task-worker", import.meta.url);
  try {
    return new (threads().Worker)(script, { workerData: start, transferList: [port], name: `task ${name}` });
  } catch (error) {
    throw notCopied("input", name, error);
  }
}

/** The handler learns of a missing value when it asks for it. */
function valueOf(context: TaskContext, name: string): [string, string][] {
  try {
    return [[name, context.secret(name)]];
  } catch {
    return [];
  }
}

function report(
  context: TaskContext,
  { method, argument }: Extract<FromThread, { readonly type: "report" }>,
  failed: (error: unknown) => void,
): void {
  try {
    context[method](argument as never);
  } catch (error) {
    failed(error);
  }
}

async function answer(
  context: TaskContext,
  { id, method, given }: Extract<FromThread, { readonly type: "call" }>,
): Promise<ToThread> {
  try {
    const value: unknown = await (context[method] as (...all: readonly unknown[]) => Promise<unknown>)(
      ...given,
    );
    return { type: "answer", id, value };
  } catch (error) {
    return { type: "answer", id, error: sendError(error) };
  }
}

/** A value that `structuredClone` refuses. */
export function notCopied(what: "input" | "output" | "report", task: string, error: unknown): UsageError {
  return new UsageError(`the ${what} of task "${task}" cannot be copied between threads`, {
    got: toError(error).message,
    expected: "values without functions and promises",
    fix: "give data, or leave `inThread` out of the task",
  });
}
