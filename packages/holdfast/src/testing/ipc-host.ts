// A host of `holdfast runner --ipc`, for tests: it writes lines, and waits for messages instead of for a
// time.

import type { HoldfastProcess } from "./holdfast-process.ts";

// oxlint-disable-next-line typescript/no-explicit-any -- what a test says of a message is its type.
export type Message = Record<string, any>;

export class IpcTestHost {
  readonly process: HoldfastProcess;
  readonly #messages: Message[] = [];
  #parsed = 0;
  #lastId = 0;

  constructor(process: HoldfastProcess) {
    this.process = process;
  }

  /** All messages up to now. */
  get messages(): readonly Message[] {
    const { stdout } = this.process;
    for (let end = stdout.indexOf("\n", this.#parsed); end >= 0; end = stdout.indexOf("\n", this.#parsed)) {
      this.#messages.push(JSON.parse(stdout.slice(this.#parsed, end)) as Message);
      this.#parsed = end + 1;
    }
    return this.#messages;
  }

  write(text: string): void {
    this.process.child.stdin.write(text);
  }

  send(request: object): void {
    this.write(`${JSON.stringify(request)}\n`);
  }

  /** The first message that matches, from this one on. */
  async find(matches: (message: Message) => boolean, from = 0): Promise<Message> {
    let found: Message | undefined;
    const isThere = (): boolean => (found = this.messages.slice(from).find(matches)) !== undefined;
    await this.process.until(isThere, `a message with ${String(matches)}`);
    return found!;
  }

  /** Sends a request with an id of its own, and waits for its answer. @returns the result, or the error. */
  async ask(type: string, fields: object = {}): Promise<Message> {
    const id = `r${++this.#lastId}`;
    this.send({ type, id, ...fields });
    const answer = await this.find((message) => message["id"] === id);
    return (answer["result"] ?? { error: answer["error"] }) as Message;
  }

  /** Says hello and waits until the runner is ready. */
  async meet(): Promise<Message> {
    await this.ask("hello", { protocol: 1 });
    return this.find(({ type }) => type === "ready");
  }

  /** The session of a subscription, once it has this status. */
  async becomes(sessionId: string, status: string): Promise<Message> {
    const found = await this.find(
      (message) =>
        message["type"] === "session" &&
        message["sessionId"] === sessionId &&
        message["session"].status === status,
    );
    return found["session"] as Message;
  }
}
