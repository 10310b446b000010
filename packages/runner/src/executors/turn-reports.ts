// The reports of an executor during one turn, and the routes of the run gateway that receive them (`TurnReports`).
//
//   turn-reports-1. A report is stored as a signal of the session before the executor gets its answer.
//   turn-reports-2. The turn ends after every report that was received, and tells how many there are.

import { HoldfastError } from "@holdfast/core";
import type { TaskContext } from "@holdfast/runtime";

import type { GatewayAnswer, GatewayCall, GatewayRoutes } from "../gateway/gateway-routes.ts";

/** The name of the signals. */
export const REPORT_SIGNAL = "executor.report";

export type Report =
  /** The executor names its own session, by which it finds the conversation again. */
  | { readonly type: "bind"; readonly executorSessionId: string }
  | { readonly type: "event"; readonly event: Readonly<Record<string, unknown>> };

/** The payload of a signal. */
export type StoredReport = Report & {
  /** The turn of the session. */
  readonly turn: number;
};

const EXECUTOR_SESSION_ID_CHARS = 500;
const EVENT_TYPE_CHARS = 100;

export class TurnReports {
  readonly #task: Pick<TaskContext, "taskId" | "signalSession">;
  readonly #turn: number;
  readonly #underWay = new Set<Promise<void>>();
  #received = 0;
  #stored = 0;
  #isOver = false;

  constructor(task: Pick<TaskContext, "taskId" | "signalSession">, turn: number) {
    this.#task = task;
    this.#turn = turn;
  }

  /** @throws HoldfastError when the turn is over, or the report cannot be stored. */
  async add(report: Report): Promise<void> {
    if (this.#isOver)
      throw new HoldfastError("run_terminal", "no turn of this session is under way", {
        fix: "report before the turn ends",
      });
    const number = ++this.#received;
    const stored: StoredReport = { ...report, turn: this.#turn };
    const storing = this.#task
      .signalSession(REPORT_SIGNAL, stored, { dedupKey: `${this.#task.taskId}/${number}` })
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
    this.#isOver = true;
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
    "GET /sessions/{sessionId}/status": async () => ({ body: { status: "running" } }),
  };
}

async function bound(target: ReportTarget, id: unknown): Promise<void> {
  if (typeof id !== "string" || id === "" || id.length > EXECUTOR_SESSION_ID_CHARS)
    throw wrongField("executor_session_id", `a text of 1 to ${EXECUTOR_SESSION_ID_CHARS} characters`);
  await target.reports.add({ type: "bind", executorSessionId: id });
  target.executorSessionId = id;
}

function wrongField(name: string, expected: string): HoldfastError {
  return new HoldfastError("validation", `the field ${name} is missing or wrong`, {
    at: `/${name}`,
    expected,
  });
}
