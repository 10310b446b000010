// `reportRoutes`: the routes of the run gateway by which an executor reports on its turn, and reaches the
// tools of its session.
//
//   report-routes-1. A report is stored in the session before the executor gets its answer.
//   - A turn that is over takes no report.

import { HoldfastError } from "@holdfast/core";
import type { GatewayAnswer, GatewayCall, GatewayRoutes } from "@holdfast/runtime/gateway";

import type { ExternalEvent, ExternalTurn } from "../../session/external-agent-protocol.ts";
import { answerMessage } from "../../session/way-back/way-back.ts";
import { eventsOf } from "./executor-events.ts";

/** The result that an executor has reported. */
export interface ReportedResult {
  readonly result_text?: unknown;
  readonly result_data?: unknown;
}

/** The turn that a process works on. */
export interface ServedTurn {
  readonly turn: Pick<ExternalTurn, "task" | "wayBack">;
  readonly executor: string;
  readonly projectDir: string;
  /** The executor's own id of the conversation, when it has bound one. */
  readonly executorSessionId: string | null;
  /** Rejects when the turn is over. */
  readonly over: Promise<never>;
  /** Settles when the event is stored (report-routes-1). @throws HoldfastError `run_terminal`. */
  report(event: ExternalEvent): Promise<void>;
  takeResult(result: ReportedResult): void;
}

const EXECUTOR_SESSION_ID_CHARS = 500;
const EVENT_TYPE_CHARS = 100;

/** The executor's routes, in the short form and with the session in the path. */
export function reportRoutes(served: () => ServedTurn): GatewayRoutes {
  const bind = async ({ sessionId, body }: GatewayCall): Promise<GatewayAnswer> => {
    await bound(served(), body["executor_session_id"]);
    return { body: { ok: true, session: { session_id: sessionId, status: "running" } } };
  };
  const events = async ({ body }: GatewayCall): Promise<GatewayAnswer> => {
    const { event_type: type } = body;
    if (typeof type !== "string" || type === "" || type.length > EVENT_TYPE_CHARS)
      throw wrongField("event_type", `a text of 1 to ${EVENT_TYPE_CHARS} characters`);
    const turn = served();
    if (type === "result") turn.takeResult(body);
    for (const event of eventsOf(body)) await turn.report(event);
    return { status: 201, body: { ok: true } };
  };
  const metadata = async ({ sessionId, body }: GatewayCall): Promise<GatewayAnswer> => {
    if (body["executor_session_id"] !== undefined) await bound(served(), body["executor_session_id"]);
    return { body: { ok: true, session: { session_id: sessionId } } };
  };
  const affinity = async ({ sessionId }: GatewayCall): Promise<GatewayAnswer> => {
    const { executorSessionId, projectDir, executor } = served();
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
    "POST /mcp": (call) => callTool(served(), call),
  };
}

/**
 * A message of MCP to the tools of the session (`session-tools.ts`), over the transport Streamable HTTP
 * without a stream.
 */
async function callTool({ turn, over }: ServedTurn, { body, signal }: GatewayCall): Promise<GatewayAnswer> {
  const { id } = body;
  if (id === undefined) return { status: 202 };
  const { tools = [], call } = turn.wayBack ?? {};
  const offered = {
    tools,
    call: (tool: string, input: unknown) =>
      Promise.race([call?.(tool, input, signal) ?? { text: "there are no tools", isError: true }, over]),
  };
  return { body: { jsonrpc: "2.0", id, ...(await answerMessage(body, offered)) } };
}

async function bound(served: ServedTurn, id: unknown): Promise<void> {
  if (typeof id !== "string" || id === "" || id.length > EXECUTOR_SESSION_ID_CHARS)
    throw wrongField("executor_session_id", `a text of 1 to ${EXECUTOR_SESSION_ID_CHARS} characters`);
  await served.report({ type: "session_started", boundId: id });
}

const GOT_CHARS = 200;

export function wrongField(name: string, expected: string, got?: unknown): HoldfastError {
  return new HoldfastError("validation", `the field ${name} is missing or wrong`, {
    at: `/${name}`,
    ...(got === undefined ? {} : { got: JSON.stringify(got).slice(0, GOT_CHARS) }),
    expected,
  });
}
