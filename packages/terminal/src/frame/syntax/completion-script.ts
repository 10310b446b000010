// `completionScript`: a script by which a shell completes the words of a command line.
//
//   - The script holds the tables of all commands, so a press of Tab starts no process.
//   - It knows a context: nothing yet, a command, or a command with its action. Each has words and options.
//   - bash and zsh read the same tables, which are `case` statements. fish has a line for each word instead.

import type { Argument, Option, Options, Syntax } from "../command.ts";
import { alternatives, argumentsOf, knownOptions, ownOptions } from "../help.ts";

export const SHELLS = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof SHELLS)[number];

/** A command as a shell completes it. */
export interface CompletedCommand {
  readonly command: Syntax;
  readonly summary: string;
}

/** The words that may follow in one place of a command line. */
interface Context {
  /** The words before: "", `list`, or `agents show`. */
  readonly name: string;
  /** Words that lead to another context, each with its meaning. */
  readonly next: Readonly<Record<string, string>>;
  readonly options: Options;
  readonly takes: readonly Argument[];
}

/** A name in capitals that stands for a path. */
const PATHS = new Set(["FILE", "PATH", "DIR"]);

/** @returns the script that a person's shell reads once, at its start. */
export function completionScript(shell: Shell, commands: readonly CompletedCommand[]): string {
  const contexts = contextsOf(commands);
  const head = `# Completion of holdfast for ${shell}. \`holdfast completion ${shell}\` has written it.`;
  switch (shell) {
    case "bash":
      return [head, ...tableLines(contexts), BASH].join("\n");
    case "zsh":
      return ["#compdef holdfast", head, ...tableLines(contexts), ZSH].join("\n");
    case "fish":
      return [head, ...fishLines(contexts)].join("\n");
  }
}

function contextsOf(commands: readonly CompletedCommand[]): readonly Context[] {
  const names = Object.fromEntries(commands.map(({ command, summary }) => [command.name, summary]));
  const none: Pick<Context, "next" | "takes"> = { next: {}, takes: [] };
  return [
    {
      ...none,
      name: "",
      next: { ...names, help: "Explain a command" },
      options: { help: { help: "show the help" }, version: { help: "show the version" } },
    },
    { ...none, name: "help", next: names, options: {} },
    ...commands.flatMap(({ command: syntax }) => {
      const { name, actions, defaultAction } = syntax;
      const optionsOf = (action?: string): Options =>
        Object.fromEntries(
          Object.entries(knownOptions(syntax)).filter(
            ([option]) =>
              !Object.hasOwn(syntax.options, option) || Object.hasOwn(ownOptions(syntax, action), option),
          ),
        );
      if (actions === undefined)
        return [{ name, next: {}, options: optionsOf(), takes: argumentsOf(syntax) }];
      const meanings = Object.entries(actions).map(([action, { does }]) => [action, does]);
      const beginning = defaultAction ?? ""; // Without one, only the common options go before the action.
      return [
        { name, next: Object.fromEntries(meanings), options: optionsOf(beginning), takes: [] },
        ...Object.keys(actions).map((action) => ({
          name: `${name} ${action}`,
          next: {},
          options: optionsOf(action),
          takes: argumentsOf(syntax, action),
        })),
      ];
    }),
  ];
}

/** The words that a value or an argument may be: those in small letters. */
function wordsOf(name: string): readonly string[] {
  return alternatives(name).filter((part) => /^[a-z][a-z-]*$/.test(part));
}

function isPath(name: string): boolean {
  return alternatives(name).some((part) => PATHS.has(part));
}

function flagsOf(options: Options, having: (option: Option) => boolean): readonly string[] {
  return Object.entries(options).flatMap(([name, option]) =>
    having(option) ? [`--${name}`, ...(option.short === undefined ? [] : [`-${option.short}`])] : [],
  );
}

