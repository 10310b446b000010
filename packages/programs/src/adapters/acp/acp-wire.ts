// `AcpWire`: the output of a program of the Agent Client Protocol as its messages.
//
// It knows lines and not their meaning. Limits and keys are those of acp-agent-4.

import type { AnyMessage } from "@agentclientprotocol/sdk";
import { OutputLines, type Redactor } from "@holdfast/system";

import { parseFields } from "../../session/fields.ts";
import { AGENT_PROCESS, LINE_TOO_LONG } from "../../session/program/agent-process.ts";

/** The messages that the program writes, one a line (acp-agent-4). */
export class AcpWire {
  readonly messages: ReadableStream<AnyMessage>;
  readonly redactor: Redactor;
  broken: string | undefined;
  /** Called once, when the output cannot be used. */
  onBroken: () => void = () => {};
  readonly #lines = new OutputLines(AGENT_PROCESS.lineChars);
  #controller: ReadableStreamDefaultController<AnyMessage> | undefined;

  readonly #onLine: ((line: string) => void) | undefined;

  constructor(redactor: Redactor, onLine?: (line: string) => void) {
    this.redactor = redactor;
    this.#onLine = onLine;
    this.messages = new ReadableStream({ start: (controller) => void (this.#controller = controller) });
  }

  push(text: string): void {
    if (this.broken !== undefined) return;
    for (const line of this.#lines.push(text)) {
      const redacted = this.redactor.text(line);
      this.#onLine?.(redacted);
      const message = parse(redacted);
      if (message !== undefined) this.#controller?.enqueue(message);
    }
    if (!this.#lines.isTooLong) return;
    this.broken = LINE_TOO_LONG;
    this.onBroken();
  }
}

function parse(line: string): AnyMessage | undefined {
  const message = parseFields(line);
  return message?.["jsonrpc"] === "2.0" ? (message as unknown as AnyMessage) : undefined;
}

/** The connection was closed, because the process ended. */
export function isClosed(error: unknown): boolean {
  return (
    error instanceof Error &&
    /closed/i.test(error.message) &&
    !("code" in error && typeof error.code === "number")
  );
}
