// `createA2aEndpoint`: the agents that runners offer, as agents of A2A 1.0 over JSON-RPC and server-sent events.
//
//   - Each agent has an address, `/a2a/AGENT/`, and its card below it. A client that was given no agent finds the
//     card of the only one at the usual place, and otherwise the addresses of all.
//   - A request needs a token, also for a card: cards say which agents exist. Methods of the contract decide what
//     a caller may do, as for every other protocol (`callerTransport`).
//   - The parts of the SDK that keep tasks are not used, because a task is a session (agent-tasks-1).

import { createClient } from "@connectrpc/connect";
import type { HoldfastError } from "@holdfast/core";
import { RunnerService, SessionService } from "@holdfast/proto";

import type { Endpoint } from "../api/api.ts";
import type { Calls } from "../api/calls.ts";
import { sendEvents } from "../api/event-stream.ts";
import { answer, readAll, type Exchange } from "../api/exchange.ts";
import type { ApiLimits } from "../api/limits.ts";
import { checkBody, checkJsonType } from "../api/request-guards.ts";
import { headersOf, Refusal } from "../call/refusal.ts";
import { callerTransport } from "../endpoint/caller-transport.ts";

const CARD = ".well-known/agent-card.json";
/** Where clients look for a card: below the address without an agent, and beside an address without its last slash. */
const ANY_CARD: ReadonlySet<string> = new Set([`/${CARD}`, `/a2a/${CARD}`]);
const OF_AGENT = /^\/a2a\/(?<agent>[^/]+)(?:\/(?<below>.*))?$/s;
const JSON_TYPE = "application/json";
const VERSION = /^1\.0(\.\d+)?$/;
const VERSION_HEADER = "a2a-version";
const VERSION_CODE = -32_009;

type Protocol = typeof import("./a2a-protocol.ts");

export function createA2aEndpoint(limits: ApiLimits): Endpoint {
  let loaded: Promise<Protocol> | undefined;
  return {
    serves: (path) => ANY_CARD.has(path) || OF_AGENT.test(path),
    async serve(exchange, calls, failed) {
      const { path, request } = exchange;
      const { agent, below = "" } = OF_AGENT.exec(path)?.groups ?? {};
      const asksCard = ANY_CARD.has(path) || below === CARD;
      if (!asksCard && below !== "") throw new Refusal("not_found", "the path does not exist");
      refuseMethod(request.method, asksCard ? "GET" : "POST");
      const clients = await clientsFor(exchange, calls);
      // The SDK takes some time to load, and most coordinators never need it.
      loaded ??= import("./a2a-protocol.ts");
      const protocol = await loaded;
      const name = ANY_CARD.has(path) ? await onlyAgent(clients) : agentIn(agent);
      const gone = new AbortController();
      exchange.response.once("close", () => gone.abort());
      let error: HoldfastError | undefined;
      const tasks = new protocol.AgentTasks({
        ...clients,
        agent: name,
        url: addressOf(exchange, name),
        requestId: exchange.requestId,
        signal: gone.signal,
        failed: (thrown) => {
          error = thrown;
          failed(thrown);
        },
      });
      if (asksCard)
        return answer(exchange, 200, JSON_TYPE, JSON.stringify(protocol.cardJson(await tasks.card())));
      await serveCall(exchange, { protocol, tasks, limits, error: () => error });
    },
  };
}

function refuseMethod(method: string | undefined, expected: string): void {
  if (method === expected || (method === "HEAD" && expected === "GET")) return;
  throw new Refusal("method_not_allowed", `this path takes ${expected}`, {
    expected,
    headers: { Allow: expected },
  });
}

async function clientsFor({ request, requestId }: Exchange, calls: Calls) {
  const { authorization } = request.headers;
  const caller = await calls.authenticate(authorization);
  const transport = callerTransport({ calls, caller, authorization, requestId });
  return {
    sessions: createClient(SessionService, transport),
    runners: createClient(RunnerService, transport),
    owner: caller.owner ?? "",
  };
}

