// `AcpUpdates`: the updates of an agent that speaks the Agent Client Protocol, as events of the port. It
// knows no process.
//
//   - Chunks of a text are one `text` event, which ends with the next update of another kind or with the
//     turn.
//   acp-updates-3. A call is an event once its input is known or it has begun. Some agents ask for the
//       permission before they name the call. The input of a pending call is not whole: programs name a call
//       before its command is written, or repeat the input while it is. Such a call is an event when it begins.
//       Where a program does not say so (`saysBegin`), it is one before what comes next, or when its input rests.
//   - Unknown updates are ignored (external-agent-protocol-6).
//   - The Codex bridge gives the output of a command as pieces beside the call (`terminal_output_delta`), and
//     not as its content.
//   acp-updates-5. A call without an input has its title and its file as the input, so that a person sees
//       them. Rules of permissions are compared with the title as a command only where the table of agents
//       says that it is the command.

import type { Clock } from "@holdfast/core";
import { systemClock } from "@holdfast/runtime";
import type { ExternalEvent, PlanStep } from "../../session/external-agent-protocol.ts";
import { fieldsOf, isFields, recordedResult, textOr, type Fields } from "../../session/fields.ts";
import { planStepsOf } from "../lines/plan-steps.ts";
import type { AcpAgentFacts } from "./acp-quirks.ts";

/** A longer text is several events. */
const TEXT_CHARS = 256 * 1024;

/** An input that is still being written changes sooner than that. */
const INPUT_MS = 1_000;

/** Output of a call that is kept. Somewhat more than a result may have. */
const OUTPUT_CHARS = 128 * 1024;

interface KnownCall {
  name: string;
  input: Fields;
  /** acp-updates-5. */
  shown: Fields;
  output: string;
  /** acp-updates-3. */
  isPending: boolean;
  /** Cancels the timer until its input has rested. */
  cancelRest?: () => void;
  isEmitted: boolean;
  isOver: boolean;
}

/** How a program differs in what it says. */
export type UpdateFacts = Pick<AcpAgentFacts, "titlesAreCommands" | "saysBegin">;

export class AcpUpdates {
  /** The last text of the turn. */
  lastText = "";
  readonly #emit: (event: ExternalEvent) => void;
  readonly #facts: UpdateFacts;
  readonly #setTimer: Clock["setTimer"];
  #open: { readonly type: "text" | "thinking"; text: string } | undefined;
  readonly #calls = new Map<string, KnownCall>();

  constructor(
    emit: (event: ExternalEvent) => void,
    facts: UpdateFacts = {},
    { setTimer }: Pick<Clock, "setTimer"> = systemClock,
  ) {
    this.#emit = emit;
    this.#facts = facts;
    this.#setTimer = setTimer;
  }

  update(update: Fields): void {
    switch (update["sessionUpdate"]) {
      case "agent_message_chunk":
        return this.#chunk("text", update);
      case "agent_thought_chunk":
        return this.#chunk("thinking", update);
      case "tool_call":
      case "tool_call_update":
        return this.call(update);
      case "plan":
        return this.#planned(planStepsOf(update["entries"], "content"));
      default: // Unknown updates are ignored.
    }
  }

  /** @returns the call as it is known now. */
  call(update: Fields, isAsked = false): void {
    const id = update["toolCallId"];
    if (typeof id !== "string") return;
    this.#flushText();
    const call = this.#calls.get(id) ?? {
      name: "tool",
      input: {},
      shown: {},
      output: "",
      isPending: false,
      isEmitted: false,
      isOver: false,
    };
    this.#calls.set(id, call);
    const { kind, title, rawInput, status } = update;
    if (typeof kind === "string" && kind !== "other") call.name = kind;
    else if (typeof title === "string" && call.name === "tool") call.name = title;
    if (isFields(rawInput) && Object.keys(rawInput).length > 0) call.input = rawInput;
    call.shown = { ...call.shown, ...this.#shownOf(update) };
    const piece = fieldsOf(fieldsOf(update["_meta"])["terminal_output_delta"])["data"];
    if (call.output.length < OUTPUT_CHARS) call.output += textOr(piece, "");
    const isOver = status === "completed" || status === "failed";
    if (typeof status === "string") call.isPending = status === "pending";
    const isKnown = Object.keys(call.input).length > 0;
    call.cancelRest?.();
    if (isAsked || isOver || status === "in_progress" || (isKnown && !call.isPending)) this.#begun(id, call);
    else if (isKnown && this.#facts.saysBegin !== true)
      call.cancelRest = this.#setTimer(() => this.#begun(id, call), INPUT_MS);
    if (!isOver || call.isOver) return;
    call.isOver = true;
    this.#emit({
      type: "tool_result",
      id,
      text: resultText(update) || recordedResult(call.output),
      isError: status === "failed",
    });
  }

  callOf(id: string): { readonly name: string; readonly input: Fields } {
    const { name = "tool", input = {}, shown = {} } = this.#calls.get(id) ?? {};
    return { name, input: Object.keys(input).length > 0 ? input : shown };
  }

  /** acp-updates-5. */
  #shownOf({ kind, title, locations }: Fields): Fields {
    const [place, ...others] = Array.isArray(locations) ? locations.filter(isFields) : [];
    const path = others.length === 0 ? place?.["path"] : undefined;
    const isCommand = kind === "execute" && this.#facts.titlesAreCommands === true;
    return {
      ...(typeof title === "string" && title !== "" ? { [isCommand ? "command" : "title"]: title } : {}),
      ...(typeof path === "string" && kind !== "execute" ? { path } : {}),
    };
  }

  /** Nothing more comes of what is open: a text, and inputs of calls. */
  flush(): void {
    this.#flushText();
    if (this.#facts.saysBegin === true) return;
    for (const [id, call] of this.#calls) if (Object.keys(call.input).length > 0) this.#begun(id, call);
  }

  #begun(id: string, call: KnownCall): void {
    call.cancelRest?.();
    if (call.isEmitted) return;
    call.isEmitted = true;
    this.#flushText();
    this.#emit({ type: "tool_call", id, ...this.callOf(id) });
  }

  #flushText(): void {
    const open = this.#open;
    this.#open = undefined;
    if (open === undefined) return;
    if (open.type === "text") this.lastText = open.text;
    this.#emit(open);
  }

  #planned(steps: readonly PlanStep[] | undefined): void {
    if (steps === undefined) return;
    this.flush();
    this.#emit({ type: "plan", steps });
  }

  #chunk(type: "text" | "thinking", { content }: Fields): void {
    const text = isFields(content) ? content["text"] : undefined;
    if (typeof text !== "string" || text === "") return;
    if (this.#open?.type !== type) this.flush();
    this.#open ??= { type, text: "" };
    this.#open.text += text;
    if (type === "text") this.#emit({ type: "text_delta", text });
    if (this.#open.text.length > TEXT_CHARS) this.flush();
  }
}

function resultText({ content, rawOutput }: Fields): string {
  const parts = Array.isArray(content) ? content.filter(isFields).map(partText) : [];
  const text = parts.length > 0 ? parts.join("\n") : rawText(rawOutput);
  return recordedResult(text);
}

function partText({ type, content, path }: Fields): string {
  if (isFields(content) && typeof content["text"] === "string") return content["text"];
  if (type === "terminal") return "";
  return type === "diff" && typeof path === "string" ? `(changed ${path})` : "(content)";
}

function rawText(output: unknown): string {
  if (output === undefined || output === null) return "";
  if (typeof output === "string") return output;
  const text = isFields(output) ? output["output"] : undefined;
  return typeof text === "string" ? text : JSON.stringify(output);
}
