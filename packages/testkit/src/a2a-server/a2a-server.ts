// `startA2aServer`: a remote agent that speaks A2A 1.0, for tests, written after the protocol and without an
// SDK. The words of the last line of a message say what it does: `hang`, `question`, `fail`, `long-text`,
// `long-id`, and else it completes. A message whose id it knows is not taken again.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** More than a signal of a session can hold. */
const LONG = "A".repeat(12_000_000);

interface Task {
  readonly id: string;
  readonly contextId: string;
  state: string;
  text: string;
}

export interface A2aServer {
  readonly url: string;
  /** The texts of all messages, in order. */
  readonly messages: readonly string[];
  /** The states of all tasks, in the order of their messages. */
  states(): readonly string[];
  /** Completes every task at work. */
  complete(text: string): void;
  close(): Promise<void>;
}

export async function startA2aServer(token: string): Promise<A2aServer> {
  const tasks = new Map<string, Task>();
  const taken = new Map<string, Task>();
  const messages: string[] = [];
  const shown = ({ id, contextId, state, text }: Task) => {
    const parts = [{ text }];
    const isDone = state === "TASK_STATE_COMPLETED";
    const message = isDone ? undefined : { messageId: randomUUID(), role: "ROLE_AGENT", parts };
    return {
      id,
      contextId,
      status: { state, message },
      artifacts: isDone ? [{ artifactId: "1", parts }] : [],
    };
  };
  const send = ({
    message,
  }: {
    message: { messageId: string; parts: { text: string }[]; contextId?: string; taskId?: string };
  }) => {
    const known = taken.get(message.messageId);
    if (known !== undefined) return { task: shown(known) };
    const text = message.parts[0]!.text;
    messages.push(text);
    const words = text.split("\n").at(-1)!;
    const id = message.taskId ?? (words.startsWith("long-id") ? "x".repeat(5_000) : randomUUID());
    const contextId = message.contextId ?? randomUUID();
    const [state, said] =
      message.taskId !== undefined
        ? ["TASK_STATE_COMPLETED", "Done after an answer."]
        : words.startsWith("hang")
          ? ["TASK_STATE_WORKING", ""]
          : words.startsWith("question")
            ? ["TASK_STATE_INPUT_REQUIRED", "Which colour?"]
            : words.startsWith("fail")
              ? ["TASK_STATE_FAILED", "It is broken."]
              : ["TASK_STATE_SUBMITTED", words.startsWith("long-text") ? LONG : `Done: ${words}`];
    const task = { id, contextId, state, text: said };
    tasks.set(id, task);
    taken.set(message.messageId, task);
    return { task: shown(task), tomorrow: { is: "unknown" } };
  };
  const METHODS: Readonly<Record<string, (params: never) => unknown>> = {
    SendMessage: send,
    GetTask({ id }: { id: string }) {
      const task = tasks.get(id);
      if (task?.state === "TASK_STATE_SUBMITTED") task.state = "TASK_STATE_COMPLETED";
      return task === undefined ? undefined : shown(task);
    },
    CancelTask({ id }: { id: string }) {
      const task = tasks.get(id);
      if (task !== undefined) task.state = "TASK_STATE_CANCELED";
      return task === undefined ? undefined : shown(task);
    },
  };
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => {
      if (request.headers.authorization !== `Bearer ${token}`)
        return void response.writeHead(401).end("no token");
      if (request.url === "/.well-known/agent-card.json") return void response.end(JSON.stringify(card));
      const { id, method, params } = JSON.parse(body) as { id: number; method: string; params: never };
      const result = METHODS[method]?.(params);
      const error = { code: -32_001, message: "no such task" };
      response.end(
        JSON.stringify({ jsonrpc: "2.0", id, ...(result === undefined ? { error } : { result }) }),
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const supportedInterfaces = [{ url: `${url}/rpc`, protocolBinding: "JSONRPC", protocolVersion: "1.0" }];
  const card = { name: "fake", version: "2.0.0", supportedInterfaces };
  return {
    url,
    messages,
    states: () => [...tasks.values()].map(({ state }) => state),
    complete(text) {
      for (const task of tasks.values())
        if (task.state === "TASK_STATE_WORKING") Object.assign(task, { state: "TASK_STATE_COMPLETED", text });
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
