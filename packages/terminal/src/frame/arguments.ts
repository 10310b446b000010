// A command line, checked against the options of its command. Every refusal names what it refuses.

import { didYouMean, isSessionId, parseDuration, UsageError } from "@holdfast/core";
import type { Arguments, Command, Option, Options } from "./command.ts";

/** A coordinator's token, alone or after an equals sign. */
const TOKEN = /(^|=)hf_(adm|usr|reg|rnr|job)_[0-9a-f]{16,}$/;

/**
 * @throws UsageError for a token, for an option that is unknown, twice there, without its value, or at odds
 *   with another.
 */
export function parseArguments(words: readonly string[], options: Options, usage: string): Arguments {
  const values = new Map<string, string[]>();
  const positionals: string[] = [];
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
    const { name, option, inline } = findOption(word, options, usage);
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
    positionals,
    has: (name) => values.has(name),
    text: (name) => values.get(name)?.[0],
    texts: (name) => values.get(name) ?? [],
  };
}

/** The error for an unknown action of a command, such as "list" or "add". @throws UsageError */
export function refuseAction(
  command: string,
  action: string | undefined,
  actions: readonly string[],
  usage: string,
): UsageError {
  const last = actions.at(-1) ?? "";
  // The whole usage of a command with many actions hides the one word that is wrong.
  const expected = `one of ${actions.join(", ")}; \`holdfast ${command} --help\` explains them`;
  if (action === undefined)
    return refuse(`${actions.slice(0, -1).join(", ")} or ${last}?`, usage, { got: "nothing", expected });
  return refuse(`there is no ${command} ${action}${didYouMean(action, actions)}`, usage, {
    got: action,
    expected,
  });
}

/**
 * Refuses options of another action of the command: an option that is not looked at would be a wish that is
 * not heard.
 *
 * @param optionsOf the options of each action. @throws UsageError
 */
export function refuseForeignOptions(
  { name, usage, options }: Pick<Command, "name" | "usage" | "options">,
  optionsOf: Readonly<Record<string, readonly string[]>>,
  args: Arguments,
): void {
  const [action = ""] = args.positionals;
  const own = optionsOf[action];
  const foreign = Object.keys(options).find((option) => args.has(option) && own?.includes(option) === false);
  if (own === undefined || foreign === undefined) return;
  throw refuse(`${name} ${action} has no option --${foreign}`, usage, {
    got: `--${foreign}`,
    fix: own.length === 0 ? "leave it out" : `give one of ${own.map((option) => `--${option}`).join(", ")}`,
  });
}

/** The one thing a command is about, and nothing else. */
export function takeOnly(positionals: readonly string[], what: string, usage: string): string {
  const [only, extra] = positionals;
  if (only === undefined || only === "") throw refuse(`${what} is missing`, usage);
  if (extra !== undefined) throw tooMany(extra, usage);
  return only;
}

export function takeNothing(positionals: readonly string[], usage: string): void {
  if (positionals[0] !== undefined) throw tooMany(positionals[0], usage);
}

/** A shell turns `--agents *.ts` into one option and further arguments. */
function tooMany(extra: string, usage: string): UsageError {
  const [, option] = /--(\S+) FILE\.\.\./.exec(usage) ?? [];
  const fix =
    option === undefined ? {} : { fix: `leave it out, or name --${option} again for each further file` };
  return refuse(`"${extra}" is one argument too many`, usage, fix);
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
  options: Options,
  usage: string,
): { name: string; option: Option; inline: string | undefined } {
  const [, long, short, inline] = /^(?:--([^=]+)|-([^=]))(?:=([^]*))?$/.exec(word) ?? [];
  const name = long ?? Object.keys(options).find((candidate) => options[candidate]?.short === short);
  const option = name === undefined || !Object.hasOwn(options, name) ? undefined : options[name];
  if (name !== undefined && option !== undefined) return { name, option, inline };
  const given = word.replace(/=.*$/s, "");
  const names = Object.keys(options).map((candidate) => `--${candidate}`);
  const argument = given.replace(/^-+/, "").toUpperCase();
  // A word in capitals that follows no option is an argument.
  if (/^[A-Z]+$/.test(argument) && new RegExp(`(?<!--[a-z-]+ )\\b${argument}\\b`).test(usage))
    throw refuse(`there is no option ${given}: ${argument} is an argument of its own`, usage, {
      fix: `write its value without ${given}`,
    });
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
