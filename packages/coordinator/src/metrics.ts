// `Metrics` are the counters and gauges that an operator's Prometheus reads.
//
//   - A scrape costs little however many sessions there are. Unfinished sessions are counted up to
//     `COUNTED_MAX` per status, at most every `COUNT_MS`.
//   - No label contains text that a user chose: no agent, no owner, no session.
//
// This class knows names and not their meaning.

import { isEnded, SESSION_STATUSES, type AgentStorage, type ChangeResult } from "@holdfast/core";
import { RUNNER_STATUSES, healthOf, type HealthHost } from "./services/runner-health.ts";

const COUNTED_MAX = 1_000;
const COUNT_MS = 10_000;
/** The upper bounds, in seconds, of how long a session waited for its runner. */
const WAITED_BUCKETS = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 15, 60, 300] as const;

export interface MetricsHost extends HealthHost {
  readonly storage: AgentStorage;
  readonly unmatched: { readonly size: number };
}

export class Metrics {
  /** By method, and by code. */
  readonly #requests = new Map<string, Map<string, number>>();
  readonly #results = new Map<string, number>();
  readonly #waited: number[] = WAITED_BUCKETS.map(() => 0);
  #claims = 0;
  #waitedSeconds = 0;
  #streams = 0;
  #counted: { readonly at: number; readonly lines: readonly string[] } | undefined;

  /** @param code `ok`, or the error's code. */
  request(method: string, code: string): void {
    let codes = this.#requests.get(method);
    if (codes === undefined) this.#requests.set(method, (codes = new Map()));
    add(codes, code);
  }

  changes(results: readonly ChangeResult[]): void {
    for (const { status } of results) add(this.#results, status);
  }

  claimed(waitedMs: number): void {
    const seconds = waitedMs / 1_000;
    this.#claims++;
    this.#waitedSeconds += seconds;
    for (const [i, end] of WAITED_BUCKETS.entries()) if (seconds <= end) this.#waited[i]!++;
  }

  /** Counts a stream that begins. @returns the function to call when it ends. */
  stream(): () => void {
    this.#streams++;
    return () => void this.#streams--;
  }

  async text(host: MetricsHost): Promise<string> {
    const { clock, dispatcher, registry, unmatched } = host;
    const { polls, waiting, oldestSince } = dispatcher.load;
    const age = oldestSince === undefined ? 0 : Math.max(0, clock.now() - oldestSince) / 1_000;
    const statuses = (await registry.all()).map((runner) => healthOf(host, runner).status);
    return [
      ...family(
        "holdfast_sessions",
        "gauge",
        `Sessions that have not ended, at most ${COUNTED_MAX} counted of each status.`,
        await this.#count(host),
      ),
      ...family(
        "holdfast_queue_sessions",
        "gauge",
        "Sessions that wait for a runner, as far as this coordinator knows.",
        [` ${waiting}`],
      ),
      ...family("holdfast_queue_oldest_seconds", "gauge", "Age of the oldest wait for a runner.", [
        ` ${age}`,
      ]),
      ...family("holdfast_unmatched_sessions", "gauge", "Sessions that match no registered runner.", [
        ` ${unmatched.size}`,
      ]),
      ...family(
        "holdfast_runners",
        "gauge",
        "Registered runners.",
        RUNNER_STATUSES.map(
          (status) => `${labels({ status })} ${statuses.filter((one) => one === status).length}`,
        ),
      ),
      ...family("holdfast_polls_waiting", "gauge", "Polls of runners that wait at this coordinator.", [
        ` ${polls}`,
      ]),
      ...family("holdfast_streams", "gauge", "Streams that are open at this coordinator.", [
        ` ${this.#streams}`,
      ]),
      ...family(
        "holdfast_requests_total",
        "counter",
        "Calls by method and outcome.",
        [...this.#requests].flatMap(([method, codes]) =>
          [...codes].map(([code, count]) => `${labels({ method, code })} ${count}`),
        ),
      ),
      ...family(
        "holdfast_changes_total",
        "counter",
        "Changes that this coordinator committed, by result.",
        [...this.#results].map(([status, count]) => `${labels({ status })} ${count}`),
      ),
      ...family(
        "holdfast_claim_wait_seconds",
        "histogram",
        "Time from when a session had something to do until its claim.",
        [],
        [
          ...WAITED_BUCKETS.map(
            (end, i) => `holdfast_claim_wait_seconds_bucket${labels({ le: String(end) })} ${this.#waited[i]}`,
          ),
          `holdfast_claim_wait_seconds_bucket${labels({ le: "+Inf" })} ${this.#claims}`,
          `holdfast_claim_wait_seconds_sum ${this.#waitedSeconds}`,
          `holdfast_claim_wait_seconds_count ${this.#claims}`,
        ],
      ),
      "",
    ].join("\n");
  }

  async #count({ storage, clock }: MetricsHost): Promise<readonly string[]> {
    const now = clock.monotonic();
    if (this.#counted !== undefined && now - this.#counted.at < COUNT_MS) return this.#counted.lines;
    const counted = await storage.reader.counts({ limit: COUNTED_MAX });
    const lines = SESSION_STATUSES.filter((status) => !isEnded(status)).map(
      (status) => `${labels({ status })} ${counted[status] ?? 0}`,
    );
    this.#counted = { at: now, lines };
    return lines;
  }
}

function add(to: Map<string, number>, key: string): void {
  to.set(key, (to.get(key) ?? 0) + 1);
}

/** Label values are words of ours, which need no escaping. */
function labels(values: Readonly<Record<string, string>>): string {
  return `{${Object.entries(values)
    .map(([name, value]) => `${name}="${value}"`)
    .join(",")}}`;
}

function family(
  name: string,
  type: "gauge" | "counter" | "histogram",
  help: string,
  values: readonly string[],
  lines: readonly string[] = [],
): readonly string[] {
  return [
    `# HELP ${name} ${help}`,
    `# TYPE ${name} ${type}`,
    ...values.map((value) => `${name}${value}`),
    ...lines,
  ];
}
