// `externalAgent` makes an agent of an adapter (`ExternalAgentProtocol`): sessions whose work an external
// program does.
//
//   prepare ─► (turn of the program)* ─► answer ─► a conversation waits for the next request, another session ends
//
//   external-agent-1. The intent is in a checkpoint before a process is started, with an id for the program's
//       own session. Later turns use the same intent, also in another folder or after a change of the
//       settings. Another machine gives its own program and rights (`own-intent.ts`).
//   external-agent-2. A turn that was cut off is followed by a turn that resumes the program's session. Its
//       prompt names the calls that were cut off and says to verify before repeating. Nothing is repeated by
//       Holdfast.
//   external-agent-3. If the program does not know its session, the request is sent to a new one only where
//       nothing was done. Otherwise a person is asked (`lost-session.ts`). No session is silently empty.
//   external-agent-4. A cost that is not known is `null` and never zero.
//   external-agent-5. The program's session has one owner: a fork of ours is refused.
//   external-agent-6. A safe point has a restore receipt (`receipt/`). Where a resume would lack something of
//       it, a person decides first.
//   external-agent-7. A limit of the agent's account, or a missing sign-in, pauses the session and is never
//       the end of its work.

import { DAY_MS, defined, type StandardSchemaV1 } from "@holdfast/core";
import { defineAgent, type Agent, type TaskContext, type TurnResult } from "@holdfast/runtime";
import { z } from "zod";

import type { ExternalAgentProtocol, ExternalIntent } from "./external-agent-protocol.ts";
import type { AgentProfile, AgentRecord, ProjectRules } from "@holdfast/agents";
import { FIRST_STATE, type ExternalState } from "./external-state.ts";
import { ExternalAgentTurn, type ExternalParts } from "./external-turn.ts";
import type { ProgramAnswer } from "./intent/next-request.ts";
import { limitTask } from "./limits/limit-task.ts";
import { countTask } from "./limits/recorded-usage.ts";
import { summaryTask } from "./receipt/lost-session.ts";
import { KeptConnections } from "./program/connections.ts";
import { Workspaces } from "./receipt/read-workspace.ts";
import { SessionFiles } from "./receipt/session-files.ts";
import { takeProfile } from "./intent/session-profile.ts";
import { tagOf, turnTask, type LiveTurns } from "./turn-task.ts";
import type { DeleteSession, StartableAgents } from "./way-back/started-sessions.ts";

/** Options of `externalAgent`. */
export interface ExternalAgentOptions {
  /** Where sessions that start here work. */
  readonly folder: string;
  /**
   * Finds the folder of a session, such as that of its parent, or makes the worktree or the empty folder that
   * its input asks for. Without it every session works in `folder`, and none may ask.
   */
  readonly place?: (task: TaskContext, workspace: AgentRecord["workspace"]) => Promise<string>;
  /** The rules that the user keeps for the project. Without them an answer for a project counts for its session. */
  readonly projectRules?: ProjectRules;
  /**
   * The agents that its sessions may start as children, by tools of the session. "any": every agent, by its
   * name, also those of other processes. Without it they start no others.
   */
  readonly agents?: StartableAgents;
  /** Whether a session may start only those of `agents` that its profile names. */
  readonly startsByProfile?: boolean;
  /**
   * Lets a session delete the ended sessions that it has started, by a tool of the session. With
   * `startsByProfile` only those whose profile says so. Without it none does.
   */
  readonly deleteSession?: DeleteSession;
  /** Finds a profile by its name. Without it no session may ask for one. */
  readonly profile?: (name: string) => AgentProfile;
  /** The names of the variables whose values are keys, in the profiles that a session may ask for. */
  readonly profileKeys?: readonly string[];
  /** The folder for copies of the program's own session files. Without it there are no copies. */
  readonly mirrors?: string;
  /** How long a program may write nothing before its session is reported as unresponsive. A minute by default. */
  readonly silenceMs?: number;
  /** The model of sessions that ask for none, also by their profile. Without it the program's own settings choose. */
  readonly model?: string;
  /** The sandbox of sessions that ask for none. */
  readonly sandbox?: string;
  /** The permission modes that a session may ask for; the first is the default. */
  readonly permissionModes: readonly [string, ...string[]];
  /**
   * How long a session waits for its next request, before it ends with its last answer. Milliseconds. With 0
   * it ends with its first answer, and so does a session whose parent waits for its end. Without it the input
   * decides whether a session is a conversation. Such a conversation waits without a limit.
   */
  readonly conversationTtlMs?: number;
  /**
   * Whether the program of a conversation is kept after an answer, for `keepAliveMs` of the session, so that
   * the next request starts no program. Our process stays alive for it, until the adapter is closed. Without it
   * each turn has a process of its own.
   */
  readonly keepsPrograms?: boolean;
  /** The output of a session. Without it the text of its answer. */
  readonly output?: (answer: ProgramAnswer) => unknown;
}

const INPUT_TEXT =
  'The input is a text. With {"text": "…", "workspace": "worktree"} it works in a git worktree of its own, and its result names the branch; with "workspace": "empty" in an empty folder of its own.';
const KEEP_ALIVE_MS_MAX = DAY_MS;
const MODEL = /^[A-Za-z0-9][\w.:/@[\]-]{0,199}$/;

