// The acts of fake agents, for tests (`doActs`). Each word of the prompt's last line is an act, such as `write:notes.txt`. A fake speaks its
// protocol and gives the words to say things in it (`Speech`). Acts that count leave their traces in $HOME.
//
// The suite of adapters sets faults by files in $HOME, and fails for a fake that does not have them. `writeMessage` reads `die-at`, and `resumedId`
// reads `other-session`. With `repeat-history` a fake writes `OLD_ANSWER` when it resumes a session. In the suite `installFake` answers `--version`
// with 9.0.0, so `versionMin` of the facts may not be newer. Elsewhere the fake answers it itself (`answerVersion`).

import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { inputOf } from "./fake-session-tools.mjs";

const { HOME = "/" } = process.env;
const never = () => new Promise(() => setInterval(() => {}, 1_000));
export const fault = (name) =>
  existsSync(join(HOME, name)) ? readFileSync(join(HOME, name), "utf8").trim() : undefined;

let written = 0;
/** Writes a message, and dies after as many as the file $HOME/die-at says. */
export function writeMessage(message) {
  process.stdout.write(`${JSON.stringify(message)}\n`);
  const dieAt = fault("die-at");
  // A write to a pipe is done when the call returns.
  if (dieAt !== undefined && ++written >= Number(dieAt)) process.kill(process.pid, "SIGKILL");
}

/** The id of a resumed session, which is another one if the file $HOME/other-session is there. */
export const resumedId = (id) => (fault("other-session") === undefined ? id : randomUUID());

/** Stands in the history of a session that a fake repeats. */
export const OLD_ANSWER = "An old answer.";

/** Reads messages from the standard input. */
export async function readMessages(take) {
  let rest = "";
  process.stdin.on("end", () => process.exit(0));
  for await (const piece of process.stdin) {
    const lines = `${rest}${piece}`.split("\n");
    rest = lines.pop();
    for (const line of lines) take(JSON.parse(line));
  }
}

/** The acts of fakes that happen once in a session. */
function once(word) {
  const mark = join(HOME, `done-${word.replaceAll(/\W/g, "_")}`);
  if (existsSync(mark)) return false;
  writeFileSync(mark, "");
  return true;
}

export const record = (file, line) => appendFileSync(join(HOME, file), `${line}\n`);

/** Questions with choices. */
export const CHOICES = [
  {
    id: "db",
    header: "Database",
    question: "Which database?",
    options: [
      { label: "Postgres", description: "a server" },
      { label: "SQLite", description: "a file" },
    ],
    multiSelect: false,
  },
  {
    id: "checks",
    header: "Checks",
    question: "Which checks?",
    options: [
      { label: "unit", description: "" },
      { label: "lint", description: "" },
    ],
    multiSelect: true,
  },
];

/** The form that an MCP server asks for. */
export const FORM = {
  message: "Which size?",
  schema: {
    type: "object",
    properties: { size: { type: "string", enum: ["small", "large"] }, count: { type: "integer" } },
    required: ["size"],
  },
};

/** Steps with their statuses. */
export const PLANS = {
  first: [
    ["read", "in_progress"],
    ["write", "pending"],
  ],
  last: [
    ["read", "completed"],
    ["write", "in_progress"],
  ],
};

/**
 * How a fake says things in its protocol. Each member writes its messages by `writeMessage`, so that the fault
 * `die-at` counts them, and a resumed session is opened under `resumedId(id)`.
 *
 * @typedef {object} Speech
 * @property {(tool: string, input: object) => string} call A call of a tool begins. Returns its id.
 * @property {(id: string, text: string, isError: boolean) => void} result The result of a call.
 * @property {(id: string, tool: string, input: object) => Promise<{isAllowed: boolean, answer: unknown}>} ask
 *   Asks the host whether the call may be carried out.
 * @property {(text: string) => void} think
 * @property {(inputTokens: number) => void} use Reports usage, where the protocol does.
 * @property {() => void} garbage Messages of its protocol that no adapter knows.
 * @property {() => string} memory The file of the session.
 * @property {(tool: string, input: object) => Promise<{text: string, isError: boolean}>} callSession Calls a
 *   tool of the session as the real program does: over the MCP server that it was given
 *   (`fake-session-tools.mjs`), or by its protocol.
 * @property {(cause: "quota" | "auth_required", resetsAt?: number) => Promise<never>} [fail] Ends the turn as
 *   the real program does for this cause; `resetsAt` is in epoch seconds. Left out, `limit` and `logged-out`
 *   fail, which only tests of the program itself ask for.
 * @property {(steps: readonly string[][]) => void} [plan] A plan, as pairs of a text and a status.
 * @property {(choices: typeof CHOICES) => Promise<void>} [choose] Questions with choices.
 * @property {(form: typeof FORM) => Promise<void>} [elicit] The form of an MCP server.
 * @property {() => void} [subAgent] The work of a sub-agent. Members in brackets are for programs that can.
 */

