// The reports of an executor during one turn, and the routes of the run gateway that receive them (`TurnReports`).
//
//   turn-reports-1. A report is stored as a signal of the session before the executor gets its answer.
//   turn-reports-2. The turn ends after every report that was received, and tells how many there are.
//   turn-reports-3. A request is a report that the session's agent answers, by a task. Its request waits in this process: an
//       answer for a process that has gone is dropped.

import { HoldfastError } from "@holdfast/core";
import type { TaskContext } from "@holdfast/runtime";

import type { GatewayAnswer, GatewayCall, GatewayRoutes } from "@holdfast/runtime/gateway";

/** The name of the signals. */
export const REPORT_SIGNAL = "executor.report";

export type Report =
  /** The executor names its own session, by which it finds the conversation again. */
  | { readonly type: "bind"; readonly executorSessionId: string }
  | { readonly type: "event"; readonly event: Readonly<Record<string, unknown>> }
  | AgentRequest;

/** turn-reports-3. The answer to each is the id of the child. */
export type AgentRequest =
  | {
      readonly type: "start_child";
      readonly agent: string;
      readonly input: unknown;
      readonly mode: "sync" | "async_poll" | "async_callback";
      /** A second request with this key means the child of the first. */
      readonly idempotencyKey: string | undefined;
      /** How long the child may take. Milliseconds; no limit when absent. */
      readonly timeoutMs: number | undefined;
    }
  /** Answered when the child has ended. */
  | { readonly type: "await_child"; readonly childId: string };

/** The payload of a signal. */
export type StoredReport = Report & {
  /** The turn of the session. */
  readonly turn: number;
  /** Names the report among all of the session. */
  readonly id: string;
};

const EXECUTOR_SESSION_ID_CHARS = 500;
const EVENT_TYPE_CHARS = 100;

/** turn-reports-3. The requests that wait in this process, by the ids of their reports. */
export class AgentAnswers {
  readonly #waiting = new Map<string, PromiseWithResolvers<string>>();

  give(reportId: string, answer: string): void {
    this.#waiting.get(reportId)?.resolve(answer);
  }

  refuse(reportId: string, error: HoldfastError): void {
    this.#waiting.get(reportId)?.reject(error);
  }

  /** Rejects with the reason of the signal. */
  async wait(reportId: string, signal: AbortSignal): Promise<string> {
    const waiting = Promise.withResolvers<string>();
    const onAbort = (): void => waiting.reject(signal.reason as Error);
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    this.#waiting.set(reportId, waiting);
    try {
      return await waiting.promise;
    } finally {
      this.#waiting.delete(reportId);
      signal.removeEventListener("abort", onAbort);
    }
  }
}

type Task = Pick<TaskContext, "taskId" | "signalSession" | "readSession">;

export class TurnReports {
  readonly #task: Task;
  readonly #turn: number;
  readonly #answers: AgentAnswers;
  readonly #underWay = new Set<Promise<void>>();
  readonly #over = new AbortController();
  #received = 0;
  #stored = 0;

  constructor(task: Task, turn: number, answers: AgentAnswers) {
    this.#task = task;
    this.#turn = turn;
    this.#answers = answers;
  }

  /** @throws HoldfastError when the turn is over, or the report cannot be stored. */
  async add(report: Report): Promise<void> {
    await this.#store(this.#nextId(), report);
  }

  /**
   * turn-reports-3. @returns the answer of the session's agent.
   *
   * @throws HoldfastError when the turn is over before that, or the reason of the signal.
   */
  async ask(request: AgentRequest, signal: AbortSignal): Promise<string> {
    const id = this.#nextId();
    const answer = this.#answers.wait(id, AbortSignal.any([signal, this.#over.signal]));
    const [, given] = await Promise.all([this.#store(id, request), answer]);
    return given;
  }

  /** The row of the session, or of a child. */
  readSession(sessionId?: string): ReturnType<Task["readSession"]> {
    return this.#task.readSession(sessionId);
  }

  #nextId(): string {
    this.#over.signal.throwIfAborted();
    return `${this.#task.taskId}/${++this.#received}`;
  }

  async #store(id: string, report: Report): Promise<void> {
    const stored: StoredReport = { ...report, turn: this.#turn, id };
    const storing = this.#task
      .signalSession(REPORT_SIGNAL, stored, { dedupKey: id })
      .then(() => void this.#stored++);
    this.#underWay.add(storing);
    try {
      await storing;
    } finally {
      this.#underWay.delete(storing);
    }
  }

  /** turn-reports-2. @returns the number of stored reports. */
  async end(): Promise<number> {
    this.#over.abort(turnIsOver());
    await Promise.allSettled(this.#underWay);
    return this.#stored;
  }
}

/** The state that the routes read and write: the turn that is under way, and the executor's own session id. */
export interface ReportTarget {
  readonly reports: TurnReports;
  executorSessionId: string | null;
  readonly projectDir: string;
  readonly executor: string;
}

/** The executor's routes, in the short form and with the session in the path. */
export function reportRoutes(target: () => ReportTarget): GatewayRoutes {
  const bind = async ({ sessionId, body }: GatewayCall): Promise<GatewayAnswer> => {
    await bound(target(), body["executor_session_id"]);
    return { body: { ok: true, session: { session_id: sessionId, status: "running" } } };
  };
  const events = async ({ body }: GatewayCall): Promise<GatewayAnswer> => {
    const { event_type: type } = body;
    if (typeof type !== "string" || type === "" || type.length > EVENT_TYPE_CHARS)
      throw wrongField("event_type", `a text of 1 to ${EVENT_TYPE_CHARS} characters`);
    await target().reports.add({ type: "event", event: body });
    return { status: 201, body: { ok: true } };
  };
  const metadata = async ({ sessionId, body }: GatewayCall): Promise<GatewayAnswer> => {
    if (body["executor_session_id"] !== undefined) await bound(target(), body["executor_session_id"]);
    return { body: { ok: true, session: { session_id: sessionId } } };
  };
  const affinity = async ({ sessionId }: GatewayCall): Promise<GatewayAnswer> => {
    const { executorSessionId, projectDir, executor } = target();
    const found = {
      executor_session_id: executorSessionId,
      project_dir: projectDir,
      executor_profile: executor,
    };
    return { body: { affinity: { session_id: sessionId, ...found } } };
  };
  return {
    "POST /bind": bind,
    "POST /sessions/{sessionId}/bind": bind,
    "POST /events": events,
    "POST /sessions/{sessionId}/events": events,
    "PATCH /metadata": metadata,
    "PATCH /sessions/{sessionId}/metadata": metadata,
    "GET /sessions/{sessionId}/affinity": affinity,
  };
}

async function bound(target: ReportTarget, id: unknown): Promise<void> {
  if (typeof id !== "string" || id === "" || id.length > EXECUTOR_SESSION_ID_CHARS)
    throw wrongField("executor_session_id", `a text of 1 to ${EXECUTOR_SESSION_ID_CHARS} characters`);
  await target.reports.add({ type: "bind", executorSessionId: id });
  target.executorSessionId = id;
}

function turnIsOver(): HoldfastError {
  return new HoldfastError("run_terminal", "no turn of this session is under way", {
    fix: "report before the turn ends",
  });
}

const GOT_CHARS = 200;

export function wrongField(name: string, expected: string, got?: unknown): HoldfastError {
  return new HoldfastError("validation", `the field ${name} is missing or wrong`, {
    at: `/${name}`,
    ...(got === undefined ? {} : { got: JSON.stringify(got).slice(0, GOT_CHARS) }),
    expected,
  });
}
