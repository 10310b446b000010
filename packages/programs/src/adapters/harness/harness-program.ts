// The program of one turn of a harness of the AI SDK, which speaks Holdfast's JSON lines. Its arguments are
// the address of the module whose default export is the harness, and the folder for the states of its
// sessions.
//
//   - A harness runs in this process and never in ours: it loads code of others, changes the process, and may
//     be killed.
//   - A harness stores its conversation between turns only. After a turn that was cut off it continues from
//     the turn before, would run calls again, and is told which they are. Without an earlier turn its session
//     is unknown.
//   - The standard output is ours. Everything that the harness prints goes to standard error.

import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

import { HarnessStore, type ForgottenCall, type Tokens } from "./harness-store.ts";
import {
  isHarness,
  type Harness,
  type HarnessPart,
  type HarnessTool,
  type HarnessTurn,
} from "./harness-v1.ts";
import { localSandbox } from "./local-sandbox.ts";

interface Prompt {
  readonly text: string;
  readonly session: string;
  readonly resumed: boolean;
  readonly folder: string;
  readonly model: string | null;
  readonly permissionMode: string;
}

type Message =
  | ({ readonly type: "prompt" } & Prompt)
  | { readonly type: "answer"; readonly id: string; readonly allowed: boolean; readonly message?: string }
  | { readonly type: "message"; readonly text: string }
  | { readonly type: "call_result"; readonly id: string; readonly text: string; readonly isError: boolean }
  | { readonly type: "interrupt" };

const NO_TOKENS: Tokens = { inputTokens: 0, outputTokens: 0 };
/** The harnesses whose sum of a turn is the sum of their session (`@ai-sdk/harness-pi` 1.0.123). */
const CUMULATIVE: ReadonlySet<string> = new Set(["pi"]);
const RESULT_CHARS = 300;
const FORGOTTEN_MAX = 50;

const [module = "", states = ""] = process.argv.slice(2);
const write = process.stdout.write.bind(process.stdout);
// The harness prints to standard error, because standard output is ours.
process.stdout.write = process.stderr.write.bind(process.stderr);
const say = (message: object): void => void write(`${JSON.stringify(message)}\n`);

/** One turn, with everything that arrives for it. */
class ProgramTurn {
  readonly #aborting = new AbortController();
  readonly #tools: readonly HarnessTool[] = JSON.parse(process.env["HOLDFAST_SESSION_TOOLS"] ?? "[]");
  readonly #texts = new Map<string, string>();
  readonly #calls = new Map<string, { readonly name: string; readonly input: unknown }>();
  /** The approvals that the harness waits for, by their calls. */
  readonly #approvals = new Map<string, string>();
  readonly #messages: string[] = [];
  #turn: Promise<HarnessTurn> | undefined;
  #store: HarnessStore | undefined;
  #model = "unknown";
  #error: string | undefined;
  /** The tokens that steps of the present turn have reported. */
  #used = NO_TOKENS;
  /** The last sum that the harness has reported, also in an earlier process. */
  #total = NO_TOKENS;
  #isCumulative = false;

  take(message: Message): void {
    switch (message.type) {
      case "prompt":
        return void this.#work(message).catch((error: unknown) => this.#end(textOf(error)));
      case "answer":
        return void this.#answer(message);
      case "message":
        return void this.#steer(message.text);
      case "call_result":
        return void this.#give(message);
      case "interrupt":
        return this.#aborting.abort();
    }
  }

