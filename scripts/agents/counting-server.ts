// `CountingServer`: stands before a scripted model server, and counts the tokens of each answer that it has
// given.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export class CountingServer {
  /** The tokens of each answer, and the request to which it is one. */
  readonly served: { readonly tokens: number; readonly request: string }[] = [];
  readonly #server: Server;

  private constructor(upstream: string) {
    this.#server = createServer((request, response) => {
      // Its client was killed.
      this.#answer(upstream, request, response).catch(() => void response.destroy());
    });
  }

  static async start(upstream: string): Promise<CountingServer> {
    const counting = new CountingServer(upstream);
    await new Promise<void>((resolve) => counting.#server.listen(0, "127.0.0.1", resolve));
    return counting;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get tokens(): number {
    return this.served.reduce((sum, { tokens }) => sum + tokens, 0);
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #answer(upstream: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body: Buffer[] = [];
    for await (const piece of request) body.push(piece as Buffer);
    const { method = "GET", url = "/" } = request;
    const names = ["content-type", "anthropic-version", "anthropic-beta", "authorization", "x-api-key"];
    const headers = names.flatMap((name) => {
      const value = request.headers[name];
      return typeof value === "string" ? [[name, value] as const] : [];
    });
    const answer = await fetch(`${upstream}${url}`, {
      method,
      headers: Object.fromEntries(headers),
      ...(method === "POST" ? { body: Buffer.concat(body) } : {}),
    });
    const text = await answer.text();
    const tokens = tokensIn(text);
    if (tokens > 0) this.served.push({ tokens, request: Buffer.concat(body).toString() });
    response.on("error", () => {}); // The same.
    response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "" });
    response.end(text);
  }
}

/** The tokens of an answer, whole or as a stream, by Anthropic and by the Responses of OpenAI. */
function tokensIn(text: string): number {
  const last = (name: string): number => {
    const counts = [...text.matchAll(new RegExp(`"${name}": ?(\\d+)`, "g"))];
    return Number(counts.at(-1)?.[1] ?? 0);
  };
  return last("input_tokens") + last("output_tokens");
}
