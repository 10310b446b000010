// `refuseCombinations`: the combinations that `run` refuses, each with its text. They combine the options of a
// call with its agent, the session that it continues, and the place where that would run.

import type { UsageError } from "@holdfast/core";
import type { AgentRecord } from "@holdfast/agents";
import type { Agent } from "@holdfast/runtime";
import { refuse } from "../../frame/arguments.ts";
import type { Arguments } from "../../frame/command.ts";
import { quoted } from "../../frame/plain-text.ts";

/** The facts of a call, as far as they are known. A fact that is not known yet refuses nothing. */
export interface RunFacts {
  readonly args: Pick<Arguments, "has">;
  readonly usage: string;
  /** The input as a text of the command line. */
  readonly text?: string | undefined;
  readonly agent?: Pick<Agent, "name" | "input">;
  readonly isExternal?: boolean;
  /** The agent file. */
  readonly record?: Pick<AgentRecord, "inputSchema"> | undefined;
  /** Whether the session exists already. */
  readonly isFound?: boolean;
  /** Whether the local stack would start the session. */
  readonly isOfStack?: boolean;
}

/** In the order in which the facts become known. */
const REFUSALS: readonly ((facts: RunFacts) => UsageError | undefined)[] = [
  ({ args, usage }) =>
    args.has("demand") && !args.has("agent")
      ? refuse("--demand is for sessions that runners run", usage, {
          fix: "give --agent NAME in place of the file; this process ignores demands for the sessions that it runs",
        })
      : undefined,
  ({ args, usage, text }) =>
    text !== undefined && args.has("input")
      ? refuse("a text and --input exclude each other", usage, { got: quoted(text), fix: "give one of them" })
      : undefined,
  ({ usage, text, agent, record }) =>
    text !== undefined && agent !== undefined && record === undefined && agent.input === undefined
      ? refuse(`"${text}" is one argument too many`, usage, {
          got: `a text for agent "${agent.name}", which has no input schema`,
          fix: "give the input by --input",
        })
      : undefined,
  (facts) =>
    facts.isFound !== undefined && optionsOfFiles(facts) !== "" ? refusalOfFileOptions(facts) : undefined,
  (facts) => {
    const options = optionsOfFiles(facts);
    return facts.isOfStack === true && options !== "" && !resumesInStack(facts)
      ? refuse(
          `the local stack would run this session, and does not get ${options} of this call`,
          facts.usage,
          {
            fix: "give --local, or set the variables (`holdfast env set`) and the fields of the agent file",
          },
        )
      : undefined;
  },
];

/** @throws UsageError for the first combination that is refused. */
export function refuseCombinations(facts: RunFacts): void {
  for (const refusalOf of REFUSALS) {
    const refusal = refusalOf(facts);
    if (refusal !== undefined) throw refusal;
  }
}

/** Whether the stack gets `--resume-at-reset` as a field of the input, which an input schema may not know. */
export function resumesInStack(facts: RunFacts): boolean {
  return optionsOfFiles(facts) === "--resume-at-reset" && facts.record?.inputSchema === null;
}

/** The names of options that say something about an agent file. */
function optionsOfFiles({ args, isExternal }: RunFacts): string {
  const forFiles = ["resume-at-reset", "worktree", "sandbox"].filter((name) => args.has(name));
  return [
    ...(args.has("env") || args.has("env-ref") ? ["--env", "--env-ref"] : []),
    ...(isExternal === true ? [] : forFiles.map((name) => `--${name}`)),
  ].join(" and ");
}

function refusalOfFileOptions(facts: RunFacts): UsageError | undefined {
  const { usage, isExternal, record, isFound } = facts;
  const options = optionsOfFiles(facts);
  if (isExternal === true)
    return refuse(`${options}: for agent files, and this is an external agent`, usage, {
      fix: "name the variables of your environment that its program gets in a profile (`variables`, `keys`), and give --profile",
    });
  if (record === undefined)
    return refuse(`${options}: for agent files, and this agent is code`, usage, {
      fix: "leave it out; an agent of code declares `secrets`, and has its own input",
    });
  if (isFound !== true) return undefined;
  return refuse("the session exists already, and keeps the variables and the agent of its start", usage, {
    fix: `leave ${options} out, or start another session`,
  });
}
