// The main job: `npm start`, or `npm start -- --repo PATH` for a repository of your own.
//
// A coding agent gets a repository with a failing test, reads, plans, asks, edits, tests, and commits. The
// session is durable: end this process at any moment, and `npx holdfast resume ID` goes on where it was.

import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { modelPrices, type ModelProvider, type ModelReply } from "@holdfast/agents";
import { openWorkspace } from "@holdfast/workspace";
import { exitCodeOf, toHoldfastError } from "@holdfast/core";
import { withSqliteStorage } from "@holdfast/storage/sqlite";
import { createRuntime, HoldfastError, type AgentStorage, type Runtime, type SessionHandle } from "holdfast";
import agent, { notice, record, type CodingInput, type CodingOutput } from "./agent.ts";
import { copyFixture, git } from "./fixture.ts";
import { chooseModel, SCRIPT_NOTICE } from "./model.ts";
import { askPerson, plain, screen, showPlan, type Question } from "./screen.ts";

/** The spending limit of the agent, when the price of its model is known. */
const COST_MICRO_USD = 2_000_000;
const TASK = "A test of this repository fails. Find out why, and correct the code so that all tests pass.";
const here = dirname(fileURLToPath(import.meta.url));
const database = resolve(process.env["HOLDFAST_DB"] ?? join(here, "../../.holdfast/holdfast.db"));
const isTerminal = process.stdin.isTTY && process.stdout.isTTY;

const HELP = `A coding agent repairs a small repository: it plans, asks, edits, tests and commits.

usage: npm start [-- --repo PATH]

  --repo PATH  work on a git repository of yours; this needs a real model
  -h, --help   show this help

The model is the one that ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENAI_BASE_URL names; without any of them a script answers.
Without a terminal a real model's plan waits to be approved from another one; a script's is approved here.`;

const say = (text: string): void => void process.stdout.write(`${text}\n`);

try {
  process.exitCode = await main();
} catch (thrown) {
  const error = toHoldfastError(thrown);
  const details = [
    error.at && `  at: ${error.at}`,
    error.got && `  got: ${error.got}`,
    error.expected && `  expected: ${error.expected}`,
    error.fix && `  fix: ${error.fix}`,
  ];
  process.stderr.write(
    `error[E_${error.code.toUpperCase()}]: ${[error.message, ...details.filter(Boolean)].map((part) => plain(String(part))).join("\n")}\n`,
  );
  process.exitCode = exitCodeOf(error);
}

async function main(): Promise<number> {
  const { repo, help } = parseOptions();
  if (help === true) {
    say(HELP);
    return 0;
  }
  // Before anything else is asked for or stored: is it there?
  const own = repo === undefined ? undefined : await openWorkspace({ root: resolve(repo) });
  const model = announceModel(own !== undefined);
  const folder = own?.root ?? (await freshCopy());
  if (own !== undefined) await refuseUnclean(folder);
  const workspace = own ?? (await openWorkspace({ root: folder }));
  say(`Repository: ${workspace.describe()}`);
  await mkdir(dirname(database), { recursive: true });
  return withSqliteStorage({ path: database }, ({ storage }) =>
    runSession(storage, { repo: folder, text: TASK }, model),
  );
}

function parseOptions(): { readonly repo?: string; readonly help?: boolean } {
  try {
    return parseArgs({ options: { repo: { type: "string" }, help: { type: "boolean", short: "h" } } }).values;
  } catch (error) {
    throw new HoldfastError("usage", (error as Error).message, { expected: "npm start [-- --repo PATH]" });
  }
}

/** Names the model and the spending limit before any work. */
function announceModel(isOwnRepository: boolean): ModelProvider {
  const model = chooseModel(process.env);
  notice.isShown = true;
  if (!model.isScripted) {
    const tokens = record.budget?.maxTokens?.toLocaleString("en");
    const cap = model.isPriced
      ? `no call that could bring it above ${dollars(COST_MICRO_USD)}`
      : `its price is not known, so no call that could bring it above ${tokens} tokens`;
    say(`Model: ${model.describe()}. Cap: ${cap}, and it asks after ${record.turnsMax} calls.`);
  } else if (isOwnRepository) {
    throw new HoldfastError(
      "config_invalid",
      "no model key is set, and the scripted model knows only the example repository",
      {
        fix: "set ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENAI_BASE_URL, or leave --repo away",
      },
    );
  } else {
    say(SCRIPT_NOTICE);
    if (isTerminal) process.env["HOLDFAST_SCRIPTED_PAUSE_MS"] ??= "25"; // Slow enough to be read.
  }
  return model;
}

/** The agent's commit must hold the agent's changes only. */
async function refuseUnclean(folder: string): Promise<void> {
  const changes = await git(folder, "status", "--porcelain").catch(() => {
    throw new HoldfastError("invalid_input", `${folder} is not a git repository`, {
      fix: "name a folder that is one, with --repo",
    });
  });
  if (changes === "") return;
  const [first = "", ...others] = changes.split("\n").map((line) => plain(line).trim());
  throw new HoldfastError("invalid_input", `${folder} has changes that are not committed`, {
    got: others.length === 0 ? first : `${first}, and ${others.length} more`,
    fix: "commit or stash them (git stash -u), so that they do not get into the agent's commit",
  });
}

