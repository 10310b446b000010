// `scriptsCapability`: the scripts of an agent, as tools `script__NAME` and as commands of its shell.
//
//   - A session keeps the versions of its start. Their contents are read from the store by their hashes.
//   - A call is a durable task with the effect class of its script. A call of a `once` script that a crash
//     cut off is not repeated.
//   - Arguments are checked before a person is asked and before anything runs. A wrong call names what is
//     wrong and a right call.
//   - Each call is recorded by two entries with the id of the tool call: `script_started` and
//     `script_finished`.

import { didYouMean, type EffectClass, HoldfastError, type Json } from "@holdfast/core";
import { defineTask, type TaskDefinition } from "@holdfast/runtime";
import type { Workspace } from "@holdfast/workspace";
import { z } from "zod";

import { placesOf, type AgentPlaces } from "../places/agent-places.ts";
import type { AgentRecord } from "../record/agent-record.ts";
import { splitReference } from "../record/content-references.ts";
import type { Capability } from "../model-loop/capability.ts";
import { matchesName } from "../record/tool-names.ts";
import { reportEnd, reportStart } from "../model-loop/script-events.ts";
import { renderResult, type Tool, type ToolContext } from "../model-loop/tools/tool.ts";
import { renderCommand } from "../model-loop/tools/workspace-tools.ts";
import { hashOfVersion, versionsText } from "../contents/content-versions.ts";
import { contentOfVersion, findScripts, type Script } from "./find-scripts.ts";
import { commandPath, hiddenIn } from "./hidden-commands.ts";
import { checkCall, runScript, type ScriptArguments } from "./run-script.ts";
import { writeScript } from "./script-files.ts";
import { readManifest, SCRIPT_TOOL_PREFIX as PREFIX, type ScriptManifest } from "./script-manifest.ts";
import { shellCall } from "./script-wrapper.ts";
import { pickWorkspace, workspaceField, type WorkspaceSource } from "../tasks/workspace-source.ts";
import {
  shellEnvironment,
  type ShellEnvironment,
  type ShellOutput,
  variablesOf,
} from "../tasks/shell-task.ts";

type ScriptFact = {
  readonly hash: string;
  readonly manifest: ScriptManifest;
  /** Another command of the shell has its name. */
  readonly isHidden?: true;
};

/** Each script costs tokens in every request. */
const SESSION_SCRIPTS_MAX = 50;

const callInput = z.strictObject({
  name: z.string().min(1),
  hash: z.string(),
  /** The id of the tool call. */
  call: z.string(),
  args: z.record(z.string(), z.unknown()),
  environment: shellEnvironment.optional(),
  ...workspaceField,
});
export type CallInput = z.output<typeof callInput>;
export type CallOutput = Pick<ShellOutput, "end" | "stdout" | "stderr" | "isCut" | "durationMs">;

/**
 * The scripts that sessions of an agent get now.
 *
 * @param find is called for an agent that names scripts.
 * @throws HoldfastError `agent_invalid` for a script of the agent that cannot be used.
 */
export function scriptsOf(
  agent: AgentRecord,
  places: AgentPlaces,
  find: () => readonly Script[],
): readonly Script[] {
  const { name, deniedTools, source } = agent;
  const wanted = agent.scripts.map(splitReference);
  if (wanted.length === 0) return [];
  if (wanted.length > SESSION_SCRIPTS_MAX)
    throw new HoldfastError(
      "agent_invalid",
      `agent "${name}" has ${wanted.length} scripts, and ${SESSION_SCRIPTS_MAX} is the limit`,
      { at: source.path, fix: "name the scripts that it needs" },
    );
  const denied = wanted
    .map((one) => one.name)
    .find((one) => deniedTools.some((pattern) => matchesName(pattern, `${PREFIX}${one}`)));
  if (denied !== undefined)
    throw new HoldfastError(
      "agent_invalid",
      `agent "${name}" names the script ${denied}, and denies its tool ${PREFIX}${denied}`,
      { at: source.path, fix: "take it out of the denied tools, or out of the scripts" },
    );
  const found = find();
  return wanted.map(({ name: one, version }) => {
    const script = chosenScript(one, found, agent);
    return version === undefined ? script : scriptInVersion(script, version, places);
  });
}

/** @throws HoldfastError `file_not_found` for a version that is not there. */
function scriptInVersion(script: Script, version: string, places: AgentPlaces): Script {
  const hash = hashOfVersion(script, version);
  if (hash !== undefined)
    return { ...script, current: hash, manifest: versionOf(script.name, hash, places).manifest };
  throw new HoldfastError(
    "file_not_found",
    `the script ${script.name} has no version ${version.slice(0, 64)}`,
    {
      at: script.path,
      expected: versionsText(script),
      fix: `name one of these; \`holdfast script history ${script.name}\` shows them`,
    },
  );
}

