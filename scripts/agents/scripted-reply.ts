// The model that real programs get in `npm run agents` (`scriptedReply`). Pure.

import type { Conversation, ConversationTool, Reply } from "@holdfast/testkit";

const SHELLS = ["Bash", "bash", "exec_command", "shell", "run_shell_command"];

/**
 * `command:[…]` in the last message calls the shell of the program, `then:[…]` after its result once more, and `canary-progress` a tool of its session.
 * `recall` asks for the beginning of the conversation.
 */
export function scriptedReply({ messages, tools }: Conversation): Reply {
  const last = messages.at(-1);
  if (last?.role === "tool") {
    const asked = messages.findLast(({ role }) => role === "user")?.text ?? "";
    const [, next] = /then:\[([^\]]*)\]/.exec(asked) ?? [];
    const isNext =
      next !== undefined && !JSON.stringify(messages.at(-2)?.toolCalls).includes("touch running");
    return (isNext ? shellCall(tools, next) : undefined) ?? { text: "The command has run." };
  }
  const text = last?.text ?? "";
  const progress = tools.find(({ name }) => name.includes("report_progress"));
  if (text.includes("canary-progress") && progress !== undefined)
    return { toolCalls: [{ name: progress.name, input: { text: "half" } }] };
  const command = [...text.matchAll(/command:\[([^\]]*)\]/g)].at(-1)?.[1];
  const call = command === undefined ? undefined : shellCall(tools, command);
  if (call !== undefined) return call;
  if (text.includes("canary-fail")) throw new Error("canary-model-error");
  if (text.includes("recall"))
    return {
      text: messages.slice(0, -1).some((one) => one.text.includes("canary-first")) ? "recalled" : "nothing",
    };
  return { text: "Hello." };
}

/** A call of the shell of the program. `undefined` where it is offered none, as in a request for a title. */
export function shellCall(tools: readonly ConversationTool[], command: string): Reply | undefined {
  const shell = SHELLS.find((name) => tools.some((tool) => tool.name === name));
  if (shell === undefined) return undefined;
  const input = shell === "exec_command" ? { cmd: command } : { command, description: "A step." };
  return { toolCalls: [{ name: shell, input }] };
}
