// The help and the usage lines, from the tables of the commands (`Syntax`).

import {
  COMMON_OPTIONS,
  type Argument,
  type Command,
  type Option,
  type Options,
  type Syntax,
} from "./command.ts";
import { table, wrapped } from "./plain-text.ts";

const WIDTH = 100;

export const USAGE = "usage: holdfast COMMAND [OPTIONS]";

/** The exit codes of the command; `docs/errors.md` lists the errors behind each. */
export const EXIT_CODES: Readonly<Record<number, string>> = {
  0: "done",
  1: "the session failed, or is paused",
  2: "wrong usage",
  3: "the agent's file or the configuration is wrong",
  4: "not found",
  5: "a key, a secret or a token is missing, refused, or without the right",
  6: "a conflict: claimed, locked, ended, cancelled",
  7: "the model or the coordinator is not available or over a limit, or a port is taken",
  9: "a budget",
  10: "storage",
  11: "incompatible version, also of Node",
  12: "refused by a policy",
  70: "a defect of Holdfast",
  129: "stopped: the terminal was closed",
  130: "stopped: Ctrl-C",
  137: "ended by force, also by the watchdog when an agent kept the process busy",
  143: "stopped: asked to end",
};

/** @param groups the commands by subject. */
export function overview(
  groups: readonly (readonly [
    subject: string,
    listed: Readonly<Record<string, { readonly summary: string }>>,
  ])[],
): string {
  // One table, so that the summaries of all groups stand in one column.
  const lines = table(
    groups.flatMap(([, listed]) => Object.entries(listed).map(([name, { summary }]) => [name, summary])),
  );
  return [
    "Holdfast runs AI agents that must not lose their work.",
    "",
    USAGE,
    "",
    ...groups.flatMap(([subject, listed]) => [
      subject,
      ...indented(lines.splice(0, Object.keys(listed).length)),
      "",
    ]),
    "Options of every command",
    ...indented(optionLines(COMMON_OPTIONS)),
    "",
    "Examples",
    ...indented(
      table([
        [`holdfast run hello.ts --input '{"name": "Ada"}'`, "run an agent"],
        ["holdfast list", "its session, and all others of this project"],
        ["holdfast resume --last", "continue after a crash, or after Ctrl-C"],
      ]),
    ),
    "",
    "Exit codes",
    ...indented(table(Object.entries(EXIT_CODES).map(([code, means]) => [code, means]))),
    "",
    "`holdfast COMMAND --help` explains a command, with examples.",
    "",
  ].join("\n");
}

export function commandHelp(command: Command, summary: string): string {
  const { description, options, actions, examples } = command;
  const own = optionLines(options, command);
  const common = Object.fromEntries(
    Object.entries(knownOptions(command)).filter(([name]) => !Object.hasOwn(options, name)),
  );
  return [
    `${summary}.`,
    "",
    `usage: holdfast ${usageOf(command)}`,
    ...(actions === undefined ? [] : ["", "Actions", ...indented(actionLines(command))]),
    ...(description === undefined ? [] : ["", ...wrapped(description, WIDTH)]),
    ...(own.length === 0 ? [] : ["", "Options", ...indented(own)]),
    "",
    "Options of every command",
    ...indented(optionLines(common)),
    "",
    "Examples",
    ...indented(
      examples.flatMap(([commandLine, does]) => [
        commandLine.includes("holdfast ") ? commandLine : `holdfast ${commandLine}`,
        `    ${does}`,
      ]),
    ),
    "",
  ].join("\n");
}

function actionLines(command: Syntax): string[] {
  return Object.entries(command.actions ?? {}).flatMap(([action, { does }]) => [
    `holdfast ${usageOf(command, action)}`,
    `    ${does}`,
  ]);
}

function optionLines(options: Options, syntax?: Syntax): string[] {
  return table(
    Object.entries(options).map(([name, option]) => {
      const having = syntax === undefined ? [] : actionsHaving(name, syntax);
      return [
        `${option.short === undefined ? "    " : `-${option.short}, `}${optionText(name, option)}`,
        having.length === 0 ? option.help : `${having.join(", ")}: ${option.help}`,
      ];
    }),
  );
}

/** The actions that have an option; none where all have it, or the command has no actions. */
export function actionsHaving(option: string, { actions = {} }: Syntax): readonly string[] {
  const having = Object.keys(actions).filter((action) => actions[action]?.options?.includes(option) === true);
  return having.length === Object.keys(actions).length ? [] : having;
}