async function freshCopy(): Promise<string> {
  const work = join(dirname(database), "work");
  await mkdir(work, { recursive: true });
  const folder = await mkdtemp(join(work, "till-"));
  try {
    await copyFixture(folder);
  } catch (error) {
    await rm(folder, { recursive: true, force: true }); // Half a repository would be taken for the one around it.
    throw error;
  }
  return folder;
}

async function runSession(storage: AgentStorage, input: CodingInput, model: ModelProvider): Promise<number> {
  let question = new AbortController();
  const parked = Promise.withResolvers<"parked">();
  const replies: ModelReply[] = [];
  const ask = async (sessionId: string, { prompt, plan }: Question): Promise<void> => {
    say(plan === undefined ? "" : `\n${showPlan(plan)}`);
    if (isTerminal) await answerOnTerminal(runtime, sessionId, prompt, question.signal);
    else if (model.isScripted && plan !== undefined) await approveScript(runtime, sessionId);
    else parked.resolve("parked");
  };
  const tracer = screen({
    write: (text) => void process.stdout.write(text),
    onQuestion: (sessionId, asked) => void ask(sessionId, asked).catch(() => {}),
    onAnswered: () => {
      question.abort();
      question = new AbortController();
    },
    onReply: (reply) => void replies.push(reply),
  });
  const runtime: Runtime = createRuntime({ storage, tracer, adopt: false, prices: modelPrices() });
  const stopped = onInterrupt();
  try {
    const budget = { ...record.budget, ...(model.isPriced ? { maxCostMicroUsd: COST_MICRO_USD } : {}) };
    const handle = await runtime.start(agent, input, { file: join(here, "agent.ts"), budget });
    say(`Session: ${handle.sessionId}`);
    const report = await Promise.race([handle.result(), stopped.promise, parked.promise]);
    if (report === "parked") return reportParked(handle);
    if (report !== "stopped") return await reportResult(report, input, replies, handle);
    question.abort();
    say(
      `\nStopped. Everything that was committed is kept. Go on with:\n  ${command(`resume ${handle.sessionId}`)}`,
    );
    return 130;
  } finally {
    stopped.release();
    await runtime.close();
  }
}

/** A person answers here, or from another terminal. */
async function answerOnTerminal(
  runtime: Runtime,
  sessionId: string,
  prompt: string,
  signal: AbortSignal,
): Promise<void> {
  const approval = await askPerson(prompt, signal);
  if (approval !== undefined) await runtime.answer(sessionId, approval);
}

/** Approves the script's plan, which is known. Only a person approves the plan of a real model. */
async function approveScript(runtime: Runtime, sessionId: string): Promise<void> {
  say("There is no terminal to ask a person on: the script's plan is approved without one.");
  await runtime.answer(sessionId, { approved: true });
}

function reportParked({ sessionId }: SessionHandle): number {
  say("There is no terminal to ask a person on. Nothing is changed before the plan is approved:");
  say(`  ${command(`approve ${sessionId}`)}`);
  say(`  ${command(`resume ${sessionId}`)}`);
  return 0;
}

async function reportResult(
  { status, summary, commit }: CodingOutput,
  { repo = "." }: CodingInput,
  replies: readonly ModelReply[],
  { sessionId }: SessionHandle,
): Promise<number> {
  const sum = (of: (reply: ModelReply) => number): number =>
    replies.reduce((total, reply) => total + of(reply), 0);
  const costMicroUsd = sum(({ usage }) => usage.costMicroUsd ?? 0);
  const cost = costMicroUsd === 0 ? "" : `, ${dollars(costMicroUsd)}`;
  say("");
  say(`${status}: ${plain(summary)}`);
  if (commit !== null) say(`Commit: ${commit} (${await filesOf(repo, commit)})`);
  say(
    `Model: ${replies.at(-1)?.model}, ${replies.length} calls, ${sum(({ usage }) => usage.inputTokens)} tokens in, ${sum(({ usage }) => usage.outputTokens)} out${cost}`,
  );
  say("");
  say(`Session: ${sessionId}. Look at it with:`);
  say(`  ${command(`show ${sessionId}`)}`);
  say(`  ${command(`logs ${sessionId}`)}`);
  return status === "stopped" ? 1 : 0;
}

/** The files of a commit. A model may also name one that is not there. */
async function filesOf(repo: string, commit: string): Promise<string> {
  const files = await git(repo, "diff-tree", "--root", "--no-commit-id", "--name-only", "-r", commit).catch(
    () => "it is not in the repository",
  );
  return plain(files).replaceAll("\n", ", ");
}

function dollars(microUsd: number): string {
  return `$${(microUsd / 1e6).toFixed(2)}`;
}

/** Ctrl-C once ends it cleanly, twice at once. */
function onInterrupt(): { readonly promise: Promise<"stopped">; readonly release: () => void } {
  const { promise, resolve: stop } = Promise.withResolvers<"stopped">();
  let count = 0;
  const onSignal = (): void => {
    count += 1;
    if (count > 1) process.exit(130);
    stop("stopped");
  };
  process.on("SIGINT", onSignal).on("SIGTERM", onSignal);
  return { promise, release: () => void process.off("SIGINT", onSignal).off("SIGTERM", onSignal) };
}

/** As it has to be typed where the user is. */
function command(rest: string): string {
  const isHere = resolve(process.cwd()) === resolve(here, "../..");
  return `npx holdfast ${rest}${isHere && process.env["HOLDFAST_DB"] === undefined ? "" : ` --db ${database}`}`;
}
