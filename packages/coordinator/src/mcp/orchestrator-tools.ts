// `orchestratorServer`: the seven tools by which an agent anywhere starts sessions and gets their results, as
// an MCP server.
//
//   - The names and modes are those of the earlier orchestrator, so its clients work unchanged.
//   - A question of a session is put to the person at the client, where the client can ask. Otherwise the
//     result names the question and the way to answer it. No question is answered without a person.
//   - An error is a result that a model can act on.
//   - A client that knows tasks gets one for a call that takes long (`session-tasks.ts`).

import { clearInterval, setInterval } from "node:timers";
import { defined, toHoldfastError, UsageError, VERSION } from "@holdfast/core";
import {
  CLIENT_CAPABILITIES_META_KEY,
  createRequestStateCodec,
  inputRequired,
  McpServer,
  type CallToolResult,
  type InputRequiredResult,
  type RequestStateCodec,
  type ServerContext,
} from "@modelcontextprotocol/server";
import {
  INPUT_CHARS,
  SESSION_TOOLS,
  type SessionToolInput,
  type SessionToolName,
} from "@holdfast/proto/session-tools";
import { z } from "zod";

import { answerOf, questionForm, type GivenAnswer } from "./client-questions.ts";
import type { Orchestrator } from "./orchestrator.ts";
import { inputInFolder } from "./project-folder.ts";
import { SessionCalls } from "./session-calls.ts";
import { SessionTasks, TASKS_EXTENSION } from "./session-tasks.ts";
import { turnOf, type SessionTurn } from "../endpoint/session-turn.ts";
import { failure, result, statusOf, turnResult } from "./tool-results.ts";

const PROGRESS_MS = 10_000;
const TOOL_NAME_CHARS = 64;
/** A person may answer a question so long after it was asked. */
const ANSWER_SECONDS = 30 * 86_400;
/** A call of a client that knows tasks becomes one after so long. */
const TASK_AFTER_MS = 2_000;

/** The state of a call that waits for the answer to a question, as the client carries it. */
interface Asked {
  readonly sessionId: string;
  readonly question: string;
  readonly isApproval: boolean;
  readonly after: string;
}

type StartMode = SessionToolInput<"start_agent_session">["mode"];
type Outcome = CallToolResult | InputRequiredResult;

export async function orchestratorServer(orchestrator: Orchestrator): Promise<McpServer> {
  const codec = createRequestStateCodec<Asked>({
    key: orchestrator.stateKey,
    bind: () => orchestrator.caller,
    ttlSeconds: ANSWER_SECONDS,
  });
  const server = new McpServer(
    { name: "holdfast", version: VERSION },
    { capabilities: { tools: {} }, requestState: { verify: codec.verify } },
  );
  const tools = new OrchestratorTools(server, orchestrator, codec);
  tools.register();
  if (orchestrator.settings.offersAgents) await tools.registerAgents();
  return server;
}

class OrchestratorTools {
  readonly #server: McpServer;
  readonly #orchestrator: Orchestrator;
  readonly #calls: SessionCalls;
  readonly #codec: RequestStateCodec<Asked>;
  readonly #tasks: SessionTasks;

  constructor(server: McpServer, orchestrator: Orchestrator, codec: RequestStateCodec<Asked>) {
    this.#server = server;
    this.#orchestrator = orchestrator;
    this.#calls = new SessionCalls(orchestrator);
    this.#codec = codec;
    this.#tasks = new SessionTasks({ orchestrator, calls: this.#calls, canAsk: (ctx) => this.#canAsk(ctx) });
  }