/**
 * Does what the prompt says.
 *
 * @param {string} prompt
 * @param {Speech} speech
 * @returns the last words.
 */
export async function doActs(prompt, speech) {
  const words = prompt.split("\n").at(-1).split(" ");
  for (const word of words) await act(word, speech);
  return `Done: ${words.join(" ")}`;
}

async function act(
  word,
  { call, result, ask, think, use, garbage, callSession, memory, fail, subAgent, plan, choose, elicit },
) {
  const [name, value = ""] = word.split(":");
  switch (name) {
    case "think":
      return think("I think.");
    case "write": {
      const id = call("write", { path: value });
      appendFileSync(value, "x\n");
      return result(id, `wrote ${value}`, false);
    }
    case "step": {
      // The program remembers in its session which steps it has done.
      if (existsSync(memory()) && readFileSync(memory(), "utf8").includes(`"step ${value} done"`))
        return undefined;
      const id = call("shell", { command: `step ${value}` });
      await new Promise((resolve) => setTimeout(resolve, 100));
      appendFileSync("steps", `${value}\n`);
      appendFileSync(memory(), `"step ${value} done"\n`);
      return result(id, `step ${value} is done`, false);
    }
    case "gate":
      return atGate(value);
    case "ask": {
      const input = { path: value };
      const id = call("write", input);
      const { isAllowed, answer } = await ask(id, "write", input);
      record("answers", JSON.stringify(answer));
      if (isAllowed) appendFileSync(value, "x\n");
      return result(id, isAllowed ? "allowed" : "refused", !isAllowed);
    }
    case "choose":
      return choose?.(CHOICES);
    case "elicit":
      return elicit?.(FORM);
    case "plan":
      return plan?.(PLANS[value]);
    case "sub-agent":
      return subAgent?.();
    case "session": {
      const [, tool, text] = word.split(":");
      const input = inputOf(tool, text);
      const id = call(`mcp__holdfast_session__${tool}`, input);
      const { text: given, isError } = await callSession(tool, input);
      record("session-results", given);
      return result(id, given, isError);
    }
    case "hang": {
      if (!once(word)) return undefined;
      call("shell", { command: "sleep 1000" });
      const daemon = spawn("sleep", ["1000"], { detached: true, stdio: "ignore" });
      appendFileSync(join(HOME, "pids"), `${process.pid}\n${daemon.pid}\n`);
      return never();
    }
    case "no-answer": // Once; its model does not answer.
      return once(word) ? never() : undefined;
    case "stubborn":
      if (!once(word)) return undefined;
      call("shell", { command: "sleep 1000" });
      return beStubborn();
    case "limit": // Once; the value says how long from now it lasts, in seconds.
      return once(word) ? fail("quota", Math.floor(Date.now() / 1_000) + Number(value)) : undefined;
    case "logged-out":
      return once(word) ? fail("auth_required") : undefined;
    case "use": // The value is a number of tokens.
      use(Number(value));
      return new Promise((resolve) => setTimeout(resolve, 300));
    case "env":
      return result(call("shell", { command: "env" }), JSON.stringify(process.env), false);
    case "garbage":
      process.stdout.write('no JSON\n{"type": \n[1]\n\n');
      process.stdout.write(Buffer.from([0x22, 0xff, 0xfe, 0x22, 0x0a]));
      return garbage();
    case "huge":
      process.stdout.on("error", () => process.exit(1));
      return process.stdout.write("x".repeat(20 * 1024 * 1024));
    default:
      return undefined;
  }
}

/** Hangs with a process outside of the group, reads nothing more, and nothing but SIGKILL ends it. */
export async function beStubborn() {
  process.on("SIGTERM", () => {});
  await new Promise((resolve) => setTimeout(resolve, 100)); // The messages before are written.
  const daemon = spawn("sleep", ["1000"], { detached: true, stdio: "ignore" });
  appendFileSync(join(HOME, "pids"), `${process.pid}\n${daemon.pid}\n`);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}

/** Arrives at a gate, and waits until the file `open-N` with its number is there. The file `gates` has all arrivals. */
export async function atGate(gate) {
  appendFileSync("gates", `${gate}\n`);
  while (!existsSync(`open-${gate.split("-").at(-1)}`))
    await new Promise((resolve) => setTimeout(resolve, 20));
}

/** Answers the request for the version, and ends. */
export function answerVersion(version) {
  if (process.argv[2] !== "--version") return;
  console.log(version);
  process.exit(0);
}
