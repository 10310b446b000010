// The schema of a coordinator's configuration (`COORDINATOR_SCHEMA`), and reading it.
//
//   - The schema is the only list of settings: the file is checked against it, and
//     `docs/coordinator.schema.json` is its copy.
//   - A wrong setting is an error that names the file and the pointer, before anything is opened. No setting
//     is ignored.
//   - An empty file says nothing, and so do a byte-order mark and the line ends of other systems. A file that
//     is no configuration by its size is not read.

import { resolve } from "node:path";
import {
  DAY_MS,
  defined,
  didYouMean,
  HoldfastError,
  jsonSyntaxProblem,
  MIB,
  parseDuration,
  toHoldfastError,
} from "@holdfast/core";
import { requireFileVersion } from "@holdfast/system";
import { readBounded } from "./config.ts";
import { checkTrusted, kindOfValue } from "@holdfast/terminal/frame/given-file";
import { API_LIMITS, type CoordinatorConfig } from "@holdfast/coordinator";

interface Setting {
  readonly type: "string" | "integer" | "boolean" | "array" | "object";
  readonly description: string;
  readonly minLength?: number;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly items?: { readonly type: "string"; readonly pattern: string };
  readonly properties?: Readonly<Record<string, Setting>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: false;
}

const text = (description: string): Setting => ({ type: "string", minLength: 1, description });
const integer = (minimum: number, maximum: number, description: string): Setting => ({
  type: "integer",
  minimum,
  maximum,
  description,
});
const texts = (pattern: string, description: string): Setting => ({
  type: "array",
  items: { type: "string", pattern },
  description,
});

const timeSpan = (description: string): Setting => ({
  type: "string",
  pattern: "^(\\d+(ms|s|m|h|d))+$",
  description,
});

const LIMIT_MAX = 1024 * MIB;

const SETTINGS: Readonly<Record<string, Setting>> = {
  $schema: text("Location of this schema, for editors."),
  host: text("Address to listen on: 127.0.0.1 when absent, which is this machine alone."),
  port: integer(0, 65_535, "Port to listen on: 8765 when absent; 0 for any that is free."),
  storage: text("Storage of the sessions: sqlite:PATH, postgres://USER@HOST/DATABASE or memory:"),
  insecure: {
    type: "boolean",
    description:
      "Listen without TLS on addresses other than this machine's own, because a proxy in front provides it.",
  },
  tls: {
    type: "object",
    description: "Listen with TLS.",
    properties: {
      cert: text("Path of the certificate chain, PEM. A relative one begins at the file's folder."),
      key: text("Path of its private key, PEM."),
    },
    required: ["cert", "key"],
    additionalProperties: false,
  },
  environmentKeys: texts(
    ".",
    "Paths of the files with the keys of environments. The first one encrypts, and all decrypt. A relative one begins at the file's folder.",
  ),
  hosts: texts(
    "^([^\\s/:]+|\\[[0-9a-fA-F:.]+\\])(:\\d{1,5})?$",
    "Hosts that clients may call it by, other than its own address; with their port, unless that is the scheme's default.",
  ),
  origins: texts("^https?://[^\\s/*]+$", "Origins other than its own whose pages may call it."),
  // A runner releases its sessions three seconds before the end, and its information may be two seconds old.
  leaseMs: integer(6_000, DAY_MS, "How long a runner's claim lasts without renewal."),
  renewMs: integer(100, DAY_MS, "How often runners are told to renew; at most a third of leaseMs."),
  poisonLosses: integer(
    1,
    1_000,
    "How many times in a row a session may be lost with a runner that holds nothing else, before it is paused as poison: 5 when absent.",
  ),
  retention: {
    type: "object",
    description: "How long things are kept. Without it nothing is removed.",
    properties: {
      sessions: timeSpan(
        "Completed, failed and cancelled sessions, from their end on, such as 30d. One stays as long as a session below it, and while its parent or a session that continues it has not ended.",
      ),
      audit: timeSpan("Rows of the audit, such as 365d."),
    },
    additionalProperties: false,
  },
  mcp: {
    type: "object",
    description: "The tools at /mcp, by which agents start sessions.",
    properties: {
      deleteSessions: {
        type: "boolean",
        description: "Let callers delete the ended sessions that they have started by these tools.",
      },
      agentTools: { type: "boolean", description: "Offer each agent as a tool of its own, too." },
    },
    additionalProperties: false,
  },
  limits: {
    type: "object",
    description: "Limits of the API.",
    properties: Object.fromEntries(
      Object.entries(API_LIMITS).map(([name, value]) => [
        name,
        integer(1, LIMIT_MAX, `${value} when absent.`),
      ]),
    ),
    additionalProperties: false,
  },
};

export const COORDINATOR_SCHEMA = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  title: "Configuration of a coordinator",
  description:
    "Read by `holdfast coordinator --config FILE`. An option on the command line overrides a setting.",
  type: "object",
  properties: SETTINGS,
  additionalProperties: false,
} as const;

/** The settings of a file, its paths made absolute. */
export interface CoordinatorFile extends CoordinatorConfig {
  readonly host?: string;
  readonly port?: number;
  readonly storage?: string;
  readonly insecure?: boolean;
  readonly environmentKeys?: readonly string[];
  readonly tls?: { readonly cert: string; readonly key: string };
}

