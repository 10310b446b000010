// The models that real programs get: in `npm run agents` (`scriptedReply`), and where they are killed
// (`stepsReply`).

import { writeFileSync } from "node:fs";
import type { Conversation, ConversationTool, Reply } from "@holdfast/testkit";

const SHELLS = ["Bash", "bash", "exec_command", "shell", "run_shell_command"];

/**
 * `command:[…]` in the last message calls the shell of the program, `then:[…]` after its result once more,
 * and `canary-progress` a tool of its session. `recall` asks for the beginning of the conversation.
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

/** Does the words of the request in their order, by scripts of the project. Steps whose result it has seen are done. */
export function stepsReply({ messages, tools }: Conversation): Reply {
  const seen = JSON.stringify(messages);
  const said = messages.flatMap(({ role, text }) => (role === "user" ? [text] : []));
  // The last line with the most words is the request: other lines may be cut.
  const words = said
    .flatMap((text) => text.split("\n").map((line) => [...line.matchAll(/\b(step|gate|ask):([\w-]+)/g)]))
    .reduce((most, line) => (line.length >= most.length ? line : most), []);
  const names = [...new Map(words.map(([word, kind = "", name = ""]) => [word, { kind, name }])).entries()];
  for (const [, { kind, name }] of names) {
    if (seen.includes(`${kind} ${name} is done`)) continue;
    // A call that was cut off is named in the request to continue, or has no result that says it is done. It
    // is verified.
    const place = kind === "step" ? seen : said.join("\n");
    const isUncertain = place.includes(`${kind}.sh ${name}`);
    const call = shellCall(tools, `./${kind}.sh ${name}${isUncertain ? " verify" : ""}`);
    return call ?? { text: "A title" };
  }
  return { text: `Done: ${names.map(([word]) => word).join(" ")}` };
}

/** A call of the shell of the program. `undefined` where it is offered none, as in a request for a title. */
export function shellCall(tools: readonly ConversationTool[], command: string): Reply | undefined {
  const shell = SHELLS.find((name) => tools.some((tool) => tool.name === name));
  if (shell === undefined) return undefined;
  const input = shell === "exec_command" ? { cmd: command } : { command, description: "A step." };
  return { toolCalls: [{ name: shell, input }] };
}

/** Writes a command of the project. A rule allows it by its name, and no rule allows a script that is given to a shell. */
export function writeScript(path: string, lines: string): void {
  writeFileSync(path, `#!/bin/sh\n${lines}`, { mode: 0o755 });
}
