// Requests of clients, each recorded as it was answered.
//
// A client asks one coordinator or the other; what it wants done it asks again until it is told yes or no, under the same key, so that
// asking twice is asking once.

import { setTimeout as sleep } from "node:timers/promises";
import { monotonicMs, type Request } from "./observed.ts";

const ANSWER_MS = 8_000;
/** Before it asks again; longer each time. */
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
  /** Nothing is asked again from then on. */
  isOver = false;

  constructor(urls: readonly string[], token: string, record: (request: Request) => void) {
    this.#urls = urls;
    this.#token = token;
    this.#record = record;
  }

  /** Until it is answered; `undefined` when it is over before, or when the answer is no. */
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

  /** Once, at the coordinator whose turn it is. */
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
      ...(answer === undefined ? {} : told(answer)),
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
          ...(key === undefined ? {} : { "idempotency-key": key }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      return { status: response.status, body: readJson(text) };
    } catch {
      return undefined; // Nobody knows whether it was heard.
    }
  }
}

function outcomeOf(answer: Answer | undefined): Request["outcome"] {
  if (answer === undefined || answer.status >= 500 || answer.status === 429 || answer.status === 408)
    return "info";
  return answer.status < 300 ? "ok" : "fail";
}

function told({ status, body }: Answer): Partial<Request> {
  const { sessionId, status: seen, code } = body;
  return {
    status,
    ...(typeof sessionId === "string" && status < 300 ? { sessionId } : {}),
    ...(typeof seen === "string" && status < 300 ? { seen } : {}),
    ...(status >= 400 ? { code: String(code), said: JSON.stringify(body).slice(0, SAID_CHARS) } : {}),
  };
}

/** What is no JSON is an answer all the same, and is shown as it came. */
function readJson(text: string): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return { code: "no_json", text };
  }
}