  async #work({ text, session: id, resumed, folder, model, permissionMode }: Prompt): Promise<void> {
    const harness = await loadHarness();
    const store = new HarnessStore(states, id);
    const kept = resumed ? store.kept() : undefined;
    // After a turn that was cut off it would run calls again.
    if (resumed && kept === undefined) return this.#exit({ type: "unknown_session" });
    this.#store = store;
    this.#isCumulative = CUMULATIVE.has(harness.harnessId);
    this.#total = kept?.total ?? NO_TOKENS;
    const session = await harness.doStart({
      sessionId: id,
      ...(kept === undefined ? {} : { resumeFrom: kept.state }),
      permissionMode: permissionMode === "acceptEdits" ? "allow-edits" : "allow-reads",
      sandboxSession: localSandbox(folder, process.env),
      sessionWorkDir: folder,
      abortSignal: this.#aborting.signal,
    });
    if (model !== null) this.#model = model;
    say({ type: "session", session: session.sessionId, model: this.#model });
    const forgotten = store.forgotten();
    if (forgotten.length > 0) say({ type: "notice", text: UNCERTAIN });
    let prompt = forgotten.length === 0 ? text : `${forgottenText(forgotten)}\n\n${text}`;
    while (prompt !== "") {
      const turn = Promise.resolve(
        session.doPromptTurn({
          prompt,
          ...(model === null ? {} : { model }),
          skills: [],
          tools: this.#tools,
          abortSignal: this.#aborting.signal,
          emit: (part) => this.#part(part),
        }),
      );
      this.#turn = turn;
      await (
        await turn
      ).done;
      this.#turn = undefined;
      prompt = this.#messages.splice(0).join("\n\n"); // Messages that the running turn did not take.
    }
    store.keep({ state: await session.doStop(), total: this.#total });
    this.#end(this.#error);
  }

  #end(error: string | undefined): void {
    if (this.#aborting.signal.aborted) return this.#exit({ type: "aborted" });
    this.#exit(error === undefined ? { type: "done" } : { type: "error", message: error });
  }

  #exit(message: object): void {
    say(message);
    process.exit(0);
  }

  #part(part: HarnessPart): void {
    const { type } = part;
    const id = textOr(part["id"], "");
    switch (type) {
      case "stream-start":
        this.#model = textOr(part["modelId"], this.#model);
        return;
      case "text-delta":
      case "reasoning-delta":
        this.#texts.set(id, (this.#texts.get(id) ?? "") + textOr(part["delta"], ""));
        if (type === "text-delta") say({ type: "delta", text: textOr(part["delta"], "") });
        return;
      case "text-end":
      case "reasoning-end":
        say({ type: type === "text-end" ? "text" : "thinking", text: this.#texts.get(id) ?? "" });
        this.#texts.delete(id);
        return;
      case "tool-call":
        return this.#called(part);
      case "tool-result":
        return this.#result(textOr(part["toolCallId"], ""), asText(part["result"]), part["isError"] === true);
      case "tool-approval-request":
        return this.#asks(part);
      case "finish-step":
        return this.#use(usageOf(part["usage"]));
      case "finish":
        return this.#finish(usageOf(part["totalUsage"]));
      case "compaction":
        return say({ type: "notice", text: "the harness has compacted the conversation" });
      case "error":
        this.#error = textOf(part["error"]);
        return;
      default: // A later version of the specification may have more.
    }
  }

  #called(part: HarnessPart): void {
    const [id, name, text] = [part["toolCallId"], part["toolName"], part["input"]].map((one) =>
      textOr(one, ""),
    ) as [string, string, string];
    const input = parsed(text);
    this.#calls.set(id, { name, input });
    this.#store?.note({ call: { id, name, input: text.slice(0, RESULT_CHARS) } });
    say({ type: "tool_call", id, name, input });
    if (this.#tools.some((tool) => tool.name === name)) say({ type: "call", id, tool: name, input });
  }

  #result(id: string, text: string, isError: boolean): void {
    this.#store?.note({ result: id, text: text.slice(0, RESULT_CHARS) });
    say({ type: "tool_result", id, text, isError });
  }

  #asks(part: HarnessPart): void {
    const id = textOr(part["toolCallId"], "");
    const { name: tool, input } = this.#calls.get(id) ?? { name: "tool", input: {} };
    this.#approvals.set(id, textOr(part["approvalId"], id));
    say({ type: "ask", id, tool, input });
  }

  async #answer({ id, allowed, message }: Message & { type: "answer" }): Promise<void> {
    const approvalId = this.#approvals.get(id);
    this.#approvals.delete(id);
    if (approvalId === undefined) return;
    const reason = message === undefined ? {} : { reason: message };
    await (await this.#turn)?.submitToolApproval?.({ approvalId, approved: allowed, ...reason });
  }

  /** The result of a call of a tool of the session. */
  async #give({ id, text, isError }: Message & { type: "call_result" }): Promise<void> {
    this.#result(id, text, isError);
    await (await this.#turn)?.submitToolResult({ toolCallId: id, output: text, isError });
  }

  async #steer(text: string): Promise<void> {
    try {
      const turn = await this.#turn;
      if (turn?.submitUserMessage !== undefined) return await turn.submitUserMessage(text);
    } catch {
      // The turn is at its end.
    }
    this.#messages.push(text);
  }

  #use({ inputTokens, outputTokens }: Tokens): void {
    if (inputTokens + outputTokens <= 0) return;
    this.#used = {
      inputTokens: this.#used.inputTokens + inputTokens,
      outputTokens: this.#used.outputTokens + outputTokens,
    };
    say({ type: "usage", model: this.#model, inputTokens, outputTokens });
  }

  /** Some harnesses report steps with tokens, some only the sum of the turn. */
  #finish(total: Tokens): void {
    const earlier = this.#isCumulative ? this.#total : NO_TOKENS;
    const rest = (field: keyof Tokens): number =>
      Math.max(0, total[field] - earlier[field] - this.#used[field]);
    this.#use({ inputTokens: rest("inputTokens"), outputTokens: rest("outputTokens") });
    this.#used = NO_TOKENS;
    this.#total = total;
  }
}

function usageOf(usage: unknown): Tokens {
  const { inputTokens, outputTokens } = (usage ?? {}) as Readonly<
    Record<string, { total?: number } | undefined>
  >;
  return { inputTokens: inputTokens?.total ?? 0, outputTokens: outputTokens?.total ?? 0 };
}

async function loadHarness(): Promise<Harness> {
  const loaded = (await import(pathToFileURL(module).href)) as Readonly<Record<string, unknown>>;
  const harness = loaded["default"];
  if (!isHarness(harness))
    throw new Error(
      `the module ${module} has no harness: expected a default export of the specification "harness-v1", such as createPi()`,
    );
  if (harness.getBootstrap !== undefined)
    throw new Error(
      `the harness ${harness.harnessId} installs a bridge in its sandbox and needs open ports, which Holdfast does not offer: use the adapter of its program`,
    );
  return harness;
}

const UNCERTAIN =
  "The harness does not remember its last turn, which was cut off. It may run calls of that turn again.";

function forgottenText(calls: readonly ForgottenCall[]): string {
  const left = calls.length - FORGOTTEN_MAX;
  const lines = calls.slice(-FORGOTTEN_MAX).map(({ name, input, result }) => {
    const outcome = result === null ? "whether it took effect is unknown" : `its result: ${result}`;
    return `- ${name} ${input} (${outcome})`;
  });
  return [
    "You made these calls in a turn that you do not remember, because it was cut off. Do not make a call again that has a result:",
    ...(left > 0 ? [`(${left} earlier calls are left out)`] : []),
    ...lines,
  ].join("\n");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return { text };
  }
}

function textOr(value: unknown, other: string): string {
  return typeof value === "string" ? value : other;
}

function asText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value ?? null);
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : asText(error);
}

const turn = new ProgramTurn();
createInterface({ input: process.stdin })
  .on("line", (line) => turn.take(JSON.parse(line) as Message))
  .on("close", () => process.exit(0)); // The process of the session has gone.
