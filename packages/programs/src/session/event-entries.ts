// The event bridge (`EventEntries`): the events of an external agent's turn as entries of the session, in the
// form that the model loop writes.
//
//   - Every recorded call of a tool gets a result. A call that was cut off gets one that says so.
//   - An entry of a sub-agent names the call that started it (`parentCallId`). Its text is never the last
//     text of the agent.

import type { TokenUsage } from "@holdfast/core";

import { CUT_OFF_RESULT } from "@holdfast/proto/view";
import type { AssistantContent, ToolContent } from "@holdfast/agents";
import type { Author } from "./external-agent-protocol.ts";
import type { RecordedEvent, StoredReport } from "./turn-reports.ts";
import type { SessionCallEvent } from "./way-back/pending-calls.ts";

export interface OpenCall extends Author {
  readonly id: string;
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
}

export type PermissionEvent = Extract<
  RecordedEvent,
  { readonly type: "permission_request" | "permission_withdrawn" }
>;

/** The events that the bridge passes on. */
export interface EventTakers {
  permission(event: PermissionEvent): void;
  call(event: SessionCallEvent): void;
  /** The agent has answered, and begins with a message that it has kept. */
  followUp(text: string): void;
}

/** The parts of an agent's context that the bridge writes to. */
interface EntryContext {
  appendEntry(entry: { readonly role: string; readonly content: unknown }): string;
  reportProgress(data: unknown): void;
}

export class EventEntries {
  /** Reports of this turn that were received. */
  count = 0;
  /** The model of the session, as the agent names it. */
  model: string | undefined;
  /** The id that the agent gave to its session. */
  boundId: string | null = null;
  /** Whether the agent has called a tool. */
  hasActed = false;
  hasStarted = false;
  /** Whether a call of a tool has its result. */
  hasProgressed = false;
  lastText: string | undefined;
  readonly usage: TokenUsage[] = [];
  /** The calls of the model that were reported, as the program's own record names them. */
  readonly recordIds: string[] = [];
  readonly #ctx: EntryContext;
  readonly #turn: number;
  readonly #open = new Map<string, OpenCall>();
  readonly #on: EventTakers;
  /** The calls whose results the agent has reported, and the names of their tools. */
  readonly #results: { readonly id: string; readonly name: string }[] = [];

  /** @param turn the number of the turn. Reports of an earlier one that come late are entries, and are not counted. */
  constructor(ctx: EntryContext, turn: number, on: EventTakers) {
    this.#ctx = ctx;
    this.#turn = turn;
    this.#on = on;
  }

  /**
   * How many results of our tool the agent has reported. Agents write the name of the MCP server before that
   * of the tool.
   */
  resultsOf(tool: string): number {
    return this.#results.filter(({ name }) => name.includes(tool)).length;
  }

  hasResult(callId: string): boolean {
    return this.#results.some(({ id }) => id === callId);
  }

  get openCalls(): readonly OpenCall[] {
    return [...this.#open.values()];
  }

  take(report: StoredReport | undefined): void {
    if (report === undefined) return;
    const { events, isCharged, turn } = report;
    if (turn === this.#turn) this.count++;
    for (const event of events)
      this.#takeEvent(event.type === "usage" ? { ...event, usage: { ...event.usage, isCharged } } : event);
  }

  closeCalls(text = CUT_OFF_RESULT): void {
    for (const { id, name, ...others } of this.#open.values())
      this.#result({ toolCallId: id, name, text, isError: true, ...authorOf(others) });
    this.#open.clear();
  }

  #takeEvent(event: RecordedEvent): void {
    switch (event.type) {
      case "session_started":
        this.hasStarted = true;
        this.model = event.model;
        this.boundId = event.boundId;
        return;
      case "text":
        if (event.parentCallId === undefined) this.lastText = event.text;
        return this.#assistant({ text: event.text, toolCalls: [], ...authorOf(event) });
      case "thinking": {
        const { text } = event;
        const content = event.parentCallId === undefined ? text : { text, ...authorOf(event) };
        this.#ctx.appendEntry({ role: "thinking", content });
        return;
      }
      case "plan":
        this.#ctx.appendEntry({ role: "plan", content: { steps: event.steps, ...authorOf(event) } });
        return;
      case "tool_call": {
        const { id, name, input } = event;
        this.hasActed = true;
        this.#open.set(id, { id, name, input, ...authorOf(event) });
        return this.#assistant({ text: "", toolCalls: [{ id, name, input }], ...authorOf(event) });
      }
      case "tool_result": {
        const { id, text, isError } = event;
        const name = this.#open.get(id)?.name ?? "";
        this.#results.push({ id, name });
        this.hasProgressed = true;
        this.#open.delete(id);
        return this.#result({ toolCallId: id, name, text, isError, ...authorOf(event) });
      }
      case "usage":
        this.usage.push(event.usage);
        this.recordIds.push(...(event.recordIds ?? []));
        return;
      case "permission_request":
      case "permission_withdrawn":
        return this.#on.permission(event);
      case "follow_up":
        return this.#on.followUp(event.text);
      case "session_call":
        return this.#on.call(event);
      case "notice":
        this.#ctx.reportProgress({ notice: event.text });
    }
  }

  #assistant(content: AssistantContent & Author): void {
    this.#ctx.appendEntry({ role: "assistant", content });
  }

  #result(content: ToolContent & Author): void {
    this.#ctx.appendEntry({ role: "tool", content });
  }
}

function authorOf({ parentCallId }: Author): Author {
  return parentCallId === undefined ? {} : { parentCallId };
}
