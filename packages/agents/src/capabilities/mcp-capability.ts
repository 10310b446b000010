// `mcpCapability`: tools of MCP servers in sessions of the model loop, as `mcp__SERVER__TOOL`.
//
//   mcp-capability-1. A session keeps the servers and the tools of its start. A server that changes its tools later changes no offer.
//   mcp-capability-2. The annotations of a tool are hints for the effect class alone. They permit nothing: without a rule each call asks.
//   mcp-capability-3. A call that neither only reads nor may be repeated is sent once. When its answer is lost, the model is told so.
//       A call that the server has not begun is sent again, like every failed task.
//   mcp-capability-4. State and journal have the settings of a server as they were written, with placeholders instead of values.

import { type EffectClass, HoldfastError } from "@holdfast/core";
import { defineTask, type TaskContext } from "@holdfast/runtime";

import type { McpServer } from "../agent-files/agent-record.ts";
import { CallLostError, saysSignIn, ServerFailedError, signInAdvice } from "../mcp/call-errors.ts";
import { MCP_LIMITS } from "../mcp/limits.ts";
import type { McpServers } from "../mcp/mcp-servers.ts";
import { resultText } from "../mcp/result-text.ts";
import { readTools, type McpToolFact } from "../mcp/server-tools.ts";
import type { Capability } from "../model-loop/capability.ts";
import { cutText, renderResult, type Tool } from "../model-loop/tool.ts";

type ServerFact = {
  readonly name: string;
  readonly server: McpServer;
  readonly folder: string;
  readonly instructions: string;
  readonly tools: readonly McpToolFact[];
  /** Tools that are not offered, each with the reason. */
  readonly leftOut: readonly string[];
};

interface CallInput {
  readonly name: string;
  readonly server: McpServer;
  readonly folder: string;
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
}

interface CallOutput {
  readonly text: string;
  readonly isError: boolean;
}

const UNCERTAIN =
  "The call was sent, and nobody knows whether it took effect. Find out before you repeat it.";

// oxlint-disable-next-line typescript/no-explicit-any -- facts are JSON, and the type of a server is a union.
export function mcpCapability(servers: McpServers): Capability<any> {
  const call = async (input: CallInput, task: TaskContext, effect: EffectClass): Promise<CallOutput> => {
    const { name, server, folder, tool, args } = input;
    const session = { sessionId: task.sessionId, name, server, folder };
    try {
      return await servers.with(session, async ({ connection, redactor }) => {
        try {
          const result = await connection.call({
            tool,
            args,
            signal: task.signal,
            meta: {},
            onProgress: (progress) => task.progress(redactor.value(progress)),
          });
          const text = redactor.text(cutText(resultText(result), MCP_LIMITS.resultChars));
          const isError = result.isError === true;
          // Some servers say in a result that the sign-in has expired.
          return { text: isError && saysSignIn(text) ? `${text}\n${signInAdvice(name)}` : text, isError };
        } catch (error) {
          if (error instanceof ServerFailedError && connection.hasNewTools)
            throw new ServerFailedError(
              `${error.message}. The server has changed its tools since this session began.`,
            );
          throw error;
        }
      });
    } catch (error) {
      if (error instanceof ServerFailedError) return { text: error.message, isError: true };
      // mcp-capability-3.
      if (error instanceof CallLostError && effect === "once")
        return { text: `${error.message}. ${UNCERTAIN}`, isError: true };
      throw error;
    }
  };
  const taskOf = (name: string, effect: EffectClass) =>
    defineTask<CallInput, CallOutput>({
      name,
      description: "Call a tool of an MCP server",
      effect,
      retry: { nonRetryable: ["config_invalid"] },
      guardRepeats: true,
      run: (input, task) => call(input, task, effect),
      ...(effect === "once" ? { sessionLeft: (sessionId) => servers.leave(sessionId) } : {}),
    });
  const tasks = {
    read: taskOf("mcp_read", "read"),
    repeatable: taskOf("mcp_repeat", "repeatable"),
    once: taskOf("mcp_call", "once"),
  };

  const toolOf = (
    { name, server, folder }: ServerFact,
    { offered, tool, description, inputSchema, effect }: McpToolFact,
  ): Tool => ({
    offered: { name: offered, description, inputSchema },
    isReading: false, // mcp-capability-2.
    subjectKind: "text",
    prepare: (given) => {
      if (typeof given !== "object" || given === null || Array.isArray(given))
        throw new HoldfastError("invalid_input", `the arguments of ${offered} are no JSON object`);
      const input: CallInput = { name, server, folder, tool, args: { ...given } };
      return {
        subject: null,
        schedule: async (ctx) => {
          let isError = false;
          const outcome = await renderResult(async () => {
            const result = await ctx.scheduleTask(tasks[effect], input);
            ({ isError } = result);
            return result.text;
          });
          return isError ? { ...outcome, isError } : outcome;
        },
      };
    },
  });

  return {
    name: "mcp",
    tasks: Object.values(tasks),
    prepare: async ({ agent, workspace }, task) => {
      const facts: ServerFact[] = [];
      for (const [name, server] of Object.entries(agent.mcpServers)) {
        if (typeof server === "string")
          throw new HoldfastError("agent_invalid", `there are no settings for the MCP server "${server}"`);
        const folder = workspace.root;
        const session = { sessionId: task.sessionId, name, server, folder };
        const found = await servers.with(session, async ({ connection }) => ({
          ...readTools(name, await connection.tools(), server.enabledTools),
          instructions: cutText(connection.instructions, MCP_LIMITS.instructionsChars),
        }));
        facts.push({ name, server, folder, ...found });
      }
      return facts.length === 0 ? null : facts;
    },
    offer: (facts: readonly ServerFact[]) => ({
      instructions: facts.map(promptPart).join("\n"),
      tools: facts.flatMap((fact) => fact.tools.map((tool) => toolOf(fact, tool))),
    }),
  };
}

function promptPart({ name, tools, instructions, leftOut }: ServerFact): string {
  const said = instructions === "" ? "" : ` The server says of itself: ${instructions}`;
  const missing = leftOut.length === 0 ? "" : ` Not offered: ${leftOut.join("; ")}.`;
  return `The MCP server ${name} has ${tools.length} tools.${missing}${said}`;
}