/** @throws HoldfastError `config_invalid`, `version_unsupported`. */
export function readCoordinatorFile(path: string): CoordinatorFile {
  const content = readText(path).replace(/^\uFEFF/, "");
  if (content.trim() === "") return {};
  let value: unknown;
  try {
    value = JSON.parse(content);
  } catch {
    throw invalid(path, `the configuration is not JSON: ${jsonSyntaxProblem(content)}`);
  }
  requireFileVersion(value, "settings of a coordinator", path);
  check(path, "", { ...COORDINATOR_SCHEMA, description: "" }, value);
  const { $schema: _, tls, environmentKeys, retention, ...file } = value as WrittenFile;
  const at = (named: string): string => resolve(path, "..", named);
  return {
    ...file,
    ...(tls === undefined ? {} : { tls: { cert: at(tls.cert), key: at(tls.key) } }),
    ...(environmentKeys === undefined ? {} : { environmentKeys: environmentKeys.map(at) }),
    ...(retention === undefined ? {} : { retention: readRetention(path, retention) }),
  };
}

/** A file as it is written, with its time spans as texts. */
interface WrittenFile extends Omit<CoordinatorFile, "retention"> {
  readonly $schema?: string;
  readonly retention?: { readonly sessions?: string; readonly audit?: string };
}

function readRetention(
  path: string,
  { sessions, audit }: NonNullable<WrittenFile["retention"]>,
): NonNullable<CoordinatorConfig["retention"]> {
  const read = (given: string | undefined, name: string): number | undefined => {
    if (given === undefined) return undefined;
    const at = `${path}#/retention/${name}`;
    try {
      return parseDuration(given, at);
    } catch (error) {
      const { message, expected } = toHoldfastError(error);
      throw invalid(at, message, defined({ expected }));
    }
  };
  return defined({ sessionsMs: read(sessions, "sessions"), auditMs: read(audit, "audit") });
}

/** A file that must be there: a certificate or its key. @throws HoldfastError `config_invalid`. */
export function readPem(path: string, what: string): string {
  const content = readText(path);
  if (content.includes("-----BEGIN ")) return content;
  throw invalid(path, `${what} is not in PEM`, { expected: "a file with -----BEGIN … -----" });
}

function readText(path: string): string {
  checkTrusted(path);
  try {
    return readBounded(path);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const why =
      code === "ENOENT" || code === "ENOTDIR"
        ? `there is no file ${path}`
        : `the file cannot be read: ${message}`;
    throw invalid(path, why, { fix: "correct the path, or leave the setting out" });
  }
}

function check(path: string, pointer: string, setting: Setting, value: unknown): void {
  const at = `${path}#${pointer}`;
  const wrong = (expected: string): HoldfastError =>
    invalid(at, `"${pointer.slice(1) || "the configuration"}" cannot be ${kindOfValue(value)}`, {
      got: kindOfValue(value),
      expected,
    });
  switch (setting.type) {
    case "string":
      if (typeof value !== "string" || value === "") throw wrong("a text that is not empty");
      if (setting.pattern !== undefined && !new RegExp(setting.pattern, "u").test(value))
        throw wrong("a time span, such as 30d or 12h");
      return;
    case "boolean":
      if (typeof value !== "boolean") throw wrong("true or false");
      return;
    case "integer": {
      const { minimum = 0, maximum = Infinity } = setting;
      if (!Number.isSafeInteger(value) || (value as number) < minimum || (value as number) > maximum)
        throw wrong(`an integer from ${minimum} to ${maximum}`);
      return;
    }
    case "array": {
      const { pattern = "" } = setting.items ?? {};
      if (!Array.isArray(value)) throw wrong("a list of texts");
      const bad = value.findIndex((item) => typeof item !== "string" || !new RegExp(pattern, "u").test(item));
      if (bad >= 0)
        throw invalid(`${at}/${bad}`, `"${pointer.slice(1)}" has an invalid item`, {
          got: kindOfValue(value[bad]),
          expected: `texts that match ${pattern}`,
        });
      return;
    }
    case "object":
      checkObject(path, pointer, setting, value);
  }
}

function checkObject(
  path: string,
  pointer: string,
  { properties = {}, required = [] }: Setting,
  value: unknown,
): void {
  const at = `${path}#${pointer}`;
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw invalid(at, `"${pointer.slice(1) || "the configuration"}" is not a JSON object`, {
      expected: "{ … }",
    });
  const keys = Object.keys(properties);
  for (const [key, member] of Object.entries(value)) {
    const setting = Object.hasOwn(properties, key) ? properties[key] : undefined;
    const below = `${pointer}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`;
    if (setting === undefined)
      throw invalid(`${path}#${below}`, `the configuration has no "${key}"${didYouMean(key, keys)}`, {
        expected: keys.join(", "),
      });
    check(path, below, setting, member);
  }
  const missing = required.find((key) => !Object.hasOwn(value, key));
  if (missing !== undefined)
    throw invalid(at, `"${missing}" is missing`, { expected: required.join(" and ") });
}

function invalid(
  at: string,
  message: string,
  details: { readonly got?: string; readonly expected?: string; readonly fix?: string } = {},
): HoldfastError {
  return new HoldfastError("config_invalid", message, { at, fix: "correct the file", ...details });
}
