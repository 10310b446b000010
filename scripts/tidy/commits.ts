// The subjects of commits: `area: verb object`, understandable without the body.

import { spawnSync } from "node:child_process";
import type { Tree, Violation } from "./tree.ts";

/** The commit before the rule. Older subjects are excused. */
const BEFORE_THE_RULE = "ce09d20e80b143fee69d79b7c989c31edfde605a";

interface Commit {
  readonly hash: string;
  readonly subject: string;
}

const COMMITS_MAX = 50;
const CHARACTERS_MAX = 72;

const FORM = /^[a-z][a-z0-9./-]*(?:, [a-z][a-z0-9./-]*)*: (\S+)(?: \S+)+$/;
/** First words that are no verb: questions, articles, pronouns, prepositions and participles. */
const NO_VERB =
  /^(?:who|whom|whose|whoever|what|whatever|which|when|where|why|how|of|one|those|these|this|that|it|they|none|so|nor|no|not|a|an|the|all|more|less|some|also|now|in|on|at|by|for|from|with|without|after|before|to|is|are|was|were|[a-z]+ing|[a-z]+tion|\d+)$/i;
/** Verbs that have the ending of a participle. */
const VERB =
  /^(bring|cling|fling|ping|ring|sing|spring|sting|string|swing|mention|question|position|partition|condition)$/;

export function commitSubjects(tree: Tree): readonly Violation[] {
  return (lastCommits(tree) ?? []).flatMap(({ hash, subject }) => {
    const what = wrongSubject(subject);
    return what === undefined ? [] : [{ file: `commit ${hash.slice(0, 9)}`, what: `${what}: ${subject}` }];
  });
}

/** Why the rule cannot look at commits here, if it cannot. */
export function whyNoCommits(tree: Tree): string | undefined {
  return lastCommits(tree) === undefined ? "git has no history of this folder" : undefined;
}

function wrongSubject(subject: string): string | undefined {
  if (subject.length > CHARACTERS_MAX)
    return `${subject.length} characters, and ${CHARACTERS_MAX} is the limit`;
  const verb = FORM.exec(subject)?.[1];
  if (verb === undefined) return "the subject has not the form `area: verb object`";
  if (NO_VERB.test(verb) && !VERB.test(verb)) return `"${verb}" is no verb in the form \`area: verb object\``;
  return subject.endsWith(".") ? "the subject ends with a full stop" : undefined;
}

/** The last commits, or undefined where there is no checkout of git, no git, or no commit. */
function lastCommits({ root, hasHistory }: Tree): Commit[] | undefined {
  if (!hasHistory) return undefined;
  const log = ["log", "--no-merges", `--max-count=${COMMITS_MAX}`, "--format=%H %s", "HEAD"];
  // A shallow clone, and a history that was written again, do not have the excused commit.
  const text = git(root, [...log, `^${BEFORE_THE_RULE}`]) ?? git(root, log);
  return text
    ?.split("\n")
    .filter((line) => line !== "")
    .map((line) => ({ hash: line.slice(0, 40), subject: line.slice(41) }));
}

function git(root: string, args: readonly string[]): string | undefined {
  const { status, stdout } = spawnSync("git", args, { cwd: root, encoding: "utf8" });
  return status === 0 ? stdout : undefined;
}
