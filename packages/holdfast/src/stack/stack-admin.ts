// `StackAdmin`: the requests of the supervisor to its coordinator, as an admin, over REST.
//
// It uses Node's HTTP alone: the fleet's client would cost the supervisor several megabytes of memory.

import { request } from "node:http";
import { HoldfastError } from "@holdfast/core";

const ANSWER_MS = 5_000;

export class StackAdmin {
  readonly #url: string;
  readonly #token: string;

  constructor(url: string, token: string) {
    this.#url = url;
    this.#token = token;
  }

  /** A token that registers one runner. */
  async registrationToken(name: string): Promise<string> {
    const { secret } = await this.#ask<{ secret: string }>("POST", "/v1/tokens", {
      kind: "registration",
      name,
    });
    return secret;
  }

  /** The ids of registered runners with this label. */
  async runnersWith(label: string, value: string): Promise<readonly string[]> {
    const ids: string[] = [];
    for (let cursor: string | undefined; ;) {
      const query: string = cursor === undefined ? "" : `&cursor=${cursor}`;
      const page = await this.#ask<RunnerPage>("GET", `/v1/runners?limit=500${query}`);
      for (const { runnerId, labels } of page.runners ?? [])
        if (labels?.[label] === value) ids.push(runnerId);
      cursor = page.nextCursor;
      if (cursor === undefined) return ids;
    }
  }

  /** Report that a runner's process has ended, with all that it had started. A second report changes nothing. */
  async runnerEnded(runnerId: string): Promise<void> {
    await this.#ask("DELETE", `/v1/runners/${runnerId}?processEnded=true`).catch((error: unknown) => {
      if (!HoldfastError.is(error) || error.code !== "runner_not_found") throw error;
    });
  }

  /** Make a runner take no new sessions, and end when those that it has are done. */
  async drain(runnerId: string): Promise<void> {
    await this.#ask("POST", `/v1/runners/${runnerId}/drain`);
  }

  #ask<T>(method: string, path: string, body?: unknown): Promise<T> {
    return new Promise((resolve, reject) => {
      const call = request(`${this.#url}${path}`, {
        method,
        timeout: ANSWER_MS,
        headers: {
          authorization: `Bearer ${this.#token}`,
          ...(body === undefined ? {} : { "content-type": "application/json" }),
        },
      });
      call.on("error", (cause) => reject(unavailable(cause)));
      call.on("timeout", () => call.destroy(new Error(`no answer within ${ANSWER_MS} ms`)));
      call.on("response", (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", (cause) => reject(unavailable(cause)));
        response.on("end", () => {
          try {
            const answer = JSON.parse(Buffer.concat(chunks).toString("utf8")) as T & Refused;
            if ((response.statusCode ?? 500) < 300) resolve(answer);
            else reject(new HoldfastError(answer.code, answer.detail ?? "the coordinator refused"));
          } catch (cause) {
            reject(unavailable(cause as Error));
          }
        });
      });
      call.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }
}

interface RunnerPage {
  readonly runners?: readonly {
    readonly runnerId: string;
    readonly labels?: Readonly<Record<string, string>>;
  }[];
  readonly nextCursor?: string;
}

interface Refused {
  readonly code: HoldfastError["code"];
  readonly detail?: string;
}

function unavailable(cause: Error): HoldfastError {
  return new HoldfastError("unavailable", `the coordinator of the stack does not answer: ${cause.message}`, {
    cause,
  });
}
