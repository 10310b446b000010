// `Clients`: requests to a fleet, each recorded with its answer.
//
// A client asks the coordinators in turn. It repeats a request under the same key until the answer is yes or
// no, and the key makes the repetition harmless.

import { setTimeout as sleep } from "node:timers/promises";
import { defined } from "@holdfast/core";
import { DEPLOYMENT_HEADER } from "@holdfast/proto";
import { monotonicMs, type Request } from "./observed.ts";

const ANSWER_MS = 8_000;
/** The pause before a repetition, which grows each time. */
const PAUSE_MS = { first: 200, most: 2_000 };
const SAID_CHARS = 2_000;

export interface Asked {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body?: unknown;
  readonly key?: string;
}

interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

export class Clients {
  readonly requests: Request[] = [];
  readonly #urls: readonly string[];
  readonly #token: string;
  readonly #record: (request: Request) => void;
  #asked = 0;
  /** That of the first request that was done. Another test may get the port of a coordinator that is down. */
  #deployment: string | null = null;
  /** Whether the run is over, so that no request is repeated. */
  isOver = false;

  constructor(urls: readonly string[], token: string, record: (request: Request) => void) {
    this.#urls = urls;
    this.#token = token;
    this.#record = record;
  }

  /** Repeat a request until it is answered. @returns `undefined` when the run is over before, or when the answer is no. */
  async insist(
    what: Pick<Request, "op" | "about">,
    asked: Asked,
    more: Partial<Request> = {},
  ): Promise<Answer | undefined> {
    for (let pauseMs = PAUSE_MS.first; !this.isOver; pauseMs = Math.min(2 * pauseMs, PAUSE_MS.most)) {
      const { answer, outcome } = await this.ask(what, asked, more);
      if (outcome === "ok") return answer;
      if (outcome === "fail") return undefined;
      await sleep(pauseMs);
    }
    return undefined;
  }

  /** Send a request once, to the coordinator whose turn it is. */
  async ask(
    what: Pick<Request, "op" | "about">,
    asked: Asked,
    more: Partial<Request> = {},
  ): Promise<{ readonly answer: Answer | undefined; readonly outcome: Request["outcome"] }> {
    const url = this.#urls[this.#asked++ % this.#urls.length]!;
    const invokedAt = monotonicMs();
    const answer = await this.#send(url, asked);
    const outcome = outcomeOf(answer);
    const request: Request = {
      ...what,
      ...more,
      invokedAt,
      answeredAt: monotonicMs(),
      outcome,
      ...(answer === undefined ? {} : answerFields(answer)),
    };
    this.requests.push(request);
    this.#record(request);
    return { answer, outcome };
  }

  async #send(url: string, { method, path, body, key }: Asked): Promise<Answer | undefined> {
    try {
      const response = await fetch(`${url}/v1${path}`, {
        method,
        signal: AbortSignal.timeout(ANSWER_MS),
        headers: {
          authorization: `Bearer ${this.#token}`,
          "content-type": "application/json",
          ...defined({ "idempotency-key": key }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      const deployment = response.headers.get(DEPLOYMENT_HEADER);
      if (this.#deployment !== null && deployment !== null && deployment !== this.#deployment)
        return undefined;
      if (response.ok) this.#deployment = deployment;
      return { status: response.status, body: readJson(text) };
    } catch {
      return undefined; // The coordinator may or may not have received it.
    }
  }
}

function outcomeOf(answer: Answer | undefined): Request["outcome"] {
  if (answer === undefined || answer.status >= 500 || answer.status === 429 || answer.status === 408)
    return "info";
  return answer.status < 300 ? "ok" : "fail";
}

function answerFields({ status, body }: Answer): Partial<Request> {
  const { sessionId, status: seen, code } = body;
  return {
    status,
    ...(typeof sessionId === "string" && status < 300 ? { sessionId } : {}),
    ...(typeof seen === "string" && status < 300 ? { seen } : {}),
    ...(status >= 400 ? { code: String(code), said: JSON.stringify(body).slice(0, SAID_CHARS) } : {}),
  };
}

/** An answer that is not JSON is recorded as its text. */
function readJson(text: string): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return { code: "no_json", text };
  }
}
