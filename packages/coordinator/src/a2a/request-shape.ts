// `readRequest`: the body of a request as a call of A2A over JSON-RPC, or the error that answers it.
//
// The SDK reads fields of any type. Mistakes are therefore found here, with their places.

import { z } from "zod";

const LIMITS = { idChars: 1_000, parts: 100, history: 100, page: 100 } as const;
const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/;
const id = z.string().max(LIMITS.idChars);
const historyLength = z.int().min(0).optional();

const part = z.looseObject({ text: z.string().optional(), mediaType: z.string().optional() });
const message = z.looseObject({
  messageId: id.min(1),
  role: z.literal(["ROLE_USER", 1]),
  parts: z.array(part).min(1).max(LIMITS.parts),
  contextId: id.optional(),
  taskId: id.optional(),
});
const send = z.looseObject({
  message,
  configuration: z
    .looseObject({
      returnImmediately: z.boolean().optional(),
      historyLength,
      acceptedOutputModes: z.array(z.string()).optional(),
      taskPushNotificationConfig: z.looseObject({}).nullish(),
    })
    .nullish(),
});
const ofTask = z.looseObject({ id: id.min(1), historyLength });
const list = z.looseObject({
  contextId: id.optional(),
  status: z.union([z.string(), z.int()]).optional(),
  pageSize: z.int().min(0).max(LIMITS.page).optional(),
  pageToken: z.string().max(LIMITS.idChars).optional(),
  historyLength,
  statusTimestampAfter: z.string().regex(TIMESTAMP, "not a time of ISO 8601 with its zone").optional(),
  includeArtifacts: z.boolean().optional(),
});

/** The parameters of each method that is served. The SDK refuses every other method. */
const PARAMS: Readonly<Record<string, z.ZodType>> = {
  SendMessage: send,
  SendStreamingMessage: send,
  GetTask: ofTask,
  CancelTask: ofTask,
  SubscribeToTask: ofTask,
  ListTasks: list,
};

const envelope = z.looseObject({
  jsonrpc: z.literal("2.0"),
  id: z.union([z.string().max(LIMITS.idChars), z.number(), z.null()]).optional(),
  method: z.string().min(1),
});

export type RpcId = string | number | null;
export interface RpcError {
  readonly code: number;
  readonly message: string;
}
export type ReadRequest =
  | { readonly type: "call"; readonly id: RpcId; readonly request: Record<string, unknown> }
  | { readonly type: "refused"; readonly id: RpcId; readonly error: RpcError };

export function readRequest(body: Uint8Array): ReadRequest {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch {
    return refused(null, -32_700, "the body is not JSON in UTF-8");
  }
  const call = envelope.safeParse(value);
  if (!call.success)
    return refused(null, -32_600, `the body is no request of JSON-RPC 2.0: ${problemOf(call.error)}`);
  const { id: callId = null, method, params } = call.data;
  const shape = Object.hasOwn(PARAMS, method) ? PARAMS[method] : undefined;
  const read = shape?.safeParse(params ?? {});
  if (read?.success === false) return refused(callId, -32_602, `${method}: ${problemOf(read.error)}`);
  return { type: "call", id: callId, request: { ...call.data, params: params ?? {} } };
}

function refused(of: RpcId, code: number, text: string): ReadRequest {
  return { type: "refused", id: of, error: { code, message: text } };
}

/** The first mistake with its place. */
function problemOf({ issues: [first] }: z.ZodError): string {
  const place = first?.path.join(".") ?? "";
  return `${place === "" ? "" : `${place}: `}${first?.message ?? "it is not valid"}`;
}
