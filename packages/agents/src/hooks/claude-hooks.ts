// Reads the hooks of Claude Code's form: `claudeHooks`.
//
//   - A hook that may forbid something and that cannot be run as it is written refuses its file. Any other
//     such hook is ignored with its reason. An event without a point forbids nothing where Holdfast has no
//     such step at all, or where a person decides in its place (`instead`).
//   - A matcher that cannot be mapped exactly is mapped to more tools, so that the hook sees no fewer calls.
//     A condition (`if`) has the form of a permission rule. Its hook runs for each call that a denial of this
//     form would match or ask for.
//   - Each field of a hook has a verdict, and one that is not known is a problem of its hook.

import { z } from "zod";
import type { AgentHook, HookPoint } from "../record/agent-record.ts";
import type { FieldReport } from "../format/field-report.ts";
import { HOOKS_MAX, program, TIMEOUT_MAX_MS, TIMEOUT_MS } from "./hook-fields.ts";
import { newDraft } from "../format/agent-draft.ts";
import { CLAUDE_TOOLS, TOOLS } from "../record/tool-names.ts";
import { ruleTools } from "../format/tool-rules.ts";

type ClaudeEvent = {
  /** Whether a hook of it may forbid something. */
  readonly is: "guard" | "observer";
  /** The point of Holdfast, and the difference for people. */
  readonly point?: HookPoint;
  readonly note?: string;
  /** The reason why nothing is permitted that a hook of it could forbid, although no point stands for it. */
  readonly instead?: string;
};

const OBSERVER: ClaudeEvent = { is: "observer" };
const GUARD: ClaudeEvent = { is: "guard" };

const EVENTS: Readonly<Record<string, ClaudeEvent>> = {
  PreToolUse: { is: "guard", point: "before_tool" },
  UserPromptSubmit: { is: "guard", point: "on_run_start" },
  PostToolUse: { is: "observer", point: "after_tool" },
  SessionStart: {
    is: "observer",
    point: "on_run_start",
    note: ", and before each request of a conversation",
  },
  Stop: { is: "observer", point: "on_run_finish", note: "; it cannot make the agent continue" },
  PermissionRequest: { is: "observer", instead: "a person is asked, and decides" },
  Elicitation: { is: "observer", instead: "a person is asked, and decides" },
  ElicitationResult: GUARD,
  UserPromptExpansion: GUARD,
  ConfigChange: { is: "observer", instead: "a session keeps the settings of its start" },
  TaskCreated: { is: "observer", instead: "there are no such tasks" },
  TaskCompleted: { is: "observer", instead: "there are no such tasks" },
  Notification: OBSERVER,
  SessionEnd: OBSERVER,
  Setup: OBSERVER,
  PostToolUseFailure: OBSERVER,
  PostToolBatch: OBSERVER,
  PermissionDenied: OBSERVER,
  SubagentStart: OBSERVER,
  SubagentStop: OBSERVER,
  StopFailure: OBSERVER,
  TeammateIdle: OBSERVER,
  PreCompact: OBSERVER,
  PostCompact: OBSERVER,
  InstructionsLoaded: OBSERVER,
  CwdChanged: OBSERVER,
  FileChanged: OBSERVER,
  WorktreeCreate: OBSERVER,
  WorktreeRemove: OBSERVER,
};

/** An event that the table does not have, such as a misspelt one, guards by its name. */
const MAY_FORBID = /^(pre|before|permission|user|elicitation)/i;

function eventOf(name: string): ClaudeEvent {
  const known = Object.hasOwn(EVENTS, name) ? EVENTS[name] : undefined;
  return known ?? { is: MAY_FORBID.test(name) ? "guard" : "observer" };
}

const hookShape = {
  type: z.literal("command"),
  command: program,
  args: z.array(z.string().max(10_000)).max(100).optional(),
  if: z.string().optional(),
  shell: z.string().optional(),
  timeout: z.number().positive().optional(),
  async: z.boolean().optional(),
  asyncRewake: z.boolean().optional(),
  once: z.boolean().optional(),
  statusMessage: z.string().optional(),
  description: z.string().optional(),
};
const claudeHook = z.strictObject(hookShape);
type ClaudeHook = z.output<typeof claudeHook>;
const claudeGroup = z.strictObject({
  matcher: z.string().optional(),
  description: z.string().optional(),
  hooks: z.array(z.unknown()),
});

/** A field that counts, one without an effect, and one that the hook cannot be run with. */
type FieldUse = "honoured" | { readonly ignored: string } | { readonly problem: string };

