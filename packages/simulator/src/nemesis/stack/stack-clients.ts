// `StackClients`: clients of the local stack that start sessions of the agents in `nemesis/stack`, while the
// processes of the stack are killed.
//
//   - After a hard cancel `cancelledMs` gets the time until no process of the session's executor is left. A
//     cancel with a kill in between does not count.
//   - The secret of the agents is searched in all bytes of event streams, and in each answer about a session
//     that had it.

import { setTimeout as sleep } from "node:timers/promises";
import type { CanaryScan } from "@holdfast/testkit";
import type { Chance } from "../faults.ts";
import { monotonicMs, type FinalSession } from "../observed.ts";
import type { Clients } from "../requests.ts";
import type { KillableStack } from "./killable-stack.ts";

const PAGE = 1_000;

export interface StackClientsOptions {
  readonly stack: KillableStack;
  readonly scan: CanaryScan;
  readonly clients: Clients;
  readonly chance: Chance;
  /** The duration of the sessions' work, relative to that in a campaign. */
  readonly pace: number;
  /** Aborted when everything has ended. */
  readonly over: AbortSignal;
  /** The number of kills until now, and of all. */
  readonly kills: () => number;
  readonly killsMax: number;
}

type ListedSession = Pick<FinalSession, "sessionId" | "agent" | "status" | "pauseReason">;

export class StackClients {
  /** From each acknowledgement of a hard cancel to the end of the last process, where no kill came between them. */
  readonly cancelledMs: number[] = [];
  readonly #options: StackClientsOptions;

  constructor(options: StackClientsOptions) {
    this.#options = options;
  }

  /** Starts sessions until the last kill, and waits for what it does with them. */
  async run(): Promise<void> {
    const { chance, pace, kills, killsMax } = this.#options;
    const open: Promise<void>[] = [];
    for (let n = 0; kills() < killsMax; n++) {
      const key = `own-${n}`;
      const isCrash = n % 10 === 5;
      const ways = isCrash
        ? (["crasher"] as const)
        : (["keyed", "payer", "tree", "tree", "cancelled"] as const);
      const way = n < 3 ? (["keyed", "tree", "payer"] as const)[n]! : chance.pick(ways);
      open.push(this.#session(key, way));
      await sleep(chance.between(200, 1_500) * pace);
    }
    await Promise.all(open);
  }

  async #session(key: string, way: string): Promise<void> {
    const { chance, pace } = this.#options;
    const agent = way === "cancelled" ? "tree" : way;
    const input =
      way === "crasher"
        ? { key, way: chance.pick(["throw", "abort"]) }
        : { key, prompt: "work", takesMs: Math.round(chance.between(50, 1_000) * pace) };
    const asked = { method: "POST", path: "/sessions", body: { agent, input }, key } as const;
    const answer = await this.#options.clients.insist({ op: "start", about: key }, asked, { agent });
    const sessionId = answer?.body["sessionId"];
    if (typeof sessionId !== "string") return;
    if (way === "keyed") await this.#readStream(sessionId);
    if (way === "cancelled") await this.#cancel(sessionId, chance.between(100, 900));
  }

  /** A hard cancel, and how long the processes of the session's executor still live. */
  async #cancel(sessionId: string, afterMs: number): Promise<void> {
    await sleep(afterMs);
    const asked = { method: "POST", path: `/sessions/${sessionId}/cancel`, body: { graceMs: 0 } } as const;
    const kills = this.#options.kills();
    const answer = await this.#options.clients.insist({ op: "cancel", about: sessionId }, asked);
    const from = monotonicMs();
    if (answer === undefined) return;
    while (this.#options.stack.withTag(`executor:${sessionId}`).length > 0) await sleep(10);
    if (this.#options.kills() === kills) this.cancelledMs.push(monotonicMs() - from);
  }

  /** The bytes of the event stream, over the deaths of the coordinator. */
  async #readStream(sessionId: string): Promise<void> {
    const url = `${this.#options.stack.state?.url}/v1/sessions/${sessionId}/watch`;
    for (
      let text = "";
      !this.#options.over.aborted && !/"type":"session_ended"/.test(text);
      await sleep(100)
    ) {
      try {
        const response = await fetch(url, {
          headers: { authorization: `Bearer ${this.#options.stack.adminToken}`, accept: "text/event-stream" },
          signal: this.#options.over,
        });
        text = await response.text();
        this.#options.scan.search(`the event stream of ${sessionId}`, text);
        if (response.ok) return;
      } catch {
        // The coordinator died in the middle of it.
      }
    }
  }

  /** A session that was lost too often alone is paused as poison, though kills were the reason. A person continues it. */
  async unpause(): Promise<void> {
    for (; !this.#options.over.aborted; await sleep(1_000)) {
      const sessions = await this.list("paused");
      for (const { sessionId } of sessions.filter(({ pauseReason }) => pauseReason === "poison")) {
        const asked = { method: "POST", path: `/sessions/${sessionId}/unpause`, body: {} } as const;
        await this.#options.clients.ask({ op: "unpause", about: sessionId }, asked);
      }
    }
  }

  async list(status: string): Promise<readonly ListedSession[]> {
    const asked = { method: "GET", path: `/sessions?status=${status}&limit=${PAGE}` } as const;
    const { answer } = await this.#options.clients.ask({ op: "list", about: status }, asked);
    return (answer?.body["sessions"] ?? []) as readonly ListedSession[];
  }

  /** Everything that the API says about the sessions that had the secret. */
  async searchAnswers(): Promise<void> {
    const { stack, scan, clients } = this.#options;
    const [url, token] = [stack.state?.url, stack.adminToken];
    const read = async (path: string): Promise<void> => {
      const response = await fetch(`${url}/v1/${path}`, { headers: { authorization: `Bearer ${token}` } });
      scan.search(`the answer to ${path.replace(/ses_[^/]+/, "…")}`, await response.text());
    };
    const started = clients.requests.filter(
      ({ op, agent, sessionId }) =>
        op === "start" && ["keyed", "crasher"].includes(agent ?? "") && sessionId !== undefined,
    );
    for (const sessionId of new Set(started.map((request) => request.sessionId)))
      for (const part of ["", "/events", "/entries", "/result", "/export"])
        await read(`sessions/${sessionId}${part}`);
    for (const path of ["audit?limit=1000", "runners", "runs?limit=1000"]) await read(path);
  }
}
