// `RunnerPolicy`: the limits that the owner of a machine sets its runner, whatever a coordinator or a session
// asks for.
//
//   - The policy is read once, when the runner starts, from a file of this machine. No message changes it.
//   - A wrong policy is an error that names the field, and the runner does not start. No field is ignored.
//   - A demand that the policy forbids is `policy_denied`, before any process starts, and is not repeated.
//   - A folder is compared by its real path, so that no link leads out of a root.
//   - A name allows no program that agents can write (`executor-files.ts`).

import { didYouMean, HoldfastError } from "@holdfast/core";
import { realpathSync } from "node:fs";
import { isAbsolute, sep } from "node:path";
import { isHostPattern, type NetworkPolicy } from "@holdfast/runtime/gateway";

export interface RunnerPolicy {
  /** Names of the executors that may run, from outside of the folders of sessions; all when absent. */
  readonly executors?: readonly string[];
  /** Folders in which sessions may work, with everything below them; any folder when absent. */
  readonly roots?: readonly string[];
  /** Hosts that executors reach through their gateway; none when absent. */
  readonly network?: NetworkPolicy;
  /** The most sessions held at once. */
  readonly concurrency?: number;
  /** Agent files of the coordinator that the runner may offer, and what they may have; none when absent. */
  readonly agentFiles?: {
    readonly allow: readonly string[];
    readonly tools?: readonly string[];
    readonly environments?: readonly string[];
    readonly variables?: readonly string[];
    readonly coordinatorEnvironments?: boolean;
    readonly hooks?: boolean;
    readonly subAgents?: readonly string[];
  };
  /** Whether a coordinator may merge the work of sessions into the project; no when absent. */
  readonly mergeWork?: boolean;
  /** Which scripts of a coordinator may run: `none` when absent. */
  readonly allowScripts?: "none" | "approved_hash" | "all";
  /** The versions of scripts that may run with `approved_hash`. */
  readonly approvedScripts?: readonly string[];
}

const texts = (description: string, pattern: string) => ({
  type: "array",
  items: { type: "string", minLength: 1, pattern },
  description,
});
const HOST = "^(\\[[0-9a-fA-F:.]+\\]|(\\*\\.)?[^\\s/:*@]+)(:\\d{1,5})?$";
const AGENT = "^(\\*|[A-Za-z0-9_-]{1,60})$";
const SUB_AGENT = "^(\\*|[A-Za-z0-9][A-Za-z0-9_.-]{0,120})$";
const HASH = "^[0-9a-f]{64}$";
const ENVIRONMENT = "^[a-z0-9][a-z0-9_-]{0,62}$";
const VARIABLE = "^[A-Za-z_][A-Za-z0-9_]{0,99}$";
const TOOL = "^[A-Za-z0-9_.-]{0,199}(\\*|[A-Za-z0-9_.-])$";