/** The functions of bash and zsh that know the commands. */
function tableLines(contexts: readonly Context[]): readonly string[] {
  const rows = contexts.map(({ name, next, options, takes }) => {
    const settings = {
      next: Object.keys(next),
      words: takes.flatMap((one) => wordsOf(one.name)),
      options: Object.keys(options).map((option) => `--${option}`),
      valued: flagsOf(options, ({ value }) => value !== undefined),
      lists: flagsOf(options, ({ takesMore }) => takesMore === true),
      files: takes.some((one) => isPath(one.name)) ? ["yes"] : [],
    };
    const given = Object.entries(settings).filter(([, list]) => list.length > 0);
    return `    '${name}') ${given.map(([key, list]) => `${key}='${list.join(" ")}'`).join(" ")} ;;`;
  });
  const values = contexts.flatMap(({ name, options }) =>
    Object.entries(options).flatMap(([option, { value = "", short }]) => {
      const words = wordsOf(value);
      const setting = isPath(value) ? "files=yes" : words.length > 0 ? `words='${words.join(" ")}'` : "";
      const flags = [`--${option}`, ...(short === undefined ? [] : [`-${short}`])];
      return setting === ""
        ? []
        : [`    ${flags.map((flag) => `'${name} ${flag}'`).join("|")}) ${setting} ;;`];
    }),
  );
  return [
    "",
    "# Sets next, words, options, valued, lists and files for the words of the line so far.",
    "__holdfast_table() {",
    "  next= words= options= valued= lists= files=",
    '  case "$1" in',
    ...rows,
    "  esac",
    "}",
    "",
    "# Sets the same for the value of an option.",
    "__holdfast_value() {",
    "  next= words= files=",
    '  case "$1 $2" in',
    ...values,
    "  esac",
    "}",
    "",
    "# Reads the words before the one that is completed. Sets the same, and value when a value is completed.",
    "__holdfast_read() {",
    "  local context= word= skipped= list=",
    "  value=",
    "  __holdfast_table ''",
    '  for word in "$@"; do',
    '    if [[ $word == "=" ]]; then continue; fi',
    "    if [[ -n $skipped ]]; then skipped=; continue; fi",
    '    case "$word" in',
    "      --*=*) ;;",
    "      -*)",
    "        list=",
    '        if [[ " $valued " == *" $word "* ]]; then skipped=$word; fi',
    '        if [[ " $lists " == *" $word "* ]]; then list=$word; fi',
    "        ;;",
    "      *)",
    '        if [[ " $next " == *" $word "* ]]; then',
    '          context="${context:+$context }$word"',
    '          __holdfast_table "$context"',
    "        fi",
    "        ;;",
    "    esac",
    "  done",
    '  if [[ -n $skipped ]]; then value=yes; __holdfast_value "$context" "$skipped"',
    '  elif [[ -n $list ]]; then __holdfast_value "$context" "$list"',
    "  fi",
    "}",
  ];
}

const BASH = `
_holdfast() {
  local next words options valued lists files value
  local current="\${COMP_WORDS[COMP_CWORD]}"
  # bash divides --option=value at the equals sign.
  if [[ $current == "=" ]]; then current=; fi
  __holdfast_read "\${COMP_WORDS[@]:1:COMP_CWORD-1}"
  COMPREPLY=()
  if [[ -z $value && $current == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
    return
  fi
  COMPREPLY=($(compgen -W "$next $words" -- "$current"))
  if [[ -n $files ]]; then
    compopt -o filenames 2>/dev/null
    local name
    while IFS= read -r name; do COMPREPLY+=("$name"); done < <(compgen -f -- "$current")
  fi
}
complete -F _holdfast holdfast
`;

const ZSH = `
_holdfast() {
  local next options valued lists files value found
  # \`words\` is the line in zsh, so the tables write another variable of this name.
  local -a line
  line=("\${(@)words[2,CURRENT-1]}")
  local current="\${words[CURRENT]}"
  () {
    local words
    __holdfast_read "\${(@)line}"
    found="$next $words"
  }
  if [[ -z $value && $current == -* ]]; then
    compadd -- \${=options}
    return
  fi
  compadd -- \${=found}
  if [[ -n $files ]]; then _files; fi
}
# Read by a start file, it registers itself; found by compinit, it completes at once.
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _holdfast "$@"; else compdef _holdfast holdfast; fi
`;

function fishLines(contexts: readonly Context[]): readonly string[] {
  const names = contexts.map(({ name }) => name).filter((name) => name !== "");
  return [
    "",
    "# The words of the line that choose what may follow: nothing, a command, or a command with its action.",
    "function __holdfast_context",
    "    set -l context",
    "    for word in (commandline -opc)[2..]",
    `        if contains -- (string trim -- "$context $word") ${names.map(fishText).join(" ")}`,
    '            set context (string trim -- "$context $word")',
    "        end",
    "    end",
    '    test "$context" = "$argv[1]"',
    "end",
    "",
    "complete -c holdfast -f",
    ...contexts.flatMap(fishContext),
    "",
  ];
}

function fishContext({ name, next, options, takes }: Context): readonly string[] {
  const when = `complete -c holdfast -n ${fishText(`__holdfast_context '${name}'`)}`;
  // fish knows no option with several values: those after the first are to it arguments of the command.
  const hasList = Object.values(options).some(
    ({ value = "", takesMore }) => takesMore === true && isPath(value),
  );
  return [
    ...Object.entries(next).map(([word, means]) => `${when} -a ${word} -d ${fishText(means)}`),
    ...takes.flatMap((one) => wordsOf(one.name)).map((word) => `${when} -a ${word}`),
    ...(takes.some((one) => isPath(one.name)) || hasList ? [`${when} -F`] : []),
    ...Object.entries(options).map(([option, { help, value, short }]) => {
      const words = value === undefined ? [] : wordsOf(value);
      const values =
        value === undefined
          ? ""
          : isPath(value)
            ? " -r -F"
            : ` -x${words.length === 0 ? "" : ` -a ${fishText(words.join(" "))}`}`;
      return `${when} -l ${option}${short === undefined ? "" : ` -s ${short}`}${values} -d ${fishText(brief(help))}`;
    }),
  ];
}

/** The first clause: a line of a list has no room for more. */
function brief(help: string): string {
  return /^[^;:(]*/.exec(help)![0].trim();
}

function fishText(text: string): string {
  return `'${text.replaceAll(/['\\]/g, String.raw`\$&`)}'`;
}
