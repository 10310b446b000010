// The adapter for remote agents that speak the A2A protocol, version 1.0, over JSON-RPC (`a2aAgent`).
//
//   - A remote task goes on without us. A session that is resumed follows the task that is at work, or takes
//     the result that it has not seen, and sends nothing.
//   - A question of the agent (`INPUT_REQUIRED`) is a durable question of the session, and its answer
//     continues the same task.
//   - The id of a message is made of the session, the task or question before it, and the text. A server that
//     knows ids takes a message that a crash repeats once, and equal texts of a person each time. Leaky: an
//     agent without tasks, for which equal texts are one.
//   - The key is sent to the origin of the card alone, over HTTPS or loopback. No redirect is followed.
//   - An aborted turn cancels its task, except one that waits for an answer. A session that is cancelled also
//     cancels that one. Where no process worked on it, its next drive within the time of the cancel does
//     that.

import { createHash, randomUUID } from "node:crypto";
import { HoldfastError, toError } from "@holdfast/core";
import { Redactor } from "@holdfast/system";
import { addressKind } from "@holdfast/system/address-kind";

import { ID_CHARS } from "../../session/bounded-events.ts";
import type {
  ExternalAgent,
  ExternalAgentProtocol,
  ExternalEnd,
  ExternalEvent,
  ExternalTurn,
} from "../../session/external-agent-protocol.ts";
import { recordedResult } from "../../session/fields.ts";
import { TAKES_NO_MESSAGE, unknownSession } from "../../session/program/agent-turn.ts";
import { askSession, RemoteTurn } from "../remote/remote-turn.ts";
import { A2aClient, TaskUnknownError, type A2aTask } from "./a2a-client.ts";

/** Options of `a2aAgent`. */
export interface A2aAgentOptions {
  /** The name of the agent that is made. */
  readonly name: string;
  /** The address of the agent, below which `/.well-known/agent-card.json` lies. */
  readonly url: string;
  /** Sent as a bearer token, and replaced in all that the agent says. */
  readonly token?: string;
  /** How often a task at work is looked at. Milliseconds; a second when absent. */
  readonly pollMs?: number;
}

const QUESTION_CHARS = 8_000;
const CARD_MS = 10_000;

/** The adapter for a remote agent that speaks A2A. */
export function a2aAgent(options: A2aAgentOptions): ExternalAgentProtocol {
  const { name, url, token, pollMs = 1_000 } = options;
  const redactor = new Redactor(token === undefined ? [] : [token]);
  const begin = (turn: ExternalTurn): ExternalAgent =>
    new RemoteTurn(({ emit, signal }) => {
      const redacted = (event: ExternalEvent): void => emit(redactor.value(event) as ExternalEvent);
      return talk({ ...turn, name }, new A2aClient({ url, token, signal }), {
        emit: redacted,
        signal,
        pollMs,
      });
    });
  const reopen = (turn: ExternalTurn): Promise<ExternalAgent> =>
    Promise.resolve(turn.boundId === null ? unknownSession() : begin(turn));
  return {
    name,
    capabilities: () => ({ ...TAKES_NO_MESSAGE, resume: "id" }),
    find: async () => {
      checkAddress(name, url);
      try {
        const { version } = await new A2aClient({ url, token }).card(AbortSignal.timeout(CARD_MS));
        return { program: url, version };
      } catch (error) {
        throw new HoldfastError("unavailable", `the remote agent ${name} cannot be reached`, {
          at: url,
          got: redactor.text(reasonOf(toError(error))),
          expected: "its card at /.well-known/agent-card.json",
          fix: "check the address, the token, and that the agent runs",
          cause: error,
        });
      }
    },
    locate: () => url,
    start: (turn) => Promise.resolve(begin({ ...turn, boundId: null })),
    sendMessage: reopen,
    resume: reopen,
    ruledCall: ({ tool }) => ({ tool, subjectKind: "text", subject: null }),
    endLost: () => Promise.resolve(), // A remote task goes on, and the resumed session follows it.
    endRemote: async ({ boundId }) => {
      const { kind, id } = readBound(boundId ?? "");
      if (kind === "task") await new A2aClient({ url, token }).cancel(id);
    },
  };
}

/** `fetch` says why in the cause. */
function reasonOf({ message, cause }: Error): string {
  return cause instanceof Error && cause.message !== "" ? `${message}: ${cause.message}` : message;
}

