// The `screen` of a session for a person: the model's words as they come, each tool call in one line, and the
// plan.

import { createInterface } from "node:readline/promises";
import { describeEnd, type ModelReply } from "@holdfast/agents";
import { type ExecutionEnd } from "@holdfast/workspace";
import { readApproval, type AgentTracer, type Approval, type TraceEvent } from "holdfast";

export interface Question {
  readonly prompt: string;
  /** The plan that it is about. */
  readonly plan: string | undefined;
}

export interface ScreenOptions {
  readonly write: (text: string) => void;
  /** The session asks for an approval, and can be answered. */
  readonly onQuestion: (sessionId: string, question: Question) => void;
  /** It no longer asks: answered from here, or from another terminal. */
  readonly onAnswered: () => void;
  readonly onReply?: (reply: ModelReply) => void;
}

/** Shows a session while it runs. The output of models and commands is shown without control characters. */
export function screen({ write, onQuestion, onAnswered, onReply }: ScreenOptions): AgentTracer {
  const inputs = new Map<string, unknown>();
  let plan: string | undefined;
  /** The name of the open question. */
  let question: string | undefined;
  let isMidLine = false;

  const line = (text: string): void => {
    write(`${isMidLine ? "\n" : ""}${plain(text)}\n`);
    isMidLine = false;
  };

  return {
    trace(event) {
      switch (event.type) {
        case "task_started":
          if (question !== undefined) onAnswered();
          question = undefined;
          inputs.set(event.taskId, parse(event.input));
          if (event.attempt > 1) line(`  (${event.kind}: attempt ${event.attempt})`);
          break;
        case "task_delta":
          if (event.delta.type !== "token") break;
          if (!isMidLine) write("\n");
          write(plain(event.delta.text));
          isMidLine = true;
          break;
        case "task_ended":
          if (event.kind === "model" && event.outcome === "completed") {
            const reply = parse(event.output) as ModelReply;
            plan = planOf(reply);
            onReply?.(reply);
          } else line(toolLine(event, inputs.get(event.taskId)));
          inputs.delete(event.taskId);
          break;
        case "waiting": {
          const wait = event.waits.find(({ type }) => type === "input");
          if (wait?.type !== "input" || wait.name === question) break;
          question = wait.name;
          onQuestion(event.sessionId, { prompt: wait.prompt, plan });
          break;
        }
        case "warned":
          line(`  ! ${event.message}`);
          break;
        default: // Turns, entries and the end: start.ts tells the end, and the rest is seen in other ways.
      }
    },
  };
}

/** Ask on the terminal. `undefined` when the question was taken back. */
export async function askPerson(prompt: string, signal: AbortSignal): Promise<Approval | undefined> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  // Readline would keep Ctrl-C to itself.
  terminal.on("SIGINT", () => process.emit("SIGINT"));
  try {
    for (;;) {
      const approval = readApproval(await terminal.question(`${plain(prompt)} [y/n, and why] `, { signal }));
      if (approval === undefined) continue;
      if (approval.approved || approval.reason !== undefined) return approval;
      const reason = (await terminal.question("Why not? (the agent is told) ", { signal })).trim();
      return reason === "" ? { approved: false } : { approved: false, reason };
    }
  } catch (error) {
    if (signal.aborted) return undefined;
    throw error;
  } finally {
    terminal.close();
  }
}

export function showPlan(plan: string): string {
  return `The plan:\n${plain(plan).replaceAll(/^(?=.)/gm, "  ")}\n`;
}

/** Without control and formatting characters, which could move the cursor or hide what is there. */
export function plain(text: string): string {
  return text.replaceAll(/[^\P{C}\n\t]/gu, "");
}

function toolLine(event: Extract<TraceEvent, { type: "task_ended" }>, input: unknown): string {
  const what = subject(input);
  const end = endOf(parse(event.output));
  const failed = event.outcome === "completed" ? "" : ` ${event.error?.message ?? event.outcome}`;
  const result = end === undefined ? failed : ` -> ${describeEnd(end)}`;
  return `  ${event.outcome === "completed" ? "*" : "x"} ${event.kind}${what}${result} (${event.durationMs.toFixed(0)} ms)`.replaceAll(
    "\n",
    " ",
  );
}

function subject(input: unknown): string {
  const { command, path, pattern } = (input ?? {}) as Readonly<Record<string, unknown>>;
  const text = [command, pattern, path].find((part) => typeof part === "string");
  return text === undefined ? "" : ` ${text.slice(0, 100)}`;
}

function endOf(output: unknown): ExecutionEnd | undefined {
  return (output as { end?: ExecutionEnd } | null | undefined)?.end;
}

function planOf({ toolCalls }: ModelReply): string | undefined {
  const plan = toolCalls.find(({ name }) => name === "propose_plan")?.input["plan"];
  return typeof plan === "string" ? plan : undefined;
}

/** Inputs and outputs are traced as the text that is recorded. */
function parse(text: unknown): unknown {
  try {
    return typeof text === "string" ? JSON.parse(text) : text;
  } catch {
    return text;
  }
}