/** `docs/runner-policy.schema.json` is its copy. */
export const RUNNER_POLICY_SCHEMA = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  title: "Policy of a runner",
  description:
    "What a runner of this machine may do, whatever its coordinator asks for. Read by `holdfast runner` from --policy FILE, or from " +
    "holdfast/runner-policy.json in the user's configuration folder ($XDG_CONFIG_HOME, or ~/.config).",
  type: "object",
  properties: {
    $schema: { type: "string", minLength: 1, description: "Location of this schema, for editors." },
    executors: texts(
      "Names of the executors that may run; all when absent. With names, executors and profiles are looked for beside the policy, " +
        "and none runs from a folder in which sessions work.",
      "^[A-Za-z0-9][\\w.-]{0,99}$",
    ),
    roots: texts(
      "Absolute folders in which sessions may work, with everything below them; any when absent.",
      "^/|^[A-Za-z]:",
    ),
    network: {
      type: "object",
      description: "Hosts that executors reach through the gateway of their run; none when absent.",
      properties: {
        allow: texts(
          "Hosts: example.org, *.example.org, git.example.org:8443. The port is 443 when absent.",
          HOST,
        ),
        allowPrivate: texts("Hosts of `allow` whose addresses may be private.", HOST),
      },
      required: ["allow"],
      additionalProperties: false,
    },
    agentFiles: {
      type: "object",
      description: "Agent files of the coordinator that this runner may offer; none when absent.",
      properties: {
        allow: texts("Names of agents; * for all.", AGENT),
        tools: texts(
          "Tools that such agents may have, as Holdfast names them; * at the end stands for any text. When absent, tools that only read " +
            "the workspace. Secrets of their own and settings of MCP servers are never theirs.",
          TOOL,
        ),
        environments: texts(
          "Names of environments of this machine's user that such agents may use; none when absent, also not `base`.",
          ENVIRONMENT,
        ),
        variables: texts(
          "Names of variables that commands and scripts of such agents may get, from these environments or from the start of a " +
            "session; none when absent.",
          VARIABLE,
        ),
        coordinatorEnvironments: {
          type: "boolean",
          description:
            "Whether such agents get environments and secrets from the coordinator. They get the variables of `variables` from them; " +
            "false when absent.",
        },
        hooks: {
          type: "boolean",
          description:
            "Whether such agents may have hooks: scripts whose tools are in `tools`, and agents that are in `subAgents`; no when absent. " +
            "A hook is never a command line.",
        },
        subAgents: texts(
          "Names of agents that such agents may start or have as hooks, each offered by this runner with rights of its own, and " +
            "LEAD.NAME for those that their files define; * for all, none when absent.",
          SUB_AGENT,
        ),
      },
      required: ["allow"],
      additionalProperties: false,
    },
    concurrency: {
      type: "integer",
      minimum: 1,
      maximum: 10_000,
      description: "The most sessions held at once.",
    },
    mergeWork: {
      type: "boolean",
      description:
        "Whether admins of the coordinator may merge the work of a session into the project of this runner; no when absent. They may " +
        "read that work.",
    },
    allowScripts: {
      enum: ["none", "approved_hash", "all"],
      description:
        "Which scripts of a coordinator may run; none when absent. approved_hash: those whose versions are in approvedScripts.",
    },
    approvedScripts: texts(
      "Versions of scripts that may run with approved_hash: whole hashes, as `holdfast script history NAME --catalogue --json` shows them.",
      HASH,
    ),
  },
  additionalProperties: false,
} as const;

type Check = (value: unknown) => string | undefined;

function isBoolean(value: unknown): string | undefined {
  return typeof value === "boolean" ? undefined : "true or false";
}

/** The check of each field, which answers the expectation that a value does not meet. */
const FIELDS: Readonly<Record<string, Check>> = {
  $schema: (value) => (typeof value === "string" ? undefined : "a text"),
  executors: listOf("names of executors", (name) => /^[A-Za-z0-9][\w.-]{0,99}$/.test(name)),
  roots: listOf("absolute paths of folders", isAbsolute),
  "network/allow": listOf("hosts, such as example.org or *.example.org:8443", isHostPattern),
  "network/allowPrivate": listOf("hosts, such as git.example.org", isHostPattern),
  "agentFiles/allow": listOf("names of agents, or *", (name) => new RegExp(AGENT).test(name)),
  "agentFiles/tools": listOf("names of tools, such as shell or mcp__docs__*", (name) =>
    new RegExp(TOOL).test(name),
  ),
  "agentFiles/environments": listOf("names of environments, such as staging", (name) =>
    new RegExp(ENVIRONMENT).test(name),
  ),
  "agentFiles/variables": listOf("names of variables, such as REGION", (name) =>
    new RegExp(VARIABLE).test(name),
  ),
  "agentFiles/coordinatorEnvironments": isBoolean,
  "agentFiles/hooks": isBoolean,
  "agentFiles/subAgents": listOf("names of agents, or *", (name) => new RegExp(SUB_AGENT).test(name)),
  concurrency: (value) =>
    Number.isSafeInteger(value) && (value as number) >= 1 && (value as number) <= 10_000
      ? undefined
      : "an integer from 1 to 10000",
  mergeWork: isBoolean,
  allowScripts: (value) =>
    ["none", "approved_hash", "all"].includes(value as string) ? undefined : "none, approved_hash or all",
  approvedScripts: listOf("whole hashes of scripts", (hash) => new RegExp(HASH).test(hash)),
};

