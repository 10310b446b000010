// `CodexDialogue`: one turn over the app-server protocol of Codex, which is JSON-RPC without the field
// `jsonrpc`.
//
//   - The thread of a resumed session has the id that was asked for. Another id is `unknown_session`.
//   codex-dialogue-2. Usage is counted by `last` of each report, which is one call of the model. `total` is a
//       sum over the thread, and names the call. Codex repeats the last report of a resumed thread, with the
//       id of an earlier turn. That one is not counted again.
//   - The permission mode and the model are given again with every turn, so that a resumed session keeps
//     them.
//   - The tools of the session are an MCP server of the thread, by a setting that holds for it alone. They
//     need no approval.
//   - Messages of another thread are the work of a sub-agent (`codex-sub-agents.ts`). They neither answer nor
//     end the turn.
//
// An interrupted turn leaves its shell running (observed with 0.169.0). The end of the process ends the
// shell.

import { defined } from "@holdfast/core";
import type {
  Author,
  Delivery,
  PermissionAnswer,
  PermissionRequest,
} from "../../session/external-agent-protocol.ts";
import { epochMs } from "../../session/limits/agent-limit.ts";
import { countOf, fieldsOf, textOr, type Fields } from "../../session/fields.ts";
import { planStepsOf } from "../lines/plan-steps.ts";
import type { DialogueTurn, LineDialogue } from "../lines/line-dialogue.ts";
import { WAY_BACK } from "../../session/way-back/way-back-tools.ts";
import { codexCallOf, codexResultOf } from "./codex-items.ts";
import { codexModel, codexRecordId } from "./codex-record.ts";
import { codexAnswer, codexRequest, type CodexAsked } from "./codex-questions.ts";
import { CodexSubAgents } from "./codex-sub-agents.ts";

/** The policy for approvals and the sandbox of Codex for each of our permission modes. */
const MODES: Readonly<Record<string, Fields>> = {
  default: { approvalPolicy: "untrusted", sandbox: "workspace-write" },
  acceptEdits: { approvalPolicy: "on-request", sandbox: "workspace-write" },
  plan: { approvalPolicy: "on-request", sandbox: "read-only" },
};

/** How long Codex waits for the result of a call to the session. Its process is ended before (`keepAliveMs`). */
const CALL_SECONDS = 2 * 86_400;

type Reply = (result: Fields | undefined, error: string) => void;

export class CodexDialogue implements LineDialogue {
  hasStarted = false;
  readonly #turn: DialogueTurn;
  readonly #replies = new Map<unknown, Reply>();
  #requestCount = 0;
  #threadId = "";
  #turnId: string | undefined;
  #model = "unknown";
  #lastText = "";
  #lastError = "";
  #errorInfo: unknown;
  /** When the windows of the account that are used up are reset. Epoch milliseconds. */
  #resetsAt: number | undefined;
  readonly #calls = new Map<string, Pick<PermissionRequest, "tool" | "input">>();
  readonly #subAgents = new CodexSubAgents();
  readonly #asked = new Map<string, CodexAsked>();

  constructor(turn: DialogueTurn) {
    this.#turn = turn;
  }

