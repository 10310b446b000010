// `runOverCoordinator`: a runner with `--ipc` of a coordinator. The coordinator decides which sessions run
// here.
//
//   - The host's requests go to the coordinator under the host's own token, and the runner has another one. A
//     session that the host starts may therefore run at another runner; its events come all the same.
//   - While the coordinator is away the runner continues, and requests and events wait.

import { clearInterval, setInterval } from "node:timers";
import { HoldfastError, type AgentTracer } from "@holdfast/core";
import { requestsOver } from "@holdfast/runtime";
import type { RunnerEvent, RunnerOptions } from "@holdfast/runner";
import type { Io } from "@holdfast/terminal/frame/command";
import type { CoordinatorAccess } from "@holdfast/place/coordinator-access";
import { withRemoteStorage } from "@holdfast/place/find-session";
import { keepRunner, stoppable } from "../run/runner-run.ts";
import { logEvent } from "../run/runner/runner-log.ts";
import { startOf } from "../run/starting/start-plan.ts";
import { startAt } from "../run/starting/start.ts";
import type { StoppableWork } from "../run/typing/stopper.ts";
import { createClient, type HoldfastClient } from "@holdfast/client";
import { wishOf, type IpcEnd, type IpcPlace, type IpcPlaceHost } from "./ipc-place.ts";

/** How often it is looked in addition to what the coordinator reports. */
const LOOK_MS = 2_000;

export interface CoordinatorRunner {
  readonly options: RunnerOptions;
  /** With the host's token. */
  readonly access: CoordinatorAccess;
  readonly tracer: AgentTracer;
  readonly host: IpcPlaceHost;
  readonly until: Promise<IpcEnd>;
  readonly work: StoppableWork;
}

export async function runOverCoordinator(
  { options, access, tracer, host, until, work }: CoordinatorRunner,
  io: Io,
): Promise<IpcEnd> {
  const closed = new AbortController();
  const client = createClient({ url: access.url, token: access.token, retryMs: Infinity });
  try {
    return await withRemoteStorage(access, async ({ storage }) => {
      const place: Omit<IpcPlace, "live"> = {
        type: "coordinator",
        at: access.url,
        reader: storage.reader,
        requests: requestsOver(storage),
        closed: closed.signal,
        async start(request, sessionId) {
          const start = startOf(undefined, request.input, sessionId, wishOf(request));
          await startAt(start, { type: "runners", client, name: request.agent });
        },
        watch: (sessionId, onNews) => watch(client, storage.reader, sessionId, onNews),
      };
      const end = await keepRunner({
        options: { ...options, tracer },
        io,
        log: (event) => {
          logEvent(event, io);
          warnOf(event, host);
        },
        until,
        begun: (runner) => {
          work.begins(stoppable(runner));
          const live = { get: () => runner.health().held };
          host.opened(Object.defineProperty(place, "live", live) as IpcPlace, []);
        },
        ending: () => host.ending(),
      });
      if (HoldfastError.is(end)) throw end;
      return end ?? { reason: "drained" };
    });
  } finally {
    closed.abort();
    client.close();
  }
}

/** A host has no look at the log. */
function warnOf(event: RunnerEvent, host: IpcPlaceHost): void {
  if (event.type === "lost") host.warn(`${event.error.message}; the runner tries again`);
  else if (event.type === "back") host.warn("the coordinator is back");
}

/** The coordinator's events of a session, as news. When they end, the timer still looks. */
function watch(
  client: HoldfastClient,
  reader: IpcPlace["reader"],
  sessionId: string,
  onNews: () => void,
): () => void {
  const stop = new AbortController();
  const { signal } = stop;
  const timer = setInterval(onNews, LOOK_MS);
  const follow = async (): Promise<void> => {
    const afterSeq = ((await reader.session(sessionId))?.nextSeq ?? 0) - 1;
    for await (const _ of client.sessions.get(sessionId).events({ afterSeq, signal })) onNews();
  };
  void follow().catch(() => {});
  return () => {
    clearInterval(timer);
    stop.abort();
  };
}
