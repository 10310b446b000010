// Plain English in comments, documents and names of tests.
//
// The checks are about form: a sentence names its subject, is short, and uses words that a dictionary
// explains. Each check has a pattern that prefers a missed offence over a false alarm.

import { againstBaseline, type Offence } from "./baseline.ts";
import {
  CODE,
  sentenceOfName,
  sentencesOfComments,
  sentencesOfProse,
  testsIn,
  type NamedTest,
  type Sentence,
} from "./sentences.ts";
import type { Tree, Violation } from "./tree.ts";
import { beginsWithVerb, hasVerb } from "./verbs.ts";

const WORDS_MAX_IN_COMMENTS = 25;
const WORDS_MAX_IN_PROSE = 30;

const SOURCE = /\.(ts|tsx|mjs)$/;
/**
 * Text that others wrote, text that is a test's input, and evidence that campaigns write. The sentences of
 * the reference are checked in the sources that they come from. The decisions before this rule are left out
 * as well, because an accepted decision is never edited.
 */
const LEFT_OUT =
  /(^|\/)(fixtures?|histories|gen)\/|^docs\/decisions\/00(?:0\d|1[0-7])-|^RELIABILITY\.md$|^docs\/(?:api-reference|commands)\.md$/;

/** "One process" and "Those rows" name a subject; "One that" and "Those of" do not. */
const BARE =
  /^(?:(?:who|whoever|whom|what|whatever|of|none|so|nor)\b|(?:one|those) (?:that|who|whose|which|of|is|are|was|were|has|have|had|in|from|with|without|to|made|given|asked|at|on|by)\b)/i;

const PEOPLE =
  "people|persons?|users?|authors?|operators?|admins?|administrators?|any(?:one|body)|some(?:one|body)|every(?:one|body)|nobody|no one|" +
  "callers?|engineers?|readers?|developers?|maintainers?|reviewers?|newcomers?|humans?|customers?|contributors?|attackers?";
const WHO = /\b(?:who|whom|whoever|whosoever)\b/gi;
/** A person is named directly before "who", or with few words between. */
const AFTER_A_PERSON = new RegExp(
  `\\b(?:${PEOPLE})(?:\\s+[\\p{L}'-]+){0,3},?\\s+(?:(?:to|of|for|with|by)\\s+)?$`,
  "iu",
);

const IDIOM = /\b(in words|anew|for ever|at hand|by itself|by themselves|nobody['’]s)\b/i;

export function plainWords(tree: Tree): readonly Violation[] {
  return againstBaseline(tree, "plain-words", plainWordsOffences(tree));
}

export function plainWordsOffences(tree: Tree): readonly Offence[] {
  const inSources = tree.sources
    .filter(({ file }) => SOURCE.test(file) && !LEFT_OUT.test(file))
    .flatMap((source) => [
      ...sentencesOfComments(source).flatMap((sentence) =>
        offence(source.file, sentence, reasonsAgainst(sentence, WORDS_MAX_IN_COMMENTS)),
      ),
      ...testsIn(source).flatMap((test) =>
        offence(
          source.file,
          { line: test.line, text: test.name, masked: test.name },
          reasonsAgainstName(test),
        ),
      ),
    ]);
  const inProse = tree.files
    .filter((file) => file.endsWith(".md") && !LEFT_OUT.test(file))
    .flatMap((file) =>
      sentencesOfProse(proseOf(file, tree.read(file) ?? "")).flatMap((sentence) =>
        offence(file, sentence, reasonsAgainst(sentence, WORDS_MAX_IN_PROSE)),
      ),
    );
  return [...inSources, ...inProse];
}

/** The checks that a sentence fails, each in a few words. */
function reasonsAgainst({ masked }: Sentence, wordsMax: number): readonly string[] {
  const words = wordsIn(masked);
  if (words < 3) return [];
  const isQuestion = /\?[)*_’']*\s*$/.test(masked);
  const reasons: string[] = [];
  const bare = isQuestion ? undefined : bareBeginning(masked, true);
  if (bare !== undefined) reasons.push(`begins with a bare "${bare}"`);
  if (!isQuestion && saysWhoOfAThing(masked)) reasons.push('"who" for something that is not a person');
  if (words > wordsMax) reasons.push(`${words} words, and ${wordsMax} is the limit`);
  if ((masked.match(/[:;](?=\s|$)/g) ?? []).length > 1) reasons.push("more than one colon or semicolon");
  const idiom = IDIOM.exec(masked)?.[0];
  if (idiom !== undefined) reasons.push(`"${idiom}" is an idiom`);
  return reasons;
}

function reasonsAgainstName(test: NamedTest): readonly string[] {
  const sentence = sentenceOfName(test);
  const { masked } = sentence;
  const reasons = [...reasonsAgainst(sentence, WORDS_MAX_IN_COMMENTS)];
  const bare = bareBeginning(masked, false);
  if (bare !== undefined && !reasons.some((reason) => reason.startsWith("begins"))) {
    reasons.push(`begins with a bare "${bare}"`);
  }
  // A group's name is a heading, and a name that its table fills in cannot be read here.
  if (test.kind === "describe" || /^[\uE000\uE001\W]*$/.test(masked)) return reasons;
  if (beginsWithVerb(masked)) reasons.push("the test's name has no subject");
  else if (!masked.includes(CODE) && !hasVerb(masked)) reasons.push("the test's name has no verb");
  return reasons;
}

/** The bare word that a sentence begins with, also behind a colon or semicolon. Names of tests need no capital. */
function bareBeginning(masked: string, isCapital: boolean): string | undefined {
  const parts = masked.split(/[:;]\s+(?=\p{Lu})/u).map((part) => part.replace(/^[^\p{L}\uE000]+/u, ""));
  return parts
    .filter((part) => !isCapital || /^\p{Lu}/u.test(part))
    .map((part) => BARE.exec(part)?.[0])
    .find((found) => found !== undefined);
}

function saysWhoOfAThing(masked: string): boolean {
  return [...masked.matchAll(WHO)].some(({ index }) => !AFTER_A_PERSON.test(masked.slice(0, index)));
}

function wordsIn(masked: string): number {
  return (masked.match(/[\p{L}\p{N}\uE000][\p{L}\p{N}\uE001'’./_-]*/gu) ?? []).length;
}

function offence(file: string, { line, text }: Sentence, reasons: readonly string[]): Offence[] {
  return reasons.length === 0 ? [] : [{ file, line, reason: reasons.join(", "), text: text.trim() }];
}

/** The checked text. The released sections of the change log are history, so only its first section is. */
function proseOf(file: string, text: string): string {
  // The front matter of an agent file is data.
  const front = file.endsWith(".md") ? /^---\n.*?\n---\n/s.exec(text)?.[0] : undefined;
  if (front !== undefined) return front.replaceAll(/[^\n]/g, "") + text.slice(front.length);
  if (file !== "CHANGELOG.md") return text;
  const released = [...text.matchAll(/^## /gm)][1];
  return released === undefined ? text : text.slice(0, released.index);
}
