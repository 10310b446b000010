// The parts of the SDK that serve a call (`handle`, `cardJson`, `errorJson`), and the reader of requests. This
// module is loaded at the first call.

import { AgentCard } from "@a2a-js/sdk";
import { A2AError, toJsonRpcError } from "@a2a-js/sdk/errors";
import { JsonRpcTransportHandler, ServerCallContext } from "@a2a-js/sdk/server";

import { PROTOCOL_VERSION } from "./agent-card.ts";
import { AgentTasks } from "./agent-tasks.ts";

export { AgentTasks };
export { statusFor } from "./a2a-errors.ts";
export { readRequest } from "./request-shape.ts";

type Answers = AsyncGenerator<object, void, undefined>;

/** One answer, or those of a stream. */
export function handle(tasks: AgentTasks, request: Record<string, unknown>): Promise<object | Answers> {
  const context = new ServerCallContext({ requestedVersion: PROTOCOL_VERSION });
  return new JsonRpcTransportHandler(tasks).handle(request, context);
}

export function cardJson(card: AgentCard): unknown {
  return AgentCard.toJSON(card);
}

/** An error of the protocol. Any other is a defect, whose text is not for callers. */
export function errorJson(thrown: unknown): object {
  return toJsonRpcError(thrown instanceof A2AError ? thrown : new A2AError("the coordinator failed"));
}
