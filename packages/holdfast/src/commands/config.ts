import { defined, didYouMean, HoldfastError } from "@holdfast/core";
import { refuse } from "@holdfast/terminal/frame/arguments";
import type { Arguments, Command, Io } from "@holdfast/terminal/frame/command";
import { plainLine, table } from "@holdfast/terminal/frame/plain-text";
import { CONFIG_KEYS } from "@holdfast/place/settings/config";
import { findDatabase, findStrictBounds, findTraces } from "@holdfast/place/project";
import { findCommandNamespace, findSandboxRoot, requireSandbox } from "../agents/sandbox-settings.ts";
import { findMode, unusedMode } from "@holdfast/place/mode";

const TEXT_MAX = 4_096;

interface Setting {
  readonly key: string;
  readonly value: string | boolean;
  readonly origin: string;
  /** The flag, the variable or the file it was given by. */
  readonly from?: string;
}

export const config: Command = {
  name: "config",
  actions: {
    get: { does: "the value of one setting", takes: [{ name: "KEY", is: "the key" }], options: ["origin"] },
    list: { does: "all settings, and where each was set" },
    export: {
      does: "write settings, schedules, agent files and permissions to one file",
      options: ["output"],
    },
    import: {
      does: "take them over from such a file",
      takes: [{ name: "FILE|-", is: "the file" }],
      options: ["yes", "dry-run"],
    },
  },
  description:
    "The first of these that has a value wins: a flag, the environment, .holdfast/config.json in the project, " +
    "holdfast/config.json in your configuration folder ($XDG_CONFIG_HOME, or ~/.config), the default. " +
    "Both files are JSON; docs/config.schema.json defines their content. Settings of a project count once you have trusted its configuration " +
    "(`agents trust`). `export` writes both files, the policy of the runner, your agent " +
    "files and those of the project, and all schedules as one file. The code of agents is not in it, nor a secret: what looks like one is " +
    "left out and named. `import` shows what it would change, asks, and then changes all of it or nothing; what only this machine has " +
    "stays. Exit codes: 2 an option is wrong or nobody can be asked, 3 the file or a setting is wrong, 12 the project is not trusted, 11 the file is of a newer Holdfast.",
  options: {
    origin: { help: "also show where the value was set" },
    output: { help: "the file to write (default: standard output)", value: "FILE", short: "o" },
    yes: { help: "do not ask", short: "y" },
    "dry-run": { help: "only show what would change" },
  },
  examples: [
    ["config list", "all settings, and where each was set"],
    ["config get db", "the path of the database, alone, for scripts"],
    ["config get db --origin", "and where that path was set"],
    ["config export -o shop.json", "settings, schedules, agent files and permissions as one file"],
    ["config import shop.json", "on another machine: shows the changes, and asks"],
  ],

  async run(args, io) {
    const { action, positionals: rest } = args;
    switch (action) {
      case "get": {
        const setting = await find(rest[0]!, args, io);
        const { value } = setting;
        io.result(setting, args.has("origin") ? `${value}  (${whence(setting)})` : String(value));
        return 0;
      }
      case "list": {
        const settings = await Promise.all(allKeys().map((key) => listed(key, args, io)));
        const rows = settings.map((setting) =>
          [setting.key, String(setting.value), whence(setting)].map((cell) => plainLine(cell, TEXT_MAX)),
        );
        io.show(settings, table([["KEY", "VALUE", "GIVEN BY"], ...rows]).join("\n"));
        return 0;
      }
      case "export":
        return (await transfer()).exportConfig(args, io);
      default:
        return (await transfer()).importConfig(rest[0]!, args, io);
    }
  },
};

const transfer = () => import("../transfer/move-config.ts");

/** The settings of files, and those that only the environment sets. */
function allKeys(): readonly string[] {
  return [...CONFIG_KEYS, "sandbox", "sandboxRoot"];
}

/** A setting that needs trust is listed as such, and the others as they are in force. */
async function listed(key: string, args: Arguments, io: Io): Promise<Setting> {
  try {
    return await find(key, args, io);
  } catch (error) {
    if (!HoldfastError.is(error) || error.code !== "policy_denied") throw error;
    const from = `${error.at}, not trusted: ${io.call("agents trust")}`;
    return { key, value: "refused", origin: "project_file", from };
  }
}

async function find(key: string, args: Arguments, io: Io): Promise<Setting> {
  switch (key) {
    case "db": {
      const { path, origin, from } = findDatabase(args, io);
      return { key, value: path, origin, ...defined({ from }) };
    }
    case "trace": {
      const { targets, origin, from } = findTraces(args, io);
      return { key, value: targets.join(", "), origin, ...defined({ from }) };
    }
    case "strictBounds": {
      return { key, ...findStrictBounds(args, io) };
    }
    case "commandNamespace": {
      return { key, ...findCommandNamespace(io) };
    }
    case "sandbox": {
      return { key, ...requireSandbox(io) };
    }
    case "sandboxRoot": {
      return { key, ...findSandboxRoot(io) };
    }
    case "mode": {
      const unused = unusedMode(io);
      if (unused !== undefined) io.note(`${io.notes.symbols.warn} ${unused}`);
      return { key, ...findMode(args, io, false) };
    }
    default: {
      const keys = allKeys();
      throw refuse(`there is no setting "${key}"${didYouMean(key, keys)}`, args.usage, {
        got: key,
        fix: `one of ${keys.join(", ")}`,
      });
    }
  }
}

function whence({ origin, from }: Setting): string {
  return from === undefined ? origin : `${origin.replace("_", " ")}: ${from}`;
}
