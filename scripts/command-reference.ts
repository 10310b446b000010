// `commandReference`: the page docs/commands.md, with each command, its actions, arguments and options. All of
// it is from the tables of the commands, which also make their help and the completion of shells.

import { allCommands } from "../packages/holdfast/src/commands/index.ts";
import { COMMON_OPTIONS, type Command, type Options } from "../packages/terminal/src/frame/command.ts";
import { actionsHaving, optionText, usageOf, usagesOf } from "../packages/terminal/src/frame/help.ts";

export const COMMANDS_PAGE = "docs/commands.md";

const HEAD = `# Commands and options

This page has every command with its actions and options. \`npm run api-report\` writes it from the tables of the commands, which also
make \`holdfast COMMAND --help\`, the errors of a wrong command line, and the completion of shells (\`holdfast completion\`).

A word in capitals stands for a value. Words in brackets may be left out, words with three dots may be given several times, and a
line divides alternatives. \`[OPTIONS]\` are those of the table. Options stand anywhere behind the command.
`;

/** The text of the page. */
export async function commandReference(): Promise<string> {
  const subjects = [...Map.groupBy(await allCommands(), ({ subject }) => subject)];
  const toc = subjects.map(
    ([subject, commands]) =>
      `- ${subject}: ${commands.map(({ command: { name } }) => `[\`${name}\`](#holdfast-${name})`).join(", ")}`,
  );
  return [
    HEAD,
    `${toc.join("\n")}\n`,
    "## Options of every command\n",
    optionTable(COMMON_OPTIONS),
    ...subjects.flatMap(([subject, commands]) => [
      `## ${subject}\n`,
      ...commands.map(({ command, summary }) => sectionOf(command, summary)),
    ]),
  ].join("\n");
}

function sectionOf(command: Command, summary: string): string {
  const { name, description, actions, options, lacks = {}, examples } = command;
  const lacked = Object.keys(lacks).map((option) => `\`--${option}\``);
  const taken = Object.entries(actions ?? {}).map(
    ([action, { does }]) => `| \`${cell(usageOf(command, action))}\` | ${cell(does)} |`,
  );
  return [
    `### holdfast ${name}\n`,
    `${summary}.\n`,
    ...(actions === undefined ? [`\`\`\`sh\nholdfast ${usagesOf(command)[0]}\n\`\`\`\n`] : []),
    ...(description === undefined ? [] : [`${description}\n`]),
    ...(taken.length === 0 ? [] : [`| action | what it does |\n|---|---|\n${taken.join("\n")}\n`]),
    ...(Object.keys(options).length === 0 ? [] : [optionTable(options, command)]),
    ...(lacked.length === 0 ? [] : [`It does not have ${lacked.join(" and ")}.\n`]),
    `\`\`\`sh\n${examples.map(([line, does]) => `${line.includes("holdfast ") ? line : `holdfast ${line}`}   # ${does}`).join("\n")}\n\`\`\`\n`,
  ].join("\n");
}

function optionTable(options: Options, command?: Command): string {
  const isDivided = command?.actions !== undefined;
  const rows = Object.entries(options).map(([name, option]) => {
    const short = option.short === undefined ? "" : `\`-${option.short}\`, `;
    const having = command === undefined ? [] : actionsHaving(name, command);
    const actions = having.length === 0 ? "all" : having.map((action) => `\`${action}\``).join(", ");
    const middle = isDivided ? `${actions} | ` : "";
    return `| ${short}\`${cell(optionText(name, option))}\` | ${middle}${cell(option.help)} |`;
  });
  const head = isDivided
    ? "| option | actions | meaning |\n|---|---|---|"
    : "| option | meaning |\n|---|---|";
  return `${head}\n${rows.join("\n")}\n`;
}

function cell(text: string): string {
  return text.replaceAll("|", String.raw`\|`);
}
