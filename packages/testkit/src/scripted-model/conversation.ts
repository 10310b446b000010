// The conversation as a script sees it, the same for every wire (script-2), and the check that its tool calls
// have results.
//
// Wires cut a conversation differently. Anthropic puts tool results into user messages. OpenAI's chat sends
// one message for each result, and its Responses API one item for each call. Here an assistant message has
// all its calls, and the message after it, of role `tool`, has all the results.

/** A request that a model was sent, in one form for all providers. */
export interface Conversation {
  readonly model: string;
  /** All system text, also such that stands between messages, one line break between the parts. */
  readonly system: string;
  /** Never two of the same role in a row. */
  readonly messages: readonly ConversationMessage[];
  readonly tools: readonly ConversationTool[];
}

/** A message of a conversation. */
export interface ConversationMessage {
  readonly role: Role;
  /** Text only: an image or a document appears as its type in brackets, reasoning does not appear. */
  readonly text: string;
  /** Filled in messages of role `assistant` only. */
  readonly toolCalls: readonly ToolCall[];
  /** Filled in messages of role `tool` only. */
  readonly toolResults: readonly ToolResult[];
}

/** The author of a message. */
export type Role = "user" | "assistant" | "tool";

/** A call of a tool in a conversation. */
export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
}

/** The result of a call of a tool in a conversation. */
export interface ToolResult {
  readonly toolCallId: string;
  readonly name: string;
  /** The result as the model would read it; structured results are JSON text. */
  readonly text: string;
  /** Always false on the OpenAI wires, which have no such mark. */
  readonly isError: boolean;
}

/** A tool that a model was offered. */
export interface ConversationTool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the input. */
  readonly schema: Readonly<Record<string, unknown>>;
}

/** A piece of a message as a wire delivers it. */
export interface MessagePiece {
  readonly role: Role;
  readonly text?: string;
  readonly toolCalls?: readonly ToolCall[];
  readonly toolResults?: readonly Omit<ToolResult, "name">[];
}

/** Join neighbouring pieces of one role into messages, and give tool results the name of their tool. */
export function joinMessages(pieces: readonly MessagePiece[]): readonly ConversationMessage[] {
  const names = new Map(pieces.flatMap((piece) => piece.toolCalls ?? []).map((call) => [call.id, call.name]));
  const messages: ConversationMessage[] = [];
  for (const piece of pieces) {
    const last = messages.at(-1);
    const joins = last !== undefined && last.role === piece.role;
    if (joins) messages.pop();
    // A model's text is one text however it was cut; what people say in two messages stays two lines.
    const texts = [joins ? last.text : "", piece.text ?? ""].filter((text) => text !== "");
    messages.push({
      role: piece.role,
      text: texts.join(piece.role === "assistant" ? "" : "\n"),
      toolCalls: [...(joins ? last.toolCalls : []), ...(piece.toolCalls ?? [])],
      toolResults: [
        ...(joins ? last.toolResults : []),
        ...(piece.toolResults ?? []).map((result) => ({
          ...result,
          name: names.get(result.toolCallId) ?? "",
        })),
      ],
    });
  }
  return messages;
}

export interface ToolMismatch {
  readonly type: "unknown_call" | "missing_result" | "repeated_call";
  readonly id: string;
}

/**
 * The first place where tool calls and results do not pair up: the fault that a wrongly resumed agent makes.
 *
 * Stricter than OpenAI's Responses API in one point: the results must follow their calls with nothing in
 * between.
 */
export function findToolMismatch(messages: readonly ConversationMessage[]): ToolMismatch | undefined {
  const seen = new Set<string>();
  for (const [index, message] of messages.entries()) {
    for (const { id } of message.toolCalls) {
      if (seen.has(id)) return { type: "repeated_call", id };
      seen.add(id);
    }
    const answered = new Set(messages[index + 1]?.toolResults.map((result) => result.toolCallId));
    const unanswered = message.toolCalls.find((call) => !answered.has(call.id));
    if (unanswered !== undefined) return { type: "missing_result", id: unanswered.id };

    const asked = new Set(messages[index - 1]?.toolCalls.map((call) => call.id));
    const unasked = message.toolResults.find((result) => !asked.delete(result.toolCallId));
    if (unasked !== undefined) return { type: "unknown_call", id: unasked.toolCallId };
  }
  return undefined;
}
