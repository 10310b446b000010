// `orchestratorServer`: the seven tools by which an agent anywhere starts sessions and gets their results, as an MCP server.
//
//   orchestrator-tools-1. The names and modes are those of the earlier orchestrator, so its clients work unchanged.
//   orchestrator-tools-2. A question of a session is put to the person at the client, where the client can ask. Otherwise the result names
//       the question and the way to answer it. No question is answered without a person.
//   orchestrator-tools-3. An error is a result that a model can act on.
//   orchestrator-tools-4. A client that knows tasks gets one for a call that takes long (`session-tasks.ts`).

import { toHoldfastError, UsageError, VERSION } from "@holdfast/core";
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
import { z } from "zod";

import { answerOf, questionForm, type GivenAnswer } from "./client-questions.ts";
import type { Orchestrator } from "./orchestrator.ts";
import { inputInFolder } from "./project-folder.ts";
import { SessionCalls } from "./session-calls.ts";
import { SessionTasks, TASKS_EXTENSION } from "./session-tasks.ts";
import { turnOf, type SessionTurn } from "./session-turn.ts";
import { failure, result, statusOf, turnResult } from "./tool-results.ts";

const INPUT_CHARS = 100_000;
const PROGRESS_MS = 10_000;
const TOOL_NAME_CHARS = 64;
/** A person may answer a question so long after it was asked. */
const ANSWER_SECONDS = 30 * 86_400;
/** A call of a client that knows tasks becomes one after so long. */
const TASK_AFTER_MS = 2_000;

const parameters = z
  .record(z.string(), z.unknown())
  .refine((value) => JSON.stringify(value).length <= INPUT_CHARS, {
    error: `expected at most ${INPUT_CHARS} characters of JSON`,
  });
const mode = z
  .enum(["sync", "async_poll", "async_callback"])
  .default("sync")
  .describe(
    "sync waits for the result. async_poll answers at once; ask for the status later. async_callback answers at once, and the calling session is resumed with the result.",
  );
const key = z
  .string()
  .regex(/^[\x21-\x7e]{1,200}$/)
  .optional()
  .describe(
    "Repeating a call with its key never does the work twice. Give each of several equal calls a key of its own.",
  );
const sessionId = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/);