/** @param at names the source in errors. @throws HoldfastError `config_invalid`. */
export function checkRunnerPolicy(value: unknown, at: string): RunnerPolicy {
  const { network, agentFiles, ...top } = objectAt(value, at, "");
  checkFields(top, at, "");
  for (const [name, part] of Object.entries({ network, agentFiles })) {
    if (part === undefined) continue;
    const fields = objectAt(part, at, `/${name}`);
    checkFields(fields, at, `/${name}`);
    if (fields["allow"] === undefined) throw invalid(`${at}#/${name}`, '"allow" is missing', "allow");
  }
  const { $schema: _, ...policy } = value as RunnerPolicy & { readonly $schema?: string };
  return policy;
}

/** Whether a script of a coordinator may run, by the hash of its content. */
export function takesScript(
  { allowScripts = "none", approvedScripts = [] }: Pick<RunnerPolicy, "allowScripts" | "approvedScripts">,
  hash: string,
): boolean {
  return allowScripts === "all" || (allowScripts === "approved_hash" && approvedScripts.includes(hash));
}

/** @throws HoldfastError `policy_denied`. */
export function requireExecutor({ executors }: RunnerPolicy, name: string): void {
  if (executors === undefined || executors.includes(name)) return;
  throw denied(`the policy of this runner does not allow the executor ${name}`, {
    got: name,
    expected: executors.length === 0 ? "no executor" : `one of ${executors.join(", ")}`,
  });
}

/** @param folder an absolute path. @throws HoldfastError `policy_denied`. */
export function requireFolder({ roots }: RunnerPolicy, folder: string): void {
  if (roots === undefined) return;
  const real = realPath(folder);
  if (real !== undefined && roots.some((root) => isWithin(real, realPath(root)))) return;
  throw denied("the policy of this runner does not allow this folder", {
    got: folder,
    expected: roots.length === 0 ? "no folder" : `a folder in ${roots.join(" or ")}`,
  });
}

/** Whether a real path is that of a folder or lies below it. */
export function isWithin(folder: string, root: string | undefined): boolean {
  if (root === undefined) return false;
  return folder === root || folder.startsWith(root.endsWith(sep) ? root : `${root}${sep}`);
}

/** `undefined` for a folder that is not there. */
export function realPath(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}

export function denied(
  message: string,
  details: { readonly got: string; readonly expected: string },
): HoldfastError {
  return new HoldfastError("policy_denied", message, {
    ...details,
    fix: "the owner of this machine may change its policy, and then start the runner again",
  });
}

function listOf(expected: string, fits: (text: string) => boolean): Check {
  return (value) =>
    Array.isArray(value) && value.every((item) => typeof item === "string" && fits(item))
      ? undefined
      : `a list of ${expected}`;
}

function checkFields(fields: Readonly<Record<string, unknown>>, at: string, pointer: string): void {
  const prefix = pointer === "" ? "" : `${pointer.slice(1)}/`;
  const names = Object.keys(FIELDS).flatMap((key) =>
    key.startsWith(prefix) ? [key.slice(prefix.length).replace(/\/.*/, "")] : [],
  );
  for (const [name, value] of Object.entries(fields)) {
    const place = `${at}#${pointer}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
    const check = Object.hasOwn(FIELDS, `${prefix}${name}`) ? FIELDS[`${prefix}${name}`] : undefined;
    if (check === undefined)
      throw invalid(
        place,
        `the policy has no "${name}"${didYouMean(name, names)}`,
        [...new Set(names)].join(", "),
      );
    const expected = check(value);
    if (expected !== undefined) throw invalid(place, `"${name}" has a wrong value`, expected);
  }
}

function objectAt(value: unknown, at: string, pointer: string): Record<string, unknown> {
  if (typeof value === "object" && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  throw invalid(`${at}#${pointer}`, "the policy is not a JSON object", "{ … }");
}

function invalid(at: string, message: string, expected: string): HoldfastError {
  return new HoldfastError("config_invalid", message, {
    at,
    expected,
    fix: "correct the file; the runner does not start with a policy that it cannot read",
  });
}
