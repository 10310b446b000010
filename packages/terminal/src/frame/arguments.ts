// A command line, checked against the tables of its command. Every refusal names what it refuses.

import { defined, didYouMean, isSessionId, parseDuration, UsageError } from "@holdfast/core";
import type { Arguments, Option, Syntax } from "./command.ts";
import { alternatives, argumentsOf, knownOptions, ownOptions, usageOf } from "./help.ts";

/** A coordinator's token, alone or after an equals sign. */
const TOKEN = /(^|=)hf_(adm|usr|reg|rnr|job|met)_[0-9a-f]{16,}$/;

/**
 * @throws UsageError for a token, for an unknown action, and for an argument too few or too many. Also for an
 *   option that is unknown, of another action, twice there, without its value, or at odds with another.
 */
export function parseArguments(words: readonly string[], syntax: Syntax): Arguments {
  const read = readWords(words, syntax);
  const { name, actions, defaultAction } = syntax;
  const action = read.action ?? defaultAction;
  if (actions !== undefined && (action === undefined || !Object.hasOwn(actions, action)))
    throw refuseAction(name, action, Object.keys(actions));
  const args = { ...read, action, usage: usageOf(syntax, action) };
  refuseForeignOptions(syntax, args);
  checkCount(syntax, args);
  return args;
}

/** The words of a line that a person may still have to complete: with its options checked, and no more. */
export function readWords(words: readonly string[], syntax: Syntax): Arguments {
  const { actions, defaultAction } = syntax;
  const options = knownOptions(syntax);
  const values = new Map<string, string[]>();
  const positionals: string[] = [];
  // For errors, before the action is known for certain.
  const named = actions && (words.find((word) => Object.hasOwn(actions, word)) ?? defaultAction);
  const usage = usageOf(syntax, named);
  const add = (name: string, value: string): void => {
    const known = values.get(name);
    if (known !== undefined && options[name]?.repeats !== true)
      throw refuse(`--${name} is given twice`, usage);
    values.set(name, [...(known ?? []), value]);
  };

  if (words.some((word) => TOKEN.test(word)))
    throw refuse("a token is not given as an argument: others of this machine can see it", usage, {
      fix: "give it in HOLDFAST_TOKEN, or in a file with --token-file; make another token, because this one may have been seen",
    });
  for (let i = 0; i < words.length; i++) {
    const word = words[i]!;
    if (word === "--") {
      positionals.push(...words.slice(i + 1));
      break;
    }
    // A lone dash is standard input, and a dash before a digit a number.
    if (!/^-\D/.test(word)) {
      positionals.push(word);
      continue;
    }
    const { name, option, inline } = findOption(word, syntax, named);
    if (option.value === undefined) {
      if (inline !== undefined) throw refuse(`--${name} takes no value`, usage, { got: word });
      if (!values.has(name)) values.set(name, []);
      continue;
    }
    const next = words[i + 1];
    const value = inline ?? (next !== undefined && (next === "-" || !/^-\D/.test(next)) ? next : undefined);
    if (inline === undefined && value !== undefined) i++;
    if (value === undefined || value === "")
      throw refuse(`--${name} needs a value`, usage, { expected: `--${name} ${option.value}` });
    add(name, value);
    if (option.takesMore !== true || inline !== undefined) continue;
    while (/^[^-]/.test(words[i + 1] ?? "")) add(name, words[++i]!);
  }

  for (const name of values.keys()) {
    const rival = options[name]?.excludes?.find((other) => values.has(other));
    if (rival !== undefined)
      throw refuse(`--${name} and --${rival} exclude each other`, usage, { fix: "give one of them" });
  }
  return {
    action: actions && positionals.shift(),
    positionals,
    usage,
    has: (name) => values.has(name),
    text: (name) => values.get(name)?.[0],
    texts: (name) => values.get(name) ?? [],
  };
}

/** The error for an unknown action of a command, such as "list" or "add". */
function refuseAction(command: string, action: string | undefined, actions: readonly string[]): UsageError {
  const last = actions.at(-1) ?? "";
  // The whole usage of a command with many actions hides the one word that is wrong.
  const expected = `one of ${actions.join(", ")}; \`holdfast ${command} --help\` explains them`;
  if (action === undefined)
    return new UsageError(`${actions.slice(0, -1).join(", ")} or ${last}?`, { got: "nothing", expected });
  return new UsageError(
    `\`${action}\` is no action of \`holdfast ${command}\`${didYouMean(action, actions)}`,
    {
      got: action,
      expected,
    },
  );
}