const FIELDS: Readonly<Record<keyof typeof hookShape, (hook: ClaudeHook) => FieldUse>> = {
  type: () => "honoured",
  command: () => "honoured",
  args: ({ command, args = [] }) =>
    [command, ...args].some((word) => /\$\{(?!CLAUDE_PROJECT_DIR\})\w+/.test(word))
      ? { problem: "only ${CLAUDE_PROJECT_DIR} can be filled in beside `args`" }
      : "honoured",
  if: ({ if: condition = "" }) => {
    const read = conditionOf(condition);
    return typeof read === "string" ? { problem: read } : "honoured";
  },
  shell: ({ shell }) =>
    shell === "bash" ? "honoured" : { problem: `Holdfast runs hooks in the shell, and not in ${shell}` },
  timeout: ({ timeout = 0 }) =>
    timeout * 1_000 <= TIMEOUT_MAX_MS ? "honoured" : { ignored: "10 minutes are the most time of a hook" },
  async: () => "honoured",
  asyncRewake: () => "honoured",
  once: ({ once }) =>
    once === true
      ? { ignored: "the hook runs each time; Claude Code reads the field in skills only" }
      : "honoured",
  statusMessage: () => ({ ignored: "it is for display only" }),
  description: () => ({ ignored: "it is for display only" }),
};

/** The hooks of Claude Code's form, with a verdict for each event and each field that does not count. */
export function claudeHooks(
  given: Readonly<Record<string, unknown>>,
  path: readonly string[],
  report: FieldReport,
): readonly AgentHook[] {
  const found = Object.entries(given).flatMap(([event, groups]) => hooksOfEvent(event, groups, path, report));
  if (found.length <= HOOKS_MAX) return found;
  report.add(path, "refused", `there are ${found.length} hooks, and ${HOOKS_MAX} is the limit`);
  return [];
}

function hooksOfEvent(
  name: string,
  groups: unknown,
  path: readonly string[],
  report: FieldReport,
): readonly AgentHook[] {
  const { is, point, note = "", instead } = eventOf(name);
  const read = readGroups(name, point, groups);
  for (const [field, why] of read.ignored) report.add([...path, name, field], "ignored", why);
  const { problem } = read;
  if (problem !== undefined) {
    const why = `${problem}, and the hook may be there to forbid something`;
    // A hook that may forbid something refuses its file; any other is ignored.
    if (is === "guard") report.add([...path, name], "refused", why);
    else report.add([...path, name], "ignored", instead === undefined ? problem : `${problem}; ${instead}`);
    return [];
  }
  if (read.hooks.length > 0 || read.ignored.size === 0)
    report.add(
      [...path, name],
      point === undefined ? "ignored" : "mapped",
      point === undefined ? NO_EVENT : `holdfast.hooks.${point}${note}: ${shownTools(read.hooks)}`,
    );
  return read.hooks;
}

const NO_EVENT = "Holdfast has no such event";
const ASYNC = "Holdfast waits for each hook, so one that runs beside the session is not run";

interface ReadGroups {
  readonly hooks: readonly AgentHook[];
  /** Fields without an effect, each named once. */
  readonly ignored: ReadonlyMap<string, string>;
  readonly problem?: string;
}

function readGroups(claudeEvent: string, point: HookPoint | undefined, given: unknown): ReadGroups {
  const hooks: AgentHook[] = [];
  const ignored = new Map<string, string>();
  const fail = (problem: string): ReadGroups => ({ hooks: [], ignored, problem });
  const groups = z.array(claudeGroup).safeParse(given);
  if (!groups.success) return fail(`it is no list of { matcher, hooks }${unknownFields(groups.error)}`);
  for (const { matcher = "", hooks: members } of groups.data) {
    const tools = point?.endsWith("_tool") === true ? toolsOf(matcher) : null;
    if (typeof tools === "string") return fail(tools);
    for (const member of members) {
      if (isAsync(member)) {
        ignored.set("async", ASYNC);
        continue;
      }
      if (point === undefined) return fail(NO_EVENT);
      const one = readHook(member, ignored);
      if (typeof one === "string") return fail(one);
      if (one.only !== undefined && !point.endsWith("_tool"))
        return fail("if: the event is no call of a tool");
      hooks.push({ point, tools, ...one, onError: "continue", claudeEvent });
    }
  }
  return { hooks, ignored };
}

/** Claude Code does not wait for such a hook, so it forbids nothing. */
function isAsync(member: unknown): boolean {
  const flags = z.looseObject({ async: z.unknown().optional(), asyncRewake: z.unknown().optional() });
  const { data } = flags.safeParse(member);
  return data?.async === true || data?.asyncRewake === true;
}

