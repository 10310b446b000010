// `Workload`: clients of a fleet under the nemesis. They start, signal, cancel, read and watch sessions of
// every kind, and record each request.
//
//   - Each client repeats a request until the answer is yes or no, so after the healing every request is
//     answered.
//   - A start is sometimes requested twenty times at once, under one key (L7).

import { setTimeout as sleep } from "node:timers/promises";
import { createClient, type HoldfastClient } from "holdfast/client";
import { SIGNAL_NAMES } from "./agents.ts";
import type { Chance } from "./faults.ts";
import type { Watched } from "./observed.ts";
import type { Clients } from "./requests.ts";
import { TERMINAL } from "./checkers.ts";

const AT_ONCE = 20;
const LONG_POLL_MS = 5_000;
const NEVER_MS = 1_000_000_000;

export interface WorkloadOptions {
  readonly clients: Clients;
  readonly urls: readonly string[];
  readonly token: string;
  readonly chance: Chance;
  /** The number of sessions at a time. */
  readonly width: number;
  /** The number of sessions to start; unlimited when absent. */
  readonly sessionsMax?: number;
  /** The duration of the sessions' work, relative to that in a campaign. */
  readonly pace: number;
  /** Whether one of the sessions is poison. */
  readonly isPoisoned: boolean;
}

type Program = {
  readonly agent: string;
  readonly input: Readonly<Record<string, unknown>>;
};

export class Workload {
  readonly watched: Watched[] = [];
  readonly #options: WorkloadOptions;
  readonly #watchers: readonly HoldfastClient[];
  readonly #over = new AbortController();
  readonly #watching: Promise<void>[] = [];
  #isClosing = false;
  begun = 0;
  ended = 0;

  constructor(options: WorkloadOptions) {
    this.#options = options;
    const { urls, token } = options;
    this.#watchers = urls.map((url) => createClient({ url, token, insecure: true, retryMs: NEVER_MS }));
  }

  /** Run sessions until `close`, or until `sessionsMax` of them have ended. */
  async run(): Promise<void> {
    await Promise.all(Array.from({ length: this.#options.width }, () => this.#client()));
  }

  /** Start no more sessions; those that were started continue. */
  close(): void {
    this.#isClosing = true;
  }

  /** Stop all requests and watchers. */
  async end(): Promise<void> {
    this.#options.clients.isOver = true;
    this.#over.abort();
    await Promise.all(this.#watching);
    for (const client of this.#watchers) client.close();
  }

  async #client(): Promise<void> {
    const { sessionsMax = Infinity } = this.#options;
    while (!this.#isClosing && this.begun < sessionsMax) {
      await this.#session(this.begun++);
      this.ended++;
    }
  }

  async #session(number: number): Promise<void> {
    const { chance, isPoisoned, pace } = this.#options;
    const key = `key-${number}`;
    const { agent, input } = isPoisoned && number === 20 ? POISON : programOf(chance, pace);
    const sessionId = await this.#start(key, agent, { key, ...input }, number % 10 === 0);
    if (sessionId === undefined) return;
    if (number % 8 === 0) this.#watching.push(this.#watch(sessionId, number));
    const others: Promise<unknown>[] = [];
    if (agent === "collector") others.push(this.#signal(sessionId, input["count"] as number));
    if (agent === "endless" || chance.between(1, 20) === 1)
      others.push(this.#cancel(sessionId, Math.round(chance.between(200, 6_000) * pace)));
    if (agent !== "poison") await this.#untilEnded(sessionId);
    await Promise.all(others);
  }

  async #start(key: string, agent: string, input: unknown, isHerd: boolean): Promise<string | undefined> {
    const { clients } = this.#options;
    const asked = { method: "POST", path: "/sessions", body: { agent, input }, key } as const;
    const answers = await Promise.all(
      Array.from({ length: isHerd ? AT_ONCE : 1 }, () =>
        clients.insist({ op: "start", about: key }, asked, { agent }),
      ),
    );
    return answers.map((answer) => answer?.body["sessionId"]).find((id) => typeof id === "string");
  }

  async #signal(sessionId: string, count: number): Promise<void> {
    const { clients } = this.#options;
    await Promise.all(
      SIGNAL_NAMES.map(async (name) => {
        for (let number = 0; number < count; number++) {
          const path = `/sessions/${sessionId}/signals`;
          const asked = {
            method: "POST",
            path,
            body: { name, payload: number },
            key: `${name}-${number}`,
          } as const;
          await clients.insist({ op: "signal", about: sessionId }, asked, { name, number });
        }
      }),
    );
  }

  async #cancel(sessionId: string, afterMs: number): Promise<void> {
    await sleep(afterMs);
    const asked = {
      method: "POST",
      path: `/sessions/${sessionId}/cancel`,
      body: { graceMs: 2_000 },
    } as const;
    await this.#options.clients.insist({ op: "cancel", about: sessionId }, asked);
  }

  async #untilEnded(sessionId: string): Promise<void> {
    const { clients } = this.#options;
    const path = `/sessions/${sessionId}/result?waitMs=${LONG_POLL_MS}`;
    while (!clients.isOver) {
      const answer = await clients.insist({ op: "read", about: sessionId }, { method: "GET", path });
      const { status } = answer?.body ?? {};
      if (typeof status !== "string" || TERMINAL.has(status)) return;
      if (status === "paused") await sleep(500); // Its result is answered at once.
    }
  }

  async #watch(sessionId: string, number: number): Promise<void> {
    const seqs: number[] = [];
    let isOver = false;
    const client = this.#watchers[number % this.#watchers.length]!;
    try {
      const { signal } = this.#over;
      for await (const event of client.sessions.get(sessionId).events({ signal }))
        if (event.type === "record") seqs.push(event.seq);
      isOver = !signal.aborted;
    } finally {
      this.watched.push({ sessionId, seqs, isOver });
    }
  }
}

const POISON: Program = { agent: "poison", input: {} };

function programOf(chance: Chance, pace: number): Program {
  const some = (least: number, most: number): number => Math.round(chance.between(least, most) * pace);
  const takesMs = some(20, 900);
  const agent = chance.pick([
    "walker",
    "walker",
    "collector",
    "collector",
    "sleeper",
    "parent",
    "keeper",
    "limited",
    "errand",
    "once-payer",
    "endless",
  ]);
  switch (agent) {
    case "walker":
      return { agent, input: { count: chance.between(2, 8), takesMs } };
    case "collector":
      return { agent, input: { count: chance.between(1, 6) } };
    case "sleeper":
      return { agent, input: { sleepMs: some(100, 4_000), times: chance.between(1, 3) } };
    case "parent":
      return { agent, input: { count: 2, takesMs } };
    case "keeper":
      return { agent, input: { takesMs: some(500, 9_000) } };
    case "once-payer":
      return { agent, input: { waitMs: some(200, 3_000), count: chance.between(2, 8) } };
    case "limited":
    case "errand":
      return { agent, input: { takesMs: takesMs * 2 } };
    case "endless":
      return { agent, input: { takesMs } };
  }
}