  register(): void {
    this.#tasks.register(this.#server);
    this.#tool("list_agent_blueprints", () => this.#listAgents());
    this.#tool("list_agent_sessions", ({ cursor }) => this.#listSessions(cursor));
    this.#tool("start_agent_session", async (given, ctx) => {
      const agent = await this.#calls.agentNamed(given.agent_name);
      const input = await this.#inputFor(agent, given);
      const { mode, idempotency_key: key, timeout_seconds: seconds } = given;
      return this.#start({ agent, input, mode, key, seconds }, ctx);
    });
    this.#tool("resume_agent_session", async (given, ctx) => {
      const asked = ctx.mcpReq.requestState<Asked>();
      if (asked !== undefined) return this.#takeAnswer(asked, ctx);
      this.#refuseCallback(given.mode);
      const after = await this.#calls.prompt(given.session_id, given.parameters, given.idempotency_key);
      return given.mode === "sync"
        ? this.#awaitTurn(given.session_id, ctx, after)
        : result({ session_id: given.session_id, status: "running" });
    });
    this.#tool("get_agent_session_status", async ({ session_id }) => {
      const session = await this.#calls.get(session_id);
      return session === undefined
        ? result({ session_id, status: "not_existent" })
        : turnResult(session_id, turnOf(session), false);
    });
    this.#tool("get_agent_session_result", async ({ session_id }) => {
      const session = await this.#calls.get(session_id);
      if (session === undefined)
        return failure(`there is no session ${session_id}; call list_agent_sessions`);
      const turn = turnOf(session);
      if (turn.type === "finished") this.#orchestrator.memory.answer(session_id);
      return turnResult(session_id, turn);
    });
    this.#tool("delete_all_agent_sessions", () => this.#deleteEnded());
  }

  #tool<Name extends SessionToolName>(
    name: Name,
    work: (given: SessionToolInput<Name>, ctx: ServerContext) => Promise<Outcome>,
  ): void {
    const tool: { readonly description: string; readonly input: z.ZodObject; readonly readsOnly?: true } =
      SESSION_TOOLS[name];
    const annotations = tool.readsOnly === true ? { readOnlyHint: true } : undefined;
    this.#server.registerTool(
      name,
      {
        description: tool.description,
        inputSchema: tool.input,
        ...(name === "delete_all_agent_sessions" ? { annotations: { destructiveHint: true } } : {}),
        ...defined({ annotations }),
      },
      (given, ctx) => this.#answered(() => work(given as SessionToolInput<Name>, ctx)),
    );
  }

  /** Each agent as a tool of its own. */
  async registerAgents(): Promise<void> {
    const names = new Set<string>();
    for (const { name } of await this.#calls.agents()) {
      const tool = `agent_${name}`.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(0, TOOL_NAME_CHARS);
      if (names.has(tool)) continue;
      names.add(tool);
      this.#server.registerTool(
        tool,
        {
          description: `Let the agent "${name}" do a piece of work, and wait for the result.`,
          inputSchema: z.object({
            prompt: z.string().min(1).max(INPUT_CHARS),
            idempotency_key: SESSION_TOOLS.start_agent_session.input.shape.idempotency_key,
          }),
        },
        ({ prompt, idempotency_key }, ctx) =>
          this.#answered(() =>
            this.#start({ agent: name, input: { prompt }, mode: "sync", key: idempotency_key }, ctx),
          ),
      );
    }
  }

  async #listAgents(): Promise<Outcome> {
    return result({
      agents: (await this.#calls.agents()).map(({ name, versions, tags, inputSchema }) => ({
        name,
        versions,
        ...(tags.length === 0 ? {} : { tags }),
        ...(inputSchema === undefined ? {} : { parameters_schema: parsed(inputSchema) }),
      })),
    });
  }

  async #listSessions(cursor: string | undefined): Promise<Outcome> {
    const page = await this.#calls.list(cursor);
    const sessions = page.sessions.map((session) => ({
      session_id: session.sessionId,
      agent_name: session.agent,
      status: statusOf(turnOf(session)),
      detail: session.status,
      parent_session_id: session.parentSessionId ?? null,
      created_at: new Date(Number(session.createdAt)).toISOString(),
    }));
    return result({ sessions, next_cursor: page.nextCursor ?? null });
  }

  async #deleteEnded(): Promise<Outcome> {
    if (!this.#orchestrator.settings.mayDelete)
      throw new UsageError("deleting sessions is not enabled here", {
        fix: "ask the operator to set `mcp.deleteSessions`, or to start `holdfast mcp --allow-delete`",
      });
    return result(await this.#calls.deleteEnded());
  }

  async #inputFor(
    agent: string,
    { parameters, input, project_dir: folder }: SessionToolInput<"start_agent_session">,
  ): Promise<unknown> {
    if ((parameters === undefined) === (input === undefined))
      throw new UsageError("a session needs one input", { expected: "either parameters or input" });
    if (folder === undefined) return parameters ?? input;
    if (parameters === undefined)
      throw new UsageError("a whole input names its folder itself", {
        at: "project_dir",
        fix: "give parameters",
      });
    const { inputSchema } = (await this.#calls.agents()).find(({ name }) => name === agent) ?? {};
    const schema = inputSchema === undefined ? undefined : parsed(inputSchema);
    return inputInFolder({ agent, parameters, folder, schema });
  }

  async #start(
    call: {
      readonly agent: string;
      readonly input: unknown;
      readonly mode: StartMode;
      readonly key: string | undefined;
      readonly seconds?: number | undefined;
    },
    ctx: ServerContext,
  ): Promise<Outcome> {
    const asked = ctx.mcpReq.requestState<Asked>();
    if (asked !== undefined) return this.#takeAnswer(asked, ctx);
    this.#refuseCallback(call.mode);
    const callsBack = call.mode === "async_callback";
    const { agent, input, key, seconds } = call;
    const id = await this.#calls.start({ agent, input, key, callsBack, seconds });
    return call.mode === "sync" ? this.#awaitTurn(id, ctx) : result({ session_id: id, status: "running" });
  }

  #refuseCallback(wanted: StartMode): void {
    if (wanted !== "async_callback" || this.#orchestrator.parentSessionId !== undefined) return;
    throw new UsageError("a callback needs the session that is called back", {
      expected: "the header X-Agent-Session-Id, or `holdfast mcp --parent SESSION`",
      fix: "use the mode sync or async_poll",
    });
  }

  async #awaitTurn(id: string, ctx: ServerContext, after?: bigint): Promise<Outcome> {
    const stop = sendProgress(ctx, id);
    try {
      const knowsTasks = this.#declared(ctx, "extensions")?.[TASKS_EXTENSION] !== undefined;
      const wait = { after, ...(knowsTasks ? { waitMs: TASK_AFTER_MS } : {}) };
      const turn = await this.#calls.turn(id, ctx.mcpReq.signal, wait);
      if (turn.type !== "finished" && knowsTasks) return await this.#tasks.created(id, after, ctx);
      if (turn.type === "blocked" && this.#canAsk(ctx) && turn.question?.name !== undefined)
        return await this.#ask(id, turn, ctx, after);
      if (turn.type === "finished") this.#orchestrator.memory.answer(id);
      return turnResult(id, turn);
    } finally {
      stop();
    }
  }

  async #ask(
    id: string,
    { question, reason }: Extract<SessionTurn, { type: "blocked" }>,
    ctx: ServerContext,
    after = -1n,
  ): Promise<Outcome> {
    const isApproval = question?.answer === "approval";
    const asked: Asked = { sessionId: id, question: question?.name ?? "", isApproval, after: String(after) };
    return inputRequired({
      inputRequests: {
        answer: inputRequired.elicit({
          message: `Session ${id}: ${reason}`,
          requestedSchema: questionForm(isApproval),
        }),
      },
      requestState: await this.#codec.mint(asked, ctx),
    });
  }

  async #takeAnswer(
    { sessionId: id, question, isApproval, after }: Asked,
    ctx: ServerContext,
  ): Promise<Outcome> {
    const given = ctx.mcpReq.inputResponses?.["answer"] as GivenAnswer | undefined;
    const session = await this.#calls.get(id);
    if (given?.action !== "accept")
      return session === undefined ? failure(`there is no session ${id}`) : turnResult(id, turnOf(session));
    await this.#calls.answer(id, question, answerOf(given, isApproval));
    return this.#awaitTurn(id, ctx, BigInt(after));
  }

  #canAsk(ctx: ServerContext): boolean {
    return this.#declared(ctx, "elicitation") !== undefined;
  }

  /** A capability that the client declares: with each request, or before 2026-07-28 once. */
  #declared({ mcpReq }: ServerContext, name: string): Readonly<Record<string, unknown>> | undefined {
    const envelope: Readonly<Record<string, unknown>> | undefined = mcpReq.envelope;
    const declared = envelope?.[CLIENT_CAPABILITIES_META_KEY] ?? this.#server.server.getClientCapabilities();
    if (typeof declared !== "object" || declared === null) return undefined;
    const value = (declared as Readonly<Record<string, unknown>>)[name];
    return typeof value === "object" && value !== null
      ? (value as Readonly<Record<string, unknown>>)
      : undefined;
  }

  async #answered(work: () => Promise<Outcome>): Promise<Outcome> {
    try {
      return await work();
    } catch (thrown) {
      const { message, expected, fix } = toHoldfastError(thrown);
      const parts = [
        message,
        expected === undefined ? "" : `expected: ${expected}`,
        fix === undefined ? "" : `fix: ${fix}`,
      ];
      return failure(parts.filter(Boolean).join("\n"));
    }
  }
}

function parsed(json: Uint8Array): unknown {
  return JSON.parse(new TextDecoder().decode(json));
}

/** Tells a client that wants to know that the session still works. @returns how to stop. */
function sendProgress({ mcpReq }: ServerContext, id: string): () => void {
  // oxlint-disable-next-line no-underscore-dangle -- the protocol's name.
  const progressToken = mcpReq._meta?.progressToken;
  if (progressToken === undefined) return () => {};
  let progress = 0;
  const timer = setInterval(() => {
    progress++;
    const params = { progressToken, progress, message: `session ${id} works` };
    mcpReq.notify({ method: "notifications/progress", params }).catch(() => {});
  }, PROGRESS_MS);
  return () => clearInterval(timer);
}