/** @returns the problem as a text. */
function readHook(
  member: unknown,
  ignored: Map<string, string>,
): Pick<AgentHook, "run" | "timeoutMs" | "only"> | string {
  const one = claudeHook.safeParse(member);
  if (!one.success) {
    const others = unknownFields(one.error);
    const [field] = one.error.issues.flatMap(({ path }) => path);
    const where =
      field === undefined || field === "type" || field === "command" ? "" : ` (field ${String(field)})`;
    return `Holdfast runs hooks of the type command with a command${others}${where}`;
  }
  for (const [field, use] of Object.entries(FIELDS)) {
    if (one.data[field as keyof ClaudeHook] === undefined) continue;
    const said = use(one.data);
    if (said === "honoured") continue;
    if ("problem" in said) return `${field}: ${said.problem}`;
    ignored.set(field, said.ignored);
  }
  const { command, args, timeout, if: condition } = one.data;
  const only = condition === undefined ? undefined : conditionOf(condition);
  return {
    ...(only === undefined || typeof only === "string" ? {} : { only }),
    run: { type: "command", command: args === undefined ? command : lineOf([command, ...args]) },
    timeoutMs: timeout === undefined ? TIMEOUT_MS : Math.min(timeout * 1_000, TIMEOUT_MAX_MS),
  };
}

const FILE_TOOLS = ["read_file", "list_files", "search", "edit_file", "write_file"];

/** @returns the rules that a call is compared with, or the problem as a text. */
function conditionOf(text: string): NonNullable<AgentHook["only"]> | string {
  const [, name = "", pattern = ""] = /^([\w*-]+)(?:\(([^]+)\))?$/.exec(text.trim()) ?? [];
  const shown = JSON.stringify(text.slice(0, 80));
  const isOfFiles = namesOf(name).some((tool) => FILE_TOOLS.includes(tool));
  if (isOfFiles && /^[/~]/.test(pattern))
    return `the condition ${shown} names a path outside of the project; begin it at the folder of the project`;
  const draft = newDraft("", "");
  // Claude Code takes a name without a folder as one in any folder.
  const texts =
    isOfFiles && pattern !== "" && !pattern.includes("/") ? [text, `${name}(**/${pattern})`] : [text];
  const [verdict, said = ""] = ruleTools(
    texts.map((one) => one.trim()),
    "ask",
    CLAUDE_TOOLS,
    draft,
  );
  // A pattern that is no simple command would count for every call.
  const isWider = namesOf(name).includes("shell") && /[;|&<>`$\n]/.test(pattern);
  if (name === "" || verdict === "refused" || draft.permissions.length === 0 || isWider)
    return `the condition ${shown} is no rule that can be compared, such as "Bash(git push:*)"${said === "" ? "" : `: ${said}`}`;
  return draft.permissions.map(({ tool, pattern: mapped }) => ({ tool, pattern: mapped }));
}

function unknownFields({ issues }: z.ZodError): string {
  const keys = issues.flatMap((issue) => (issue.code === "unrecognized_keys" ? issue.keys : []));
  return keys.length === 0 ? "" : `, and not with the field ${keys.join(", ")}`;
}

/** The line of a shell that starts a program with exactly these words, as Claude Code does beside `args`. */
function lineOf(words: readonly string[]): string {
  return words
    .map((word) =>
      word
        .split("${CLAUDE_PROJECT_DIR}")
        .map((part) => (part === "" ? "" : `'${part.replaceAll("'", "'\\''")}'`))
        .join('"$CLAUDE_PROJECT_DIR"'),
    )
    .map((word) => (word === "" ? "''" : word))
    .join(" ");
}

/** @returns the names of the tools, `null` for all, or the problem as a text. */
function toolsOf(matcher: string): readonly string[] | null | string {
  if (matcher === "" || matcher === "*") return null;
  const plain = matcher.split("|").map((name) => name.trim());
  if (plain.every((name) => /^\w+$/.test(name))) return plain.flatMap(namesOf);
  // A repetition of a repetition may take years to match.
  if (matcher.length > 1_000 || /[*+}][^|]*\)[*+{]/.test(matcher))
    return `the matcher ${JSON.stringify(matcher.slice(0, 80))} may never end`;
  let regex: RegExp;
  try {
    regex = new RegExp(`^(?:${matcher})$`);
  } catch {
    return `the matcher ${JSON.stringify(matcher.slice(0, 80))} is no regular expression`;
  }
  const mapped = Object.keys(CLAUDE_TOOLS).filter((name) => regex.test(name));
  const own = TOOLS.filter((name) => regex.test(name));
  const others = matcher.includes("mcp__") || /[.[\\]/.test(matcher) ? ["mcp__*", "script__*"] : [];
  return [...new Set([...mapped.flatMap(namesOf), ...own, ...others])];
}

function namesOf(name: string): readonly string[] {
  const own = Object.hasOwn(CLAUDE_TOOLS, name) ? CLAUDE_TOOLS[name] : undefined;
  return own ?? [name];
}

function shownTools(hooks: readonly AgentHook[]): string {
  return hooks
    .map(({ tools, run }) => {
      const what = run.type === "command" ? run.command : run.name;
      return `${tools === null ? "" : `${tools.join(", ")}: `}${what.slice(0, 80)}`;
    })
    .join("; ");
}