/** Makes an agent of an adapter. Each of its turns is carried out by the adapter's program. */
export function externalAgent<Output = string>(
  protocol: ExternalAgentProtocol,
  options: ExternalAgentOptions,
): Agent<unknown, Output> {
  const { place, agents = [], profileKeys = [] } = options;
  const parts = partsOf(protocol, options);
  return defineAgent<unknown, Output, ExternalState>({
    name: protocol.name,
    description:
      place === undefined ? `Sessions of ${protocol.name}.` : `Sessions of ${protocol.name}. ${INPUT_TEXT}`,
    ...(protocol.readRequest === undefined ? { input: inputOf(protocol, options) } : {}),
    ...(agents === "any" ? {} : { agents }),
    tasks: [parts.task, parts.countTask, summaryTask, limitTask],
    ...defined({ secrets: protocol.secrets }),
    optionalSecrets: [...new Set([...(protocol.keys ?? []), ...profileKeys])].map((name) => ({
      anyOf: [name],
      isAsked: false, // Its program may have a sign-in of its own.
    })),
    state: { version: 1, initial: () => FIRST_STATE },
    limitsTurns: true,
    turn: (ctx, state) =>
      endingProgram(protocol, state, new ExternalAgentTurn(ctx, state, parts).take()) as Promise<
        TurnResult<ExternalState, Output>
      >,
  });
}

/** Ends the program that waits in this process, where the turn is the last one. Nothing of that is recorded. */
async function endingProgram<Turn extends object>(
  protocol: ExternalAgentProtocol,
  { intent }: ExternalState,
  turn: Promise<Turn>,
): Promise<Turn> {
  let isLast = true;
  try {
    const taken = await turn;
    isLast = "done" in taken;
    return taken;
  } finally {
    if (isLast && intent !== null) void protocol.endWaiting?.(tagOf(intent));
  }
}

/** A text, or an object with the text and the choices that the adapter and the machine leave to a session. */
function inputOf(
  protocol: ExternalAgentProtocol,
  { place, profile, permissionModes }: ExternalAgentOptions,
): StandardSchemaV1<unknown, unknown> {
  const text = z.string().trim().min(1);
  const options = {
    conversation: z.boolean().optional(),
    ...(place === undefined
      ? {}
      : { worktree: z.boolean().optional(), workspace: z.enum(["shared", "worktree", "empty"]).optional() }),
    ...(protocol.capabilities().model
      ? { model: z.string().regex(MODEL, "expected the name of a model").optional() }
      : {}),
    permissionMode: z.enum(permissionModes).optional(),
    sandbox: text.optional(),
    ...(profile === undefined ? {} : { profile: text.optional() }),
    resumeAtReset: z.boolean().optional(),
    keepAliveMs: z.int().min(0).max(KEEP_ALIVE_MS_MAX).optional(),
  };
  const unknownKeys = {
    error: ({ code, keys = [] }: { readonly code: string; readonly keys?: readonly string[] }) =>
      code === "unrecognized_keys" && keys.some((key) => key === "workspace" || key === "worktree")
        ? noFolderOfItsOwn(protocol.name)
        : undefined,
  };
  const objects = [
    z.strictObject({ text, ...options }, unknownKeys),
    z.strictObject({ prompt: text, ...options }, unknownKeys),
  ] as const;
  return z.union([text, ...objects], {
    error: `expected a text, or an object with \`text\` and perhaps \`model\` and \`permissionMode\` (${permissionModes.join(", ")})`,
  });
}

function noFolderOfItsOwn(name: string): string {
  return (
    `its sessions work in the folder that the code gives it, and have no worktree; ask for it by its name, as local("${name}"), ` +
    `beside a runner that offers it (\`holdfast up --agents ${name}\`)`
  );
}

function partsOf(protocol: ExternalAgentProtocol, options: ExternalAgentOptions): ExternalParts {
  const { agents = [], startsByProfile = false, deleteSession, mirrors, permissionModes, profile } = options;
  const live: LiveTurns = new Map();
  const conversations = new Set<string>();
  const startable = ({ profile: taken }: ExternalIntent): StartableAgents =>
    startsByProfile && agents !== "any"
      ? agents.filter(({ name }) => taken?.agents?.includes(name) === true)
      : agents;
  const deletesSessions = ({ profile: taken }: ExternalIntent): boolean =>
    deleteSession !== undefined && (!startsByProfile || taken?.deletesSessions === true);
  const task = turnTask({
    protocol,
    live,
    conversations,
    keepsPrograms: options.keepsPrograms ?? false,
    connections: new KeptConnections(protocol),
    startsAgents: (intent) => startable(intent).length > 0,
    deletesSessions,
    mirrors,
    permissionModes,
    silenceMs: options.silenceMs,
    workspaces: new Workspaces(),
    sessionFiles: new SessionFiles(),
  });
  return {
    protocol,
    task,
    countTask: countTask(protocol),
    live,
    conversations,
    folder: options.folder,
    permissionMode: permissionModes[0],
    model: options.model,
    sandbox: options.sandbox,
    projectRules: options.projectRules,
    place: options.place,
    startable,
    deleteSession,
    deletesSessions,
    conversationTtlMs: options.conversationTtlMs,
    output: options.output ?? (({ text }) => text),
    takeProfile:
      profile &&
      ((name) => {
        const names = agents === "any" ? [] : agents.map((agent) => agent.name);
        return takeProfile(profile(name), protocol, permissionModes, mirrors, names);
      }),
  };
}
