// `runOverDatabase`: a runner with `--ipc` over a database, which this process opens or reaches through its
// owner.
//
//   - It needs no coordinator, and all other commands of Holdfast work on the same database meanwhile.
//   - At its end it accepts nothing, lets running steps end within its grace, and hands over the rest. The
//     next runner continues every session.

import { clearInterval, setInterval } from "node:timers";
import { HoldfastError, type AgentTracer } from "@holdfast/core";
import type { Agent, Runtime } from "@holdfast/runtime";
import type { SecretSource } from "@holdfast/system";
import type { Io } from "@holdfast/terminal/frame/command";
import { recordingAnswers } from "@holdfast/place/answer-principals";
import { withOwnStorage } from "@holdfast/place/own-database";
import type { Database } from "@holdfast/place/project";
import type { StoppableWork } from "../run/typing/stopper.ts";
import { everyAgent } from "../agents/agent-tree.ts";
import { keepRuntime } from "../run/keep-runtime.ts";
import type { LoadedAgent } from "../run/load-agent.ts";
import type { RunnerCode } from "../run/runner-run.ts";
import { startOf } from "../run/starting/start-plan.ts";
import { startAt } from "../run/starting/start.ts";
import { wishOf, type IpcEnd, type IpcPlace, type IpcPlaceHost } from "./ipc-place.ts";
import { modelPrices } from "@holdfast/agents/prices";

/** How often it is looked whether another process has committed, because nothing tells. */
const LOOK_MS = 250;

export interface DatabaseRunner {
  readonly database: Database;
  readonly code: RunnerCode;
  readonly secrets: SecretSource;
  readonly strictBounds: boolean;
  readonly work: StoppableWork;
  readonly tracer: AgentTracer;
  readonly host: IpcPlaceHost;
  readonly until: Promise<IpcEnd>;
}

export async function runOverDatabase(runner: DatabaseRunner, io: Io): Promise<IpcEnd> {
  const { database, code, secrets, strictBounds, work, tracer, host, until } = runner;
  const prices = modelPrices();
  return withOwnStorage(database, io, ({ storage }) => {
    const closed = new AbortController();
    const news = new NewsByTrace(tracer);
    const lost = storage.lost?.then((error) => Promise.reject(error));
    return keepRuntime({
      database,
      runtime: {
        storage: recordingAnswers(storage),
        agents: code.agents,
        tasks: code.tasks,
        secrets,
        strictBounds,
        prices,
        tracer: news,
      },
      until: lost === undefined ? until : Promise.race([until, lost]),
      begun: (runtime, resumed) => {
        const place = databasePlace({
          runtime,
          at: database.path,
          code,
          news,
          closed: closed.signal,
          reader: storage.reader,
        });
        host.opened(place, resumed);
      },
      ending: async () => {
        await host.ending();
        closed.abort();
      },
      work,
    }).finally(() => closed.abort());
  });
}

interface PlaceParts extends Pick<IpcPlace, "at" | "closed" | "reader"> {
  readonly runtime: Runtime;
  readonly code: RunnerCode;
  readonly news: NewsByTrace;
}

function databasePlace({ runtime, code, news, ...place }: PlaceParts): IpcPlace {
  return {
    ...place,
    type: "database",
    requests: runtime,
    get live() {
      return runtime.live;
    },
    async start(request, sessionId) {
      const { agent, loaded } = agentNamed(request.agent, code);
      const start = startOf(loaded, request.input, sessionId, wishOf(request));
      await startAt(start, { type: "runtime", runtime, agent });
    },
    watch(sessionId, onNews) {
      const timer = setInterval(onNews, LOOK_MS);
      const forget = news.listen(sessionId, onNews);
      return () => {
        clearInterval(timer);
        forget();
      };
    },
  };
}

/** @throws HoldfastError `agent_not_found`. */
function agentNamed(
  name: string,
  { agents, loaded }: RunnerCode,
): { readonly agent: Agent; readonly loaded: Pick<LoadedAgent, "source" | "record"> | undefined } {
  for (const top of agents)
    for (const agent of everyAgent(top)) {
      if (agent.name !== name) continue;
      const found = loaded.find((one) => one.agent === top);
      // A child comes with the file of its parent, and its own limits are not known here.
      return { agent, loaded: agent === top || found === undefined ? found : { source: found.source } };
    }
  throw new HoldfastError("agent_not_found", `the runner has no agent "${name.slice(0, 100)}"`, {
    at: "/agent",
    expected: agents.map((agent) => agent.name).join(", "),
    fix: "name an agent of `ready`, or start the runner with the agent's file",
  });
}

/** A tracer that passes events on, and tells listeners of a session that something was committed here. */
class NewsByTrace implements AgentTracer {
  readonly #tracer: AgentTracer;
  readonly #listeners = new Map<string, Set<() => void>>();

  constructor(tracer: AgentTracer) {
    this.#tracer = tracer;
  }

  trace(event: Parameters<AgentTracer["trace"]>[0]): void {
    if (event.type === "committed" || event.type === "session_ended")
      for (const listener of this.#listeners.get(event.sessionId) ?? []) listener();
    this.#tracer.trace(event);
  }

  traceparent(...asked: Parameters<NonNullable<AgentTracer["traceparent"]>>): string | undefined {
    return this.#tracer.traceparent?.(...asked);
  }

  listen(sessionId: string, listener: () => void): () => void {
    const listeners = this.#listeners.get(sessionId) ?? new Set();
    this.#listeners.set(sessionId, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.#listeners.delete(sessionId);
    };
  }
}