function chosenScript(name: string, found: readonly Script[], { name: agent, source }: AgentRecord): Script {
  const all = found.filter((script) => script.name === name);
  const pushed = all.find(({ scope, status }) => scope === "coordinator" && status !== "denied");
  const named = pushed === undefined ? all : [pushed];
  const usable = named.find(({ status }) => status === "loaded");
  if (usable !== undefined) return usable;
  const [first] = named;
  if (first === undefined) {
    const names = [...new Set(found.map((script) => script.name))];
    throw new HoldfastError(
      "agent_invalid",
      `agent "${agent}" asks for the script "${name}", which is not there${didYouMean(name, names)}`,
      {
        at: source.path,
        expected:
          names.length === 0
            ? "a folder with script.json in .holdfast/scripts"
            : `one of ${names.join(", ")}`,
        fix: "correct the script's name in the agent's file; `holdfast script list` shows all scripts",
      },
    );
  }
  const [why, fix] = WHY_NOT[first.status];
  throw new HoldfastError("agent_invalid", `agent "${agent}" asks for the script "${name}", ${why}`, {
    at: first.path,
    ...(first.problem === null ? {} : { got: first.problem }),
    fix: fix.replace("NAME", name),
  });
}

const WHY_NOT: Readonly<Record<Script["status"], readonly [why: string, fix: string]>> = {
  loaded: ["which is there", "run it again"],
  hidden: ["which another script of its name hides", "rename one of them"],
  refused: ["which is refused", "run `holdfast script show NAME` to see the reason"],
  unpushed: ["and you have not pushed it", "read the script, and then run `holdfast script push NAME`"],
  untrusted: [
    "which is in a project that you have not trusted",
    "read the script, and then run `holdfast agents trust`",
  ],
  inactive: ["which is inactive at the coordinator", "run `holdfast script activate NAME`"],
  denied: [
    "which the policy of this machine does not take (`allowScripts`)",
    "the owner of the machine may change its policy, and then start the runner again",
  ],
};

/** The agent with the tools of its scripts, also beside a list of other tools. */
export function withScriptTools(agent: AgentRecord): AgentRecord {
  const { tools, scripts } = agent;
  if (tools === null || scripts.length === 0) return agent;
  return {
    ...agent,
    tools: [...new Set([...tools, ...scripts.map((one) => `${PREFIX}${splitReference(one).name}`)])],
  };
}

interface ScriptsCapabilityOptions {
  /** Where scripts are looked for, and whose user has pushed them. */
  readonly places: AgentPlaces;
  /** Opens the workspace of a session, which the scripts run in. */
  readonly workspace: WorkspaceSource;
  /** Names of secrets that scripts may get. The list may grow until a session starts. */
  readonly secrets?: readonly string[];
}

/** The tasks that call scripts, by the effect class of the script. All agents of a process share them. */
export type ScriptCalls = Readonly<Record<EffectClass, TaskDefinition<CallInput, CallOutput>>>;

/** Facts are JSON, and a manifest has a schema of any form. */
// oxlint-disable-next-line typescript/no-explicit-any -- the type of facts is an interface.
type ScriptsCapability = Capability<any>;

export function scriptCalls({ places, workspace, secrets = [] }: ScriptsCapabilityOptions): ScriptCalls {
  const taskOf = (name: string, effect: EffectClass): TaskDefinition<CallInput, CallOutput> =>
    defineTask<CallInput, CallOutput>({
      name,
      description: "Run a script of the agent",
      effect,
      input: callInput,
      retry: {
        nonRetryable: ["file_not_found", "invalid_input", "policy_denied", "limit_exceeded", "usage"],
      },
      guardRepeats: true,
      secrets,
      endLost: async (input, key) => {
        const { workspace: root } = input as CallInput;
        await (await pickWorkspace(workspace, root)).endTagged(key);
      },
      run: async ({ name: script, hash, args, environment, workspace: root }, task) => {
        const { content, manifest } = versionOf(script, hash, places);
        const place = await pickWorkspace(workspace, root);
        // The process of an earlier attempt may be gone while its script still runs.
        if (task.attempt > 1) await place.endTagged(task.idempotencyKey);
        const { end, stdout, stderr, isCut, durationMs } = await runScript(place, manifest, content, args, {
          env: { ...variablesOf(environment, task), IDEMPOTENCY_KEY: task.idempotencyKey },
          tag: task.idempotencyKey,
          signal: task.signal,
          onOutput: (stream, text) => task.progress({ stream, text }),
        });
        if (end.type === "aborted") task.signal.throwIfAborted();
        return { end, stdout, stderr, isCut, durationMs };
      },
    });
  return {
    read: taskOf("script_read", "read"),
    repeatable: taskOf("script_repeat", "repeatable"),
    keyed: taskOf("script_keyed", "keyed"),
    once: taskOf("script", "once"),
  };
}