/** An option of another action is refused: if it were not looked at, it would be a wish that is not heard. */
function refuseForeignOptions(syntax: Syntax, args: Arguments): void {
  const { name, options, action = "" } = { ...syntax, ...args };
  const own = Object.keys(ownOptions(syntax, args.action));
  const foreign = Object.keys(options).find((option) => args.has(option) && !own.includes(option));
  if (foreign === undefined) return;
  throw refuse(`${name} ${action} has no option --${foreign}`, args.usage, {
    got: `--${foreign}`,
    fix: own.length === 0 ? "leave it out" : `give one of ${own.map((option) => `--${option}`).join(", ")}`,
  });
}

function checkCount(syntax: Syntax, { action, positionals, usage, has }: Arguments): void {
  const taken = argumentsOf(syntax, action);
  const needed = taken.filter(
    ({ optional, orOption }) => optional !== true && (orOption === undefined || !has(orOption)),
  );
  const missing = needed.find((_, i) => (positionals[i] ?? "") === "");
  if (missing !== undefined)
    throw refuse(`${missing.is} is missing`, usage, defined({ fix: missing.ifMissing }));
  const extra = positionals[taken.length];
  const last = taken.at(-1);
  if (extra === undefined || taken.some(({ repeats }) => repeats === true) || last?.leavesRest === true)
    return;
  // A shell turns `--agents *.ts` into one option and further arguments.
  const list = Object.entries(ownOptions(syntax, action)).find(
    ([name, { takesMore }]) => takesMore === true && has(name),
  );
  const fix =
    taken.findLast(({ ifMore }) => ifMore !== undefined)?.ifMore ??
    (list && `leave it out, or name --${list[0]} again for each further file`);
  throw refuse(`"${extra}" is one argument too many`, usage, defined({ fix }));
}

export function refuse(
  message: string,
  usage: string,
  details: { readonly got?: string; readonly expected?: string; readonly fix?: string } = {},
): UsageError {
  return new UsageError(message, { expected: `holdfast ${usage}`, ...details });
}

function findOption(
  word: string,
  syntax: Syntax,
  action: string | undefined,
): { name: string; option: Option; inline: string | undefined } {
  const options = knownOptions(syntax);
  const [, long, short, inline] = /^(?:--([^=]+)|-([^=]))(?:=([^]*))?$/.exec(word) ?? [];
  const name = long ?? Object.keys(options).find((candidate) => options[candidate]?.short === short);
  const option = name === undefined || !Object.hasOwn(options, name) ? undefined : options[name];
  if (name !== undefined && option !== undefined) return { name, option, inline };
  const given = word.replace(/=.*$/s, "");
  const usage = usageOf(syntax, action);
  const lacked = Object.hasOwn(syntax.lacks ?? {}, name ?? "") ? syntax.lacks?.[name ?? ""] : undefined;
  if (lacked !== undefined)
    throw refuse(`${syntax.name} has no option ${given}`, usage, { got: given, fix: lacked });
  const argument = given.replace(/^-+/, "").toUpperCase();
  if (argumentsOf(syntax, action).some((one) => alternatives(one.name).includes(argument)))
    throw refuse(`there is no option ${given}: ${argument} is an argument of its own`, usage, {
      fix: `write its value without ${given}`,
    });
  const own = ownOptions(syntax, action);
  const names = Object.keys(options)
    .filter((candidate) => Object.hasOwn(own, candidate) || !Object.hasOwn(syntax.options, candidate))
    .map((candidate) => `--${candidate}`);
  throw refuse(`there is no option ${given}${didYouMean(given, names)}`, usage, {
    fix: `give one of ${names.join(", ")}`,
  });
}

/** The value of `--grace`, for the commands that run sessions. */
export function graceOf(args: Arguments): { readonly graceMs?: number } {
  const grace = args.text("grace");
  if (grace === undefined) return {};
  return { graceMs: parseDuration(grace, "--grace") };
}

/** The id of `--session`. @throws UsageError */
export function sessionIdOf(args: Arguments): string | undefined {
  const wanted = args.text("session");
  if (wanted === undefined || isSessionId(wanted)) return wanted;
  throw new UsageError(`"${wanted}" cannot be the id of a session`, {
    at: "--session",
    expected: "1 to 100 letters, digits, dots, dashes and underscores, starting with a letter or a digit",
  });
}

/** The number of `--limit`: how many of these things are shown. @throws UsageError */
export function limitOf(
  args: Arguments,
  { what = "sessions", usual = 50, most = 1_000_000 }: { what?: string; usual?: number; most?: number } = {},
): number {
  const text = args.text("limit") ?? String(usual);
  const limit = Number(text);
  if (/^\d+$/.test(text) && limit > 0 && limit <= most) return limit;
  throw refuse(`--limit is not a number of ${what}`, args.usage, {
    got: text,
    expected: `a whole number from 1 to ${most}`,
  });
}