  begin(): void {
    const clientInfo = { name: "holdfast", title: "Holdfast", version: "1" };
    this.#request("initialize", { clientInfo }, () => {
      this.#turn.send({ method: "initialized" });
      this.#openThread();
    });
  }

  message(message: Fields): void {
    const { id, method } = message;
    const params = fieldsOf(message["params"]);
    if (typeof method !== "string") return this.#replied(id, message);
    if (id !== undefined) return this.#asks(id, method, params);
    const threadId = textOr(params["threadId"], this.#threadId);
    if (threadId === this.#threadId) this.#notified(method, params);
    else if (this.#turnId !== undefined) this.#notifiedOf(threadId, method, params);
  }

  answer(requestId: string, answer: PermissionAnswer): boolean {
    const asked = this.#asked.get(requestId);
    if (asked === undefined) return false;
    this.#asked.delete(requestId);
    this.#turn.send({ id: asked.id, result: codexAnswer(asked, answer) });
    if (!answer.allowed) void this.steer(answer.message); // A refusal has no text of its own.
    return true;
  }

  steer(text: string): Promise<Delivery> {
    const expectedTurnId = this.#turnId;
    if (expectedTurnId === undefined) return Promise.resolve("rejected");
    const { promise, resolve } = Promise.withResolvers<Delivery>();
    this.#request(
      "turn/steer",
      { threadId: this.#threadId, input: inputOf(text), expectedTurnId },
      () => resolve("injected"),
      () => resolve("rejected"),
    );
    return promise;
  }

  next(prompt: string): void {
    this.#turnId = undefined;
    this.#lastText = "";
    this.#startTurn(prompt);
  }

  interrupt(): void {
    for (const asked of this.#asked.values())
      this.#turn.send({ id: asked.id, result: codexAnswer(asked, undefined) });
    this.#asked.clear();
    if (this.#turnId === undefined) return this.#turn.end({ type: "aborted" });
    this.#request("turn/interrupt", { threadId: this.#threadId, turnId: this.#turnId }, () => {});
  }

  #openThread(): void {
    const { resumedId, folder, model } = this.#turn;
    const place = { cwd: folder, ...(model === null ? {} : { model }), ...this.#mode(), ...this.#tools() };
    if (resumedId === null) return this.#request("thread/start", place, (opened) => this.#begun(opened));
    this.#request(
      "thread/resume",
      { threadId: resumedId, excludeTurns: true, ...place },
      (opened) => this.#begun(opened),
      (error) =>
        this.#turn.end(
          /no rollout|not found|invalid thread id/i.test(error)
            ? { type: "unknown_session" }
            : { type: "error", message: error },
        ),
    );
  }

  #begun(opened: Fields): void {
    const id = textOr(fieldsOf(opened["thread"])["id"], "");
    const { resumedId, prompt } = this.#turn;
    if (resumedId !== null && id !== resumedId) return this.#turn.end({ type: "unknown_session" });
    this.#threadId = id;
    this.#model = codexModel(opened["modelProvider"], opened["model"], this.#turn.unpriced);
    this.hasStarted = true;
    this.#turn.emit({ type: "session_started", model: textOr(opened["model"], "unknown"), boundId: id });
    this.#startTurn(prompt);
  }

  #startTurn(prompt: string): void {
    const { model } = this.#turn;
    this.#request(
      "turn/start",
      // Given again with every turn, so that a resumed session keeps them.
      { threadId: this.#threadId, input: inputOf(prompt), ...(model === null ? {} : { model }) },
      (started) => (this.#turnId ??= textOr(fieldsOf(started["turn"])["id"], "")),
    );
  }

  #mode(): Fields {
    return MODES[this.#turn.permissionMode] ?? MODES["default"]!;
  }

  #tools(): Fields {
    const { wayBack } = this.#turn;
    if (wayBack === undefined) return {};
    const { command, args, env } = wayBack;
    const server = {
      command,
      args,
      env,
      tool_timeout_sec: CALL_SECONDS,
      default_tools_approval_mode: "approve",
    };
    return { config: { [`mcp_servers.${WAY_BACK}`]: server } };
  }

  #request(
    method: string,
    params: Fields,
    done: (result: Fields) => void,
    failed?: (error: string) => void,
  ): void {
    const id = ++this.#requestCount;
    this.#replies.set(id, (result, error) => {
      if (result !== undefined) return done(result);
      if (failed !== undefined) return failed(error);
      this.#turn.end({ type: "error", message: `${method}: ${error}` });
    });
    this.#turn.send({ id, method, params });
  }

  #replied(id: unknown, { result, error }: Fields): void {
    const reply = this.#replies.get(id);
    this.#replies.delete(id);
    reply?.(
      error === undefined ? fieldsOf(result) : undefined,
      textOr(fieldsOf(error)["message"], "no reason given"),
    );
  }

  #asks(id: unknown, method: string, params: Fields): void {
    const requestId = requestIdOf(id);
    const known = this.#calls.get(textOr(params["itemId"], ""));
    const request = codexRequest(requestId, method, params, known);
    if (typeof request === "string")
      return this.#turn.send({ id, error: { code: -32601, message: request } });
    this.#asked.set(requestId, { id, method, request });
    this.#turn.emit({ type: "permission_request", request });
  }

  #notified(method: string, params: Fields): void {
    switch (method) {
      case "turn/started":
        this.#turnId ??= textOr(fieldsOf(params["turn"])["id"], "");
        return;
      case "item/agentMessage/delta": {
        const { delta } = params;
        if (typeof delta === "string") this.#turn.emit({ type: "text_delta", text: delta });
        return;
      }
      case "item/started":
        return this.#itemStarted(fieldsOf(params["item"]));
      case "item/completed":
        return this.#itemCompleted(fieldsOf(params["item"]));
      case "turn/plan/updated":
        return this.#planned(params);
      case "thread/tokenUsage/updated":
        if (this.#turnId !== undefined && params["turnId"] === this.#turnId)
          this.#use(this.#threadId, fieldsOf(params["tokenUsage"]));
        return;
      case "error": {
        const { message, codexErrorInfo } = fieldsOf(params["error"]);
        this.#lastError = textOr(message, "");
        this.#errorInfo = codexErrorInfo;
        if (params["willRetry"] === true)
          this.#turn.emit({
            type: "notice",
            text: `the model's API failed (${this.#lastError}); it is tried again`,
          });
        return;
      }
      case "account/rateLimits/updated":
        return this.#limits(fieldsOf(params["rateLimits"]));
      case "serverRequest/resolved":
        return this.#resolved(requestIdOf(params["requestId"]));
      case "turn/completed":
        return this.#completed(fieldsOf(params["turn"]));
      default: // external-agent-protocol-6.
    }
  }

  #notifiedOf(threadId: string, method: string, params: Fields): void {
    switch (method) {
      case "turn/started":
        return this.#subAgents.turnStarted(threadId, params);
      case "item/started":
        return this.#itemStarted(fieldsOf(params["item"]), this.#subAgents.authorOf(threadId));
      case "item/completed":
        return this.#itemCompleted(fieldsOf(params["item"]), this.#subAgents.authorOf(threadId));
      case "turn/plan/updated":
        return this.#planned(params, this.#subAgents.authorOf(threadId));
      case "thread/tokenUsage/updated":
        if (this.#subAgents.countsTurn(threadId, params["turnId"]))
          this.#use(threadId, fieldsOf(params["tokenUsage"]));
        return;
      default: // external-agent-protocol-6.
    }
  }

  #itemStarted(item: Fields, author: Author = {}): void {
    const id = textOr(item["id"], "");
    const call = codexCallOf(item);
    if (call === undefined || this.#calls.has(id)) return;
    this.#calls.set(id, call);
    this.#subAgents.item(item, false);
    this.#turn.emit({ type: "tool_call", id, name: call.tool, input: call.input, ...author });
  }

  #itemCompleted(item: Fields, author: Author = {}): void {
    const { id, type, text } = item;
    if (type === "agentMessage" && typeof text === "string" && text !== "") {
      if (author.parentCallId === undefined) this.#lastText = text;
      return this.#turn.emit({ type: "text", text, ...author });
    }
    if (type === "reasoning") {
      const { summary } = item;
      const thought = Array.isArray(summary)
        ? summary.filter((one) => typeof one === "string").join("\n")
        : "";
      if (thought !== "") this.#turn.emit({ type: "thinking", text: thought, ...author });
      return;
    }
    if (typeof id !== "string") return;
    this.#itemStarted(item, author);
    this.#subAgents.item(item, true);
    if (this.#calls.has(id)) this.#turn.emit({ type: "tool_result", id, ...codexResultOf(item), ...author });
  }

  /** Codex goes on without the answer to a request. */
  #resolved(requestId: string): void {
    if (this.#asked.delete(requestId)) this.#turn.emit({ type: "permission_withdrawn", requestId });
  }

  #planned({ plan }: Fields, author: Author = {}): void {
    const steps = planStepsOf(plan, "step");
    if (steps !== undefined) this.#turn.emit({ type: "plan", steps, ...author });
  }

  /** codex-dialogue-2. */
  #use(threadId: string, { last, total }: Fields): void {
    const { inputTokens, outputTokens, cachedInputTokens } = fieldsOf(last);
    const counts = {
      inputTokens: countOf(inputTokens),
      outputTokens: countOf(outputTokens),
      cacheReadTokens: countOf(cachedInputTokens),
    };
    if (counts.inputTokens + counts.outputTokens === 0) return;
    const sum = fieldsOf(total);
    const recordIds = [codexRecordId(threadId, sum["inputTokens"], sum["outputTokens"])];
    this.#turn.emit({ type: "usage", usage: { model: this.#model, ...counts }, recordIds });
  }

  #limits({ primary, secondary }: Fields): void {
    const resets = [fieldsOf(primary), fieldsOf(secondary)].flatMap(({ usedPercent, resetsAt }) =>
      typeof usedPercent === "number" && usedPercent >= 100 && typeof resetsAt === "number"
        ? epochMs(resetsAt)
        : [],
    );
    this.#resetsAt = resets.length === 0 ? undefined : Math.max(...resets);
  }

  #completed({ id, status, error }: Fields): void {
    if (this.#turnId !== undefined && id !== this.#turnId) return;
    if (status === "completed") return this.#turn.end({ type: "answered", text: this.#lastText });
    if (status === "interrupted") return this.#turn.end({ type: "aborted" });
    const why = textOr(fieldsOf(error)["message"], this.#lastError);
    const cause = CAUSES[textOr(fieldsOf(error)["codexErrorInfo"] ?? this.#errorInfo, "")];
    this.#turn.end({
      type: "error",
      ...defined({ cause }),
      ...(cause === "quota" && this.#resetsAt !== undefined ? { resetsAt: this.#resetsAt } : {}),
      message: why === "" ? `the turn ended as ${textOr(status, "unknown")}` : why,
    });
  }
}

/** The causes of failed turns that a person repairs, as Codex names them. */
const CAUSES: Readonly<Record<string, "quota" | "auth_required">> = {
  usageLimitExceeded: "quota",
  unauthorized: "auth_required",
};

function requestIdOf(id: unknown): string {
  return `approval-${String(id)}`;
}

function inputOf(text: string): readonly Fields[] {
  return [{ type: "text", text, text_elements: [] }];
}