function checkAddress(name: string, address: string): void {
  const url = URL.parse(address);
  if (url?.protocol === "https:" || (url?.protocol === "http:" && isLoopback(url.hostname))) return;
  throw new HoldfastError("invalid_input", `the address of the agent ${name} cannot be used`, {
    got: address.slice(0, 200),
    expected: "https://…, or http:// with a loopback address",
  });
}

function isLoopback(host: string): boolean {
  return host === "localhost" || addressKind(host.replaceAll(/^\[|\]$/g, "")) === "loopback";
}

interface Talking {
  readonly emit: (event: ExternalEvent) => void;
  readonly signal: AbortSignal;
  readonly pollMs: number;
}

async function talk(
  turn: ExternalTurn & { readonly name: string },
  client: A2aClient,
  { emit, signal, pollMs }: Talking,
): Promise<ExternalEnd> {
  const { boundId, prompt, tag, wayBack, name } = turn;
  const send = (text: string, before: string, ids: Ids) =>
    client.send({ messageId: messageId(tag, before, text), text, ...ids });
  const found = await findTask(client, boundId);
  if (found === undefined) return { type: "unknown_session" };
  emit({ type: "session_started", model: "unknown", boundId });
  const callId = randomUUID();
  emit({ type: "tool_call", id: callId, name: "SendMessage", input: { text: prompt } });
  let task = "task" in found ? found.task : await send(prompt, boundId ?? "", found.ids);
  const bind = (state: "task" | "done"): void => {
    const kind = task.id === "" ? "context" : state;
    const id = task.id === "" ? task.contextId : task.id;
    emit({ type: "session_started", model: "unknown", boundId: `${kind}:${id}` });
  };
  const finish = (end: ExternalEnd, isError: boolean): ExternalEnd => {
    bind("done");
    emit({ type: "tool_result", id: callId, text: recordedResult(task.text), isError });
    if (end.type === "answered") emit({ type: "text", text: end.text });
    return end;
  };
  for (let isBound = false; ; isBound = true) {
    if (Math.max(task.id.length, task.contextId.length) > ID_CHARS)
      return {
        type: "error",
        message: `the id of a task or its context has more than ${ID_CHARS} characters`,
      };
    if (!isBound) bind("task");
    switch (task.state) {
      case "working":
        task = await client.next(task, pollMs);
        continue;
      case "input_required": {
        const said = task.text === "" ? "for an input" : task.text;
        const question = `${name} asks: ${said}`.slice(0, QUESTION_CHARS);
        const answer = await askSession(wayBack, { question }, signal);
        if (signal.aborted) return { type: "aborted" };
        if (answer === undefined) return finish({ type: "answered", text: task.text }, false);
        task = await send(answer, `${task.id}\n${task.messageId}`, {
          contextId: task.contextId,
          taskId: task.id,
        });
        continue;
      }
      case "completed":
        return finish({ type: "answered", text: task.text }, false);
      case "cancelled":
        return { type: "aborted" };
      case "auth_required":
        return finish({ type: "error", message: `${name} asks for a sign-in: ${task.text}` }, true);
      case "failed":
        return finish({ type: "error", message: `the task failed: ${task.text}` }, true);
    }
  }
}

type Ids = { readonly contextId?: string; readonly taskId?: string };

/**
 * The task that a resumed turn goes on with, or the ids for its message.
 *
 * @param boundId `task:ID`, `done:ID` once the session has the result of the task, or `context:ID` for an
 *   agent without tasks.
 * @returns `undefined` for a task that the agent does not know.
 */
async function findTask(
  client: A2aClient,
  boundId: string | null,
): Promise<{ readonly task: A2aTask } | { readonly ids: Ids } | undefined> {
  if (boundId === null) return { ids: {} };
  const { kind, id } = readBound(boundId);
  if (kind === "context") return { ids: { contextId: id } };
  try {
    const task = await client.task(id);
    const { contextId } = task;
    if (kind === "done" || task.state === "cancelled") return { ids: { contextId } };
    return task.state === "input_required" ? { ids: { contextId, taskId: id } } : { task };
  } catch (error) {
    if (error instanceof TaskUnknownError) return undefined;
    throw error;
  }
}

function readBound(boundId: string): { readonly kind: string; readonly id: string } {
  const [, kind = "task", id = boundId] = /^(task|done|context):(.*)$/s.exec(boundId) ?? [];
  return { kind, id };
}

function messageId(tag: string, before: string, text: string): string {
  return createHash("sha256").update(`${tag}\n${before}\n${text}`).digest("base64url");
}