/** Scripts of agents that run here. */
export function scriptsCapability(
  options: ScriptsCapabilityOptions,
  tasks: ScriptCalls = scriptCalls(options),
): ScriptsCapability {
  const { places, workspace } = options;
  return {
    name: "scripts",
    tasks: Object.values(tasks),
    prepare: async ({ agent, workspace: { root } }) => {
      const facts: ScriptFact[] = [];
      const place = await pickWorkspace(workspace, root);
      for (const { name, current } of scriptsOf(agent, places, () => findScripts(placesOf(agent, places)))) {
        const { content, manifest } = versionOf(name, current ?? "", places);
        await writeScript(place, manifest, content);
        facts.push({ hash: content.hash, manifest });
      }
      return facts.length === 0 ? null : withHidden(facts, place);
    },
    move: async (facts: readonly ScriptFact[], { workspace: { root } }) => {
      const place = await pickWorkspace(workspace, root);
      for (const { hash, manifest } of facts) {
        const { content } = versionOf(manifest.name, hash, places);
        await writeScript(place, manifest, content);
      }
      return withHidden(facts, place);
    },
    offer: (facts: readonly ScriptFact[]) => ({
      instructions: promptPart(facts),
      tools: facts.map((fact) => scriptTool(fact, tasks[fact.manifest.effect])),
    }),
  };
}

async function withHidden(facts: readonly ScriptFact[], place: Workspace): Promise<readonly ScriptFact[]> {
  const names = facts.map(({ manifest }) => manifest.name);
  const hidden = await hiddenIn(place, names);
  return facts.map(({ hash, manifest }) => ({
    hash,
    manifest,
    ...(hidden.has(manifest.name) ? { isHidden: true } : {}),
  }));
}

/** @throws HoldfastError `file_not_found` */
export function versionOf(name: string, hash: string, places: AgentPlaces) {
  const content = /^[0-9a-f]{64}$/.test(hash) ? contentOfVersion(hash, places) : undefined;
  if (content === undefined)
    throw new HoldfastError(
      "file_not_found",
      `the version ${hash.slice(0, 12)} of the script ${name} is not on this machine`,
      {
        fix: "push the same content of the script again, or let the policy of this machine take it, and resume the session",
      },
    );
  return { content, manifest: readManifest(content, name) };
}

function scriptTool({ hash, manifest }: ScriptFact, task: TaskDefinition<CallInput, CallOutput>): Tool {
  const { name, description, parameters, timeoutMs } = manifest;
  return {
    offered: {
      name: `${PREFIX}${name}`,
      description: `${description} (A script. It ends after ${timeoutMs} ms.)`,
      inputSchema: parameters,
    },
    isReading: false, // A script is a program, whatever its manifest says of its effect.
    subjectKind: "text",
    prepare: (given) => {
      const args = checkCall(manifest, given);
      return {
        subject: null,
        schedule: (ctx, workspace, { environment }, call) => {
          const input: CallInput = {
            name,
            hash,
            call,
            args: { ...args },
            workspace,
            ...(environment === undefined ? {} : { environment: environment as ShellEnvironment }),
          };
          return callRecorded(ctx, input, args, () => ctx.scheduleTask(task, input));
        },
      };
    },
  };
}

async function callRecorded(
  ctx: ToolContext,
  { call, name: script, hash: version }: CallInput,
  args: ScriptArguments,
  run: () => Promise<CallOutput>,
) {
  const started = { call, script, version };
  let end: CallOutput["end"] | undefined;
  reportStart(ctx, started, args as Json);
  const outcome = await renderResult(async () => {
    const output = await run();
    ({ end } = output);
    return renderCommand({ command: script, ...output });
  });
  reportEnd(ctx, started, end === undefined ? outcome.text.slice(0, 300) : endOf(end));
  return end?.type === "exit" && end.exitCode === 0 ? outcome : { ...outcome, isError: true };
}

/** An exit code, or a word about an end without one. */
export function endOf(end: CallOutput["end"]): number | string {
  return end.type === "exit" ? end.exitCode : end.type;
}

function promptPart(facts: readonly ScriptFact[]): string {
  const list = facts.map(({ manifest: { name, description, parameters }, isHidden }) => {
    const command = shellCall(isHidden === true ? commandPath(name) : name, parameters);
    const shown = command === undefined ? "It is no command of the shell." : `In the shell: \`${command}\``;
    return `- ${PREFIX}${name}: ${description.replaceAll(/\s+/g, " ")} ${shown}`;
  });
  return (
    "Scripts are programs of the user that you call as tools. They run in your folder, on your files. In the shell each is a command, as shown; " +
    `\`NAME --help\` shows its parameters, and \`NAME --check …\` only checks a call. The scripts:\n${list.join("\n")}`
  );
}
