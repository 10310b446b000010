// The schema of configuration files (`CONFIG_SCHEMA`), and reading them. `project.ts` decides
// which file counts first.
//
//   - The schema is the only list of settings: a key that it does not have is refused, and
//     `docs/config.schema.json` is its copy. `checkSetting` checks the types of values.
//   - A file that exists and is wrong is an error that names the file and the JSON pointer. It is never
//     passed over. An empty file is right.
//   - A file that other users may write is refused: it says where sessions are stored and where traces go.

import { isAbsolute, join } from "node:path";
import { didYouMean, HoldfastError, jsonSyntaxProblem, MIB } from "@holdfast/core";
import { requireFileVersion } from "@holdfast/system";
import { checkTrusted, kindOfValue, readGiven } from "@holdfast/terminal/frame/given-file";

export const CONFIG_SCHEMA = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  title: "Configuration of Holdfast",
  description:
    "Read from .holdfast/config.json in the project; settings that are not there, from holdfast/config.json in the user's " +
    "configuration folder ($XDG_CONFIG_HOME, or ~/.config).",
  type: "object",
  properties: {
    $schema: { type: "string", minLength: 1, description: "Location of this schema, for editors." },
    db: {
      type: "string",
      minLength: 1,
      description: "Path of the database. In both files a relative one begins at the project's folder.",
    },
    trace: {
      type: ["string", "array"],
      minLength: 1,
      items: { type: "string", minLength: 1 },
      description:
        "Destination of traces: stdout, file:PATH, sqlite:PATH, otlp or otlp:URL, or a list of these.",
    },
    strictBounds: {
      type: "boolean",
      description:
        "Refuse a session of an agent in the turn form without a limit, as --strict-bounds does, also without that flag.",
    },
    commandNamespace: {
      type: "boolean",
      description:
        "Whether each command of the sandbox filesystem has a user namespace of its own on Linux (default: true). " +
        "false lets sudo and rootless containers work in commands, which may then look into other processes of the user.",
    },
    mode: {
      type: "string",
      minLength: 1,
      description:
        "local for one machine, or cloud for a fleet: which defaults coordinators and runners have.",
    },
  },
  additionalProperties: false,
} as const;

export interface Config {
  readonly db?: string;
  readonly trace?: string | readonly string[];
  readonly strictBounds?: boolean;
  readonly commandNamespace?: boolean;
  readonly mode?: string;
}

/** The settings, without what is there for editors. */
export const CONFIG_KEYS = Object.keys(CONFIG_SCHEMA.properties).filter((key) => !key.startsWith("$"));

/** Where the user's own configuration would be. Without a home there is none; a relative XDG path is none, as XDG says. */
export function userConfigFile(env: Readonly<Record<string, string | undefined>>): string | undefined {
  const xdg = env["XDG_CONFIG_HOME"];
  if (xdg !== undefined && isAbsolute(xdg)) return join(xdg, "holdfast", "config.json");
  const home = env["HOME"];
  return home === undefined || !isAbsolute(home)
    ? undefined
    : join(home, ".config", "holdfast", "config.json");
}

/**
 * The settings of the file; none when there is no file.
 *
 * @throws HoldfastError `config_invalid`, `version_unsupported`.
 */
export function readConfig(path: string): Config {
  checkTrusted(path); // The file says where sessions are stored and where traces go.
  let text: string;
  try {
    text = readBounded(path).replace(/^\uFEFF/, "");
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return {};
    throw invalid(path, `the configuration cannot be read: ${message}`);
  }
  if (text.trim() === "") return {};
  let config: unknown;
  try {
    config = JSON.parse(text);
  } catch {
    throw invalid(path, `the configuration is not JSON: ${jsonSyntaxProblem(text)}`);
  }
  requireFileVersion(config, "settings", path);
  return checkConfig(config, path);
}

/** Checks settings against the schema. @param at names them in errors. @throws HoldfastError `config_invalid`. */
export function checkConfig(config: unknown, at: string): Config {
  if (typeof config !== "object" || config === null || Array.isArray(config)) {
    throw invalid(at, "the configuration is not a JSON object", {
      expected: '{ "db": "path of the database" }',
    });
  }
  for (const [key, value] of Object.entries(config)) checkSetting(at, key, value);
  return config;
}

const FILE_BYTES_MAX = MIB;

/** The text of a file up to the limit; a larger file is no configuration. @throws Error */
export function readBounded(path: string): string {
  const bytes = readGiven(path, FILE_BYTES_MAX);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new Error("it is not UTF-8");
  }
}

function checkSetting(path: string, key: string, value: unknown): void {
  const settings: Readonly<Record<string, { readonly type: unknown }>> = CONFIG_SCHEMA.properties;
  const keys = Object.keys(settings);
  const pointer = path.includes("#") ? path : `${path}#`;
  const at = `${pointer}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`;
  if (!keys.includes(key)) {
    throw invalid(at, `the configuration has no "${key}"${didYouMean(key, keys)}`, {
      expected: keys.join(", "),
    });
  }
  if (settings[key]?.type === "boolean") {
    if (typeof value === "boolean") return;
    throw invalid(at, `"${key}" is not true or false`, {
      got: kindOfValue(value),
      expected: "true or false",
    });
  }
  const takesList = key === "trace";
  const texts: readonly unknown[] = takesList && Array.isArray(value) ? value : [value];
  if (texts.every((text) => typeof text === "string" && text !== "")) return;
  throw invalid(at, `"${key}" is not a text, or an empty one`, {
    got: kindOfValue(value),
    expected: takesList ? 'a text like "file:PATH", or a list of them' : "a text",
  });
}

function invalid(
  at: string,
  message: string,
  details: { got?: string; expected?: string } = {},
): HoldfastError {
  return new HoldfastError("config_invalid", message, {
    at,
    ...details,
    fix: "correct the file, or remove it",
  });
}