function indented(lines: readonly string[]): string[] {
  return lines.map((line) => `  ${line}`);
}

/** A line with all options is read by a person; a longer one says `[OPTIONS]`. */
const LINE_MAX = 88;

/** Every option that the command line of the command may have. */
export function knownOptions({ options, lacks = {} }: Syntax): Options {
  const common = Object.entries(COMMON_OPTIONS).filter(
    ([name]) => !Object.hasOwn(lacks, name) && !Object.hasOwn(options, name),
  );
  return { ...options, ...Object.fromEntries(common) };
}

/** The options that are the command's own, or its action's. */
export function ownOptions({ options, actions }: Syntax, action?: string): Options {
  if (actions === undefined || action === undefined) return options;
  const names = actions[action]?.options ?? [];
  return Object.fromEntries(Object.entries(options).filter(([name]) => names.includes(name)));
}

export function argumentsOf({ takes = [], actions }: Syntax, action?: string): readonly Argument[] {
  return actions === undefined || action === undefined ? takes : (actions[action]?.takes ?? []);
}

/** The command line after `holdfast`. */
export function usageOf(syntax: Syntax, action?: string): string {
  const { name, actions, defaultAction } = syntax;
  if (actions !== undefined && action === undefined) return `${name} ACTION [OPTIONS]`;
  const own = ownOptions(syntax, action);
  const taken = argumentsOf(syntax, action);
  const replacing = new Set(taken.map(({ orOption }) => orOption));
  const shown = Object.entries(own).filter(([option]) => !replacing.has(option));
  const line = [
    name,
    ...(action === undefined ? [] : [action === defaultAction ? `[${action}]` : action]),
    ...taken.filter(({ afterDashes }) => afterDashes !== true).map((one) => argumentText(one, own)),
    ...groupsOf(shown.filter(([, { required }]) => required === true)).map(groupText),
  ];
  const optional = groupsOf(shown.filter(([, { required }]) => required !== true)).map(groupText);
  const last = taken.filter(({ afterDashes }) => afterDashes === true).map((one) => argumentText(one, own));
  const whole = [...line, ...optional, ...last].join(" ");
  return whole.length <= LINE_MAX || optional.length < 2 ? whole : [...line, "[OPTIONS]", ...last].join(" ");
}

/** The usage line of each action, or the only one. */
export function usagesOf(syntax: Syntax): readonly string[] {
  const { actions } = syntax;
  if (actions === undefined) return [usageOf(syntax)];
  return Object.keys(actions).map((action) => usageOf(syntax, action));
}

/** The names of an argument or a value: the parts of `FILE|-`. */
export function alternatives(name: string): readonly string[] {
  return name.split("|");
}

/** An option with its value: `--agents FILE...`. */
export function optionText(name: string, { value, takesMore }: Option): string {
  return `--${name}${value === undefined ? "" : ` ${value}${takesMore === true ? "..." : ""}`}`;
}

function argumentText(
  { name, optional, repeats, orOption, afterDashes }: Argument,
  options: Options,
): string {
  const text = `${afterDashes === true ? "-- " : ""}${name}${repeats === true ? "..." : ""}`;
  const option = orOption === undefined ? undefined : options[orOption];
  if (option === undefined) return optional === true ? `[${text}]` : text;
  const either = `${text} | ${optionText(orOption!, option)}`;
  return optional === true ? `[${either}]` : `(${either})`;
}

type Named = readonly [name: string, option: Option];

/** Options that exclude each other stand together. */
function groupsOf(options: readonly Named[]): readonly (readonly Named[])[] {
  const groups: Named[][] = [];
  for (const one of options) {
    const group = groups.find((others) => others.every((other) => areRivals(one, other)));
    if (group === undefined) groups.push([one]);
    else group.push(one);
  }
  return groups;
}

function areRivals([name, { excludes }]: Named, [other, { excludes: others }]: Named): boolean {
  return excludes?.includes(other) === true || others?.includes(name) === true;
}

function groupText(group: readonly Named[]): string {
  const isRequired = group.some(([, { required }]) => required === true);
  const texts = group.map(([name, option]) => optionText(name, option));
  if (isRequired) return group.length === 1 ? texts[0]! : `(${texts.join(" | ")})`;
  const isRepeated = group.length === 1 && group[0]![1].repeats === true && group[0]![1].takesMore !== true;
  return `[${texts.join(" | ")}]${isRepeated ? "..." : ""}`;
}