function agentIn(segment = ""): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw new Refusal("bad_path", "the name of the agent cannot be read", {
      expected: "a name in the encoding of addresses",
    });
  }
}

/** The agent of a card at the usual place. @throws Refusal that lists the addresses where there are several. */
async function onlyAgent({ runners }: Awaited<ReturnType<typeof clientsFor>>): Promise<string> {
  const { agents } = await runners.listAgents({});
  const [only] = agents;
  if (only !== undefined && agents.length === 1) return only.name;
  const addresses = agents.slice(0, 20).map(({ name }) => pathOf(name));
  throw new Refusal(
    "not_found",
    `runners offer ${agents.length} agents to this caller, and each has its own card`,
    {
      expected: agents.length === 0 ? "a runner that offers an agent" : `one of ${addresses.join(", ")}`,
      fix: "give the client the address of an agent, with the slash at its end",
    },
  );
}

function pathOf(agent: string): string {
  return `/a2a/${encodeURIComponent(agent)}/`;
}

/** By the name that the caller uses, which the guards have checked. */
function addressOf({ request }: Exchange, agent: string): string {
  const { headers, socket } = request;
  const isSecure = "encrypted" in socket && socket.encrypted === true;
  const host = headers.host ?? headers[":authority"];
  return `${isSecure ? "https" : "http"}://${String(host)}${pathOf(agent)}`;
}

interface Serving {
  readonly protocol: Protocol;
  readonly tasks: InstanceType<Protocol["AgentTasks"]>;
  readonly limits: ApiLimits;
  /** The last error of the call. */
  readonly error: () => HoldfastError | undefined;
}

async function serveCall(exchange: Exchange, { protocol, tasks, limits, error }: Serving): Promise<void> {
  const { rawHeaders } = exchange.request;
  checkBody(rawHeaders, limits.bodyBytes);
  const body = await readAll(exchange, limits.bodyBytes);
  checkJsonType(rawHeaders);
  const read = protocol.readRequest(body);
  const send = (value: object, of?: HoldfastError): void =>
    answer(
      exchange,
      of === undefined ? 200 : protocol.statusFor(of),
      JSON_TYPE,
      JSON.stringify(value),
      of === undefined ? {} : headersOf(of),
    );
  const refused = versionProblem(exchange);
  if (refused !== undefined) return send({ jsonrpc: "2.0", id: read.id, error: refused });
  if (read.type === "refused") return send({ jsonrpc: "2.0", id: read.id, error: read.error });
  const answered = await protocol.handle(tasks, read.request);
  if (!(Symbol.asyncIterator in answered)) return send(answered, "error" in answered ? error() : undefined);
  const errorOf = (thrown: unknown): object => ({
    jsonrpc: "2.0",
    id: read.id,
    error: protocol.errorJson(thrown),
  });
  const first = await answered.next().catch((thrown: unknown) => thrown as Error);
  if (first instanceof Error) return send(errorOf(first), error());
  await sendEvents(exchange, { answers: from(first, answered), eventOf, errorOf }, limits);
}

type Answers = AsyncGenerator<object, void, undefined>;

async function* from(first: IteratorResult<object, void>, answers: Answers): AsyncGenerator<object> {
  try {
    if (first.done === true) return;
    yield first.value;
    yield* answers;
  } finally {
    await answers.return();
  }
}

function eventOf(value: object): Buffer {
  return Buffer.from(`data: ${JSON.stringify(value)}\n\n`);
}

/** A client that names no version speaks 0.3, by the protocol. */
function versionProblem({
  request,
  query,
}: Exchange): { readonly code: number; readonly message: string } | undefined {
  const given = request.headers[VERSION_HEADER] ?? new URLSearchParams(query).get("A2A-Version") ?? "";
  if (VERSION.test(String(given))) return undefined;
  const said =
    given === "" ? "the request names no version, which means 0.3" : `version ${String(given).slice(0, 40)}`;
  return {
    code: VERSION_CODE,
    message: `${said}: this agent speaks A2A 1.0; send the header A2A-Version: 1.0`,
  };
}
