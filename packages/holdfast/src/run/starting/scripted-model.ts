// `withScriptedModel`: a call of the command whose agent files ask no model. Their replies come from a file
// (`--replies`), or repeat the request (`--scripted`). It needs no key.
//
// The replies come over HTTP from a server of this process, on a port of loopback, as those of a model do. A
// session that a process began with them continues with them in another process (`holdfast resume ID
// --scripted`).

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { HoldfastError } from "@holdfast/core";
import type { ModelScript, Reply } from "@holdfast/testkit";
import type { Arguments, Io, Options } from "@holdfast/terminal/frame/command";

/** The options of the commands that run agent files. */
export const SCRIPTED_OPTIONS = {
  scripted: {
    help: "for agent files: ask no model; the reply repeats the request, so it needs no key",
    excludes: ["agent"],
  },
  replies: {
    help: "for agent files: ask no model; the replies are a JSON array in this file, of texts and of {text, toolCalls: [{name, input}]}",
    value: "FILE",
    excludes: ["agent", "scripted"],
  },
} as const satisfies Options;

const VARIABLE = "HOLDFAST_SCRIPTED_MODEL_URL";
const EXPECTED =
  'a JSON array of replies: "a text", or {"text": "…", "toolCalls": [{"name": "read_file", "input": {"path": "a.txt"}}]}';

export function isScripted(args: Pick<Arguments, "has">): boolean {
  return args.has("scripted") || args.has("replies");
}

/** @param work the call, whose `io.env` names the model. */
export async function withScriptedModel(
  args: Arguments,
  io: Io,
  work: () => Promise<number>,
): Promise<number> {
  if (!isScripted(args)) return work();
  const { startScriptedModelServer, turns } = await import("@holdfast/testkit");
  const file = args.text("replies");
  const script = file === undefined ? echo : turns(readReplies(resolve(io.cwd, file)));
  const server = await startScriptedModelServer({ script });
  try {
    io.supply(new Map([[VARIABLE, server.url]]));
    const source = file === undefined ? "each reply repeats the request" : `its replies are in ${file}`;
    io.note(`${io.notes.symbols.warn} no model is asked: ${source}`);
    return await work();
  } finally {
    await server.close();
  }
}

const echo: ModelScript = ({ messages }) => {
  const request = messages.findLast(({ role, text }) => role === "user" && text !== "")?.text ?? "";
  return { text: `No model was asked (--scripted). The request was: ${request}` };
};

/** @throws HoldfastError `config_invalid` for the first element that is no reply. */
function readReplies(file: string): readonly Reply[] {
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(file, "utf8"));
  } catch (thrown) {
    throw wrong(file, `the replies cannot be read: ${(thrown as Error).message}`);
  }
  if (!Array.isArray(value) || value.length === 0) throw wrong(file, "the file has no list of replies");
  return value.map((reply: unknown, i) => {
    if (typeof reply === "string") return { text: reply };
    if (!isReply(reply)) throw wrong(file, `reply ${i + 1} is none`);
    return reply;
  });
}

function isReply(value: unknown): value is Reply {
  if (typeof value !== "object" || value === null) return false;
  const { text, toolCalls, ...others } = value as Record<string, unknown>;
  return (
    Object.keys(others).length === 0 &&
    (text === undefined || typeof text === "string") &&
    (toolCalls === undefined || (Array.isArray(toolCalls) && toolCalls.every(isCall))) &&
    (text !== undefined || toolCalls !== undefined)
  );
}

function isCall(value: unknown): boolean {
  const { name, input } = (value ?? {}) as Record<string, unknown>;
  return typeof name === "string" && typeof input === "object" && input !== null && !Array.isArray(input);
}

function wrong(file: string, what: string): HoldfastError {
  return new HoldfastError("config_invalid", what, { at: file, expected: EXPECTED, fix: "correct the file" });
}