/** The state of a call that waits for the answer to a question, as the client carries it. */
interface Asked {
  readonly sessionId: string;
  readonly question: string;
  readonly isApproval: boolean;
  readonly after: string;
}

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
    this.#registerReads();
    this.#server.registerTool(
      "start_agent_session",
      {
        description:
          'Start a session of an agent. Most agents take `{"prompt": "…"}` as parameters. The session is durable: it continues although this call ends.',
        inputSchema: z.object({
          parameters,
          agent_name: z
            .string()
            .min(1)
            .max(200)
            .optional()
            .describe("list_agent_blueprints lists the agents"),
          project_dir: z
            .string()
            .min(1)
            .max(1_000)
            .optional()
            .describe("the folder to work in, for executors and agents with this parameter"),
          mode,
          idempotency_key: key,
        }),
      },
      (given, ctx) =>
        this.#answered(async () => {
          const agent = await this.#calls.agentNamed(given.agent_name);
          const input = await this.#inputFor(agent, given.parameters, given.project_dir);
          return this.#start({ agent, input, mode: given.mode, key: given.idempotency_key }, ctx);
        }),
    );
    this.#server.registerTool(
      "resume_agent_session",
      {
        description: "Send the next prompt to a session whose turn is finished.",
        inputSchema: z.object({
          session_id: sessionId,
          parameters: parameters.describe('such as {"prompt": "…"}'),
          mode,
          idempotency_key: key,
        }),
      },
      (given, ctx) =>
        this.#answered(async () => {
          const asked = ctx.mcpReq.requestState<Asked>();
          if (asked !== undefined) return this.#takeAnswer(asked, ctx);
          this.#refuseCallback(given.mode);
          const after = await this.#calls.prompt(given.session_id, given.parameters, given.idempotency_key);
          return given.mode === "sync"
            ? this.#awaitTurn(given.session_id, ctx, after)
            : result({ session_id: given.session_id, status: "running" });
        }),
    );
    this.#server.registerTool(
      "delete_all_agent_sessions",
      {
        description: "Delete the ended sessions that you started by these tools.",
        inputSchema: z.object({}),
        annotations: { destructiveHint: true },
      },
      () =>
        this.#answered(async () => {
          if (!this.#orchestrator.settings.mayDelete)
            throw new UsageError("deleting sessions is not enabled here", {
              fix: "ask the operator to set `mcp.deleteSessions`, or to start `holdfast mcp --allow-delete`",
            });
          return result(await this.#calls.deleteEnded());
        }),
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
          inputSchema: z.object({ prompt: z.string().min(1).max(INPUT_CHARS), idempotency_key: key }),
        },
        ({ prompt, idempotency_key }, ctx) =>
          this.#answered(() =>
            this.#start({ agent: name, input: { prompt }, mode: "sync", key: idempotency_key }, ctx),
          ),
      );
    }
  }

  #registerReads(): void {
    const annotations = { readOnlyHint: true };
    this.#server.registerTool(
      "list_agent_blueprints",
      { description: "List the agents that can be started.", inputSchema: z.object({}), annotations },
      () =>
        this.#answered(async () =>
          result({
            agents: (await this.#calls.agents()).map(({ name, versions, tags, inputSchema }) => ({
              name,
              versions,
              ...(tags.length === 0 ? {} : { tags }),
              ...(inputSchema === undefined ? {} : { parameters_schema: parsed(inputSchema) }),
            })),
          }),
        ),
    );
    this.#server.registerTool(
      "list_agent_sessions",
      {
        description: "List sessions, the newest first.",
        inputSchema: z.object({
          cursor: z.string().max(1_000).optional().describe("next_cursor of the page before"),
        }),
        annotations,
      },
      ({ cursor }) =>
        this.#answered(async () => {
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
        }),
    );
    this.#server.registerTool(
      "get_agent_session_status",
      {
        description: "The status of a session: running, finished or not_existent.",
        inputSchema: z.object({ session_id: sessionId }),
        annotations,
      },
      ({ session_id }) =>
        this.#answered(async () => {
          const session = await this.#calls.get(session_id);
          return session === undefined
            ? result({ session_id, status: "not_existent" })
            : turnResult(session_id, turnOf(session), false);
        }),
    );
    this.#server.registerTool(
      "get_agent_session_result",
      {
        description: "The result of a session whose turn is finished.",
        inputSchema: z.object({ session_id: sessionId }),
        annotations,
      },
      ({ session_id }) =>
        this.#answered(async () => {
          const session = await this.#calls.get(session_id);
          if (session === undefined)
            return failure(`there is no session ${session_id}; call list_agent_sessions`);
          const turn = turnOf(session);
          if (turn.type === "finished") this.#orchestrator.memory.answer(session_id);
          return turnResult(session_id, turn);
        }),
    );
  }

  async #inputFor(
    agent: string,
    given: Readonly<Record<string, unknown>>,
    folder: string | undefined,
  ): Promise<unknown> {
    if (folder === undefined) return given;
    const { inputSchema } = (await this.#calls.agents()).find(({ name }) => name === agent) ?? {};
    const schema = inputSchema === undefined ? undefined : parsed(inputSchema);
    return inputInFolder({ agent, parameters: given, folder, schema });
  }

  async #start(
    call: {
      readonly agent: string;
      readonly input: unknown;
      readonly mode: z.infer<typeof mode>;
      readonly key: string | undefined;
    },
    ctx: ServerContext,
  ): Promise<Outcome> {
    const asked = ctx.mcpReq.requestState<Asked>();
    if (asked !== undefined) return this.#takeAnswer(asked, ctx);
    this.#refuseCallback(call.mode);
    const callsBack = call.mode === "async_callback";
    const id = await this.#calls.start({ agent: call.agent, input: call.input, key: call.key, callsBack });
    return call.mode === "sync" ? this.#awaitTurn(id, ctx) : result({ session_id: id, status: "running" });
  }

  #refuseCallback(wanted: z.infer<typeof mode>): void {
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
      // orchestrator-tools-4.
      if (turn.type !== "finished" && knowsTasks) return await this.#tasks.created(id, after, ctx);
      if (turn.type === "blocked" && this.#canAsk(ctx) && turn.question?.name !== undefined)
        return await this.#ask(id, turn, ctx, after);
      if (turn.type === "finished") this.#orchestrator.memory.answer(id);
      return turnResult(id, turn);
    } finally {
      stop();
    }
  }

  /** orchestrator-tools-2. */
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

  /** orchestrator-tools-3. */
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
