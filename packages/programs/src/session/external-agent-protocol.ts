// The port for external agents (`ExternalAgentProtocol`): programs such as Claude Code that keep a
// conversation of their own.
//
//   external-agent-protocol-1. The caller records the whole intent, with an id for the session, before
//       `start` or `resume` is called. An agent that chooses the id itself names it in `session_started`, and
//       the caller gives it to `resume`.
//   external-agent-protocol-2. `start`, `sendMessage` and `resume` begin one turn of the agent with one
//       prompt. The turn ends exactly once: `ended` settles, after every event of the turn was given to the
//       subscriber. How it ended is a value.
//   external-agent-protocol-3. When `ended` has settled, no process of the agent is left, except one that its
//       adapter keeps for the next turn of the session (`keepMs`). It is ended when no turn comes, by
//       `endWaiting`, and by `endLost` of another process of ours.
//   external-agent-protocol-4. A session that the agent does not know ends the turn with `unknown_session`.
//       No other session is opened in its place.
//   external-agent-protocol-5. A request for a permission is answered at most once. An answer to any other
//       request changes nothing.
//   external-agent-protocol-6. Messages that the adapter does not know are ignored, because agents change
//       faster than adapters.
//   external-agent-protocol-7. `endLost` ends every process under a tag, also those that left their process
//       group.
//   external-agent-protocol-8. `abort` ends a turn whatever its program does, and the session can be resumed.
//   external-agent-protocol-9. A program that dies after any of its messages ends the turn with `died`. The
//       session can be resumed, or is unknown.
//   external-agent-protocol-10. An agent that can be given tools gets those of its session (`WayBack`), in
//       every turn. Their token is in no argument list and in no event.
//   external-agent-protocol-11. `followUp` is for after the answer. A message that is `queued` is begun in
//       the same process, with the event `follow_up` between the answer before it and its own work. `ended`
//       then has the answer to the last one. An agent without `followUp: "queue"` rejects it.
//   external-agent-protocol-12. The program's own record of a session (`recordedCalls`) has each call of
//       which an event `usage` tells. Both have the same id and the same usage, also after a turn that was
//       cut off. An agent without such a record has no `recordedCalls`.
//
// `externalAgentConformance` has the tests of these clauses.

import type { TokenUsage, JsonSchema } from "@holdfast/core";
import type { TaskContext } from "@holdfast/runtime";
import type { ProcessEnd } from "@holdfast/system";

import type { KeyAccess, ModelGateway } from "./keys/program-keys.ts";
import type { Fields } from "./fields.ts";
import type { WayBack } from "./way-back/way-back.ts";

/** The agent's abilities. */
export interface ExternalAgentCapabilities {
  /**
   * The effect of a message to an agent that works. It joins the running turn, or interrupts it and begins
   * the next one, or waits for its end.
   */
  readonly steer: "inject" | "restart" | "none";
  /** Whether its program begins with a message after its answer, without a new process (external-agent-protocol-11). */
  readonly followUp: "queue" | "none";
  /** Whether a session continues in a new process, by its id. */
  readonly resume: "id" | "none";
  readonly usage: "message" | "turn" | "none";
  /** Whether a session can ask for a model. */
  readonly model: boolean;
  /** Stands before the name of a model in our table of prices. Without it no price is known before a turn. */
  readonly pricePrefix?: string;
  /** Whether an answer may change the input of the call. */
  readonly takesEditedInput?: boolean;
  /** The fields of a profile that the program takes, besides the model, the permission mode and rules. */
  readonly profileFields?: readonly ("settings" | "mcpServers" | keyof ChosenProgram)[];
  /** How a person signs in: what to do, beginning with a verb. */
  readonly signIn?: string;
  /** Whether a resume is checked against a restore receipt. Absent means that it is. */
  readonly receipts?: "none";
}

/** A request to an agent that takes more than a text. */
export interface AgentRequest {
  /** For people, and for the prompt of a turn: the prompt, or the parameters as JSON. */
  readonly text: string;
  /** All fields of the request. Absent for a text alone. */
  readonly parameters?: Fields;
  /** The folder of the session, as an absolute path. Counts in the first request. */
  readonly folder?: string;
  /** More fields, which each turn of the session gets. Counts in the first request. */
  readonly sessionFields?: Fields;
}

/**
 * All that must be the same again when the session is resumed. Recorded before a process is started
 * (external-agent-protocol-1).
 */
export interface ExternalIntent {
  /** The id of the agent's own session. */
  readonly agentSessionId: string;
  /** Absolute, without symbolic links. */
  readonly folder: string;
  /** The absolute path of the agent's program, as `locate` found it on the machine of the turn. */
  readonly program: string;
  /** The version of the program when the session started. */
  readonly version: string;
  /** `null` for the one that the agent's own settings choose. */
  readonly model: string | null;
  readonly permissionMode: string;
  /** The sandbox of its program. Absent without one. */
  readonly sandbox?: string;
  /** The additions of a profile. Absent without one. */
  readonly profile?: IntendedProfile;
  /** As `AgentRequest` has them. */
  readonly sessionFields?: Fields;
}

/** The program that a profile of the user chooses, and what it gets of the user's environment and files. */
export interface ChosenProgram {
  /** An absolute path, or a name on the PATH. Absent for the one that the adapter knows. */
  readonly program?: string;
  /** The names of variables that the program gets besides its own. */
  readonly variables?: readonly string[];
  /** The names of variables whose values are keys. The program gets them, too. */
  readonly keys?: readonly string[];
  /** The places that it needs in a sandbox besides its own. */
  readonly folders?: OwnFolders;
}

/** The profile of a session, as the intent of each of its turns records it. */
export interface IntendedProfile extends ChosenProgram {
  readonly name: string;
  /** Settings of the program as JSON text; `null` for none. */
  readonly settings: string | null;
  /** The file with the MCP servers of the profile, for this user alone; `null` for none. */
  readonly mcpFile: string | null;
  /** The agents that its session may start. Absent for none. */
  readonly agents?: readonly string[];
  /** Whether its session may delete the ended ones that it has started. Absent means no. */
  readonly deletesSessions?: boolean;
}

/**
 * Puts the command line of a program into the sandbox of its session. @param read more that the program
 * reads, as absolute paths.
 */
export type Enclose = (
  argv: readonly [string, ...string[]],
  env: Readonly<Record<string, string>>,
  read?: readonly string[],
) => readonly [string, ...string[]];

/** One turn: the intent, and the prompt that begins it. */
export interface ExternalTurn {
  readonly intent: ExternalIntent;
  /** The id that the agent gave to its session; `null` before it did. */
  readonly boundId: string | null;
  readonly prompt: string;
  /**
   * The prompt is a command of the program (`/name …`), which a person has typed. A program that can tell them
   * apart reads no command in another prompt, because a machine may have written that.
   */
  readonly isCommand?: true;
  /** The fields of the request, for an agent that takes more than a text. Its prompt is the one above. */
  readonly parameters?: Fields;
  /**
   * The task that carries out the turn: its session, the values of its secrets, and the rows of the session
   * and of those below it.
   */
  readonly task: Pick<TaskContext, "sessionId" | "taskId" | "secret" | "readSession">;
  /**
   * Settles when every event so far is stored in the session, for a program that waits for that.
   *
   * @throws HoldfastError when one cannot be stored.
   */
  readonly stored: () => Promise<void>;
  /** Marks every process of the turn, so that a later process of ours finds what a killed one has left. */
  readonly tag: string;
  /** The tools of the session, for agents that can be given tools. Its token is replaced in all that the agent writes. */
  readonly wayBack?: WayBack;
  /** Puts the command line of the program into the sandbox of the session. Absent without one. */
  readonly enclose?: Enclose;
  /**
   * Holds keys of the program in its place, which does not get them. Its token is replaced in all that the
   * program writes.
   */
  readonly gateway?: ModelGateway;
  /**
   * Called with each line of the program, without keys. Must not throw. Agents that are no program of lines
   * do not call it.
   */
  readonly onLine?: (line: string) => void;
  /** The rest of the session's budget in money, for agents with a limit of their own. Absent without such a budget. */
  readonly costMicroUsdMax?: number;
  /**
   * How long the program may be kept for the next turn after an answer. Milliseconds. Absent where it ends
   * with its turn.
   */
  readonly keepMs?: number;
}

/** Whose work an event is. */
export interface Author {
  /** The call of a tool that started the sub-agent of the program. Absent for the work of the agent itself. */
  readonly parentCallId?: string;
}

/** A report of a program while it carries out a turn. */
export type ExternalEvent =
  | { readonly type: "session_started"; readonly model?: string; readonly boundId: string | null }
  /** Provisional text of the agent itself. A `text` event follows with all of it. */
  | { readonly type: "text_delta"; readonly text: string }
  | ({ readonly type: "text"; readonly text: string } & Author)
  | ({ readonly type: "thinking"; readonly text: string } & Author)
  | ({
      readonly type: "tool_call";
      readonly id: string;
      readonly name: string;
      readonly input: Readonly<Record<string, unknown>>;
    } & Author)
  | ({
      readonly type: "tool_result";
      readonly id: string;
      readonly text: string;
      readonly isError: boolean;
    } & Author)
  /** The whole plan or todo list as it is now. It replaces an earlier one of the same author. */
  | ({ readonly type: "plan"; readonly steps: readonly PlanStep[] } & Author)
  /** The usage since the last event of this type. The cost is ours to compute. */
  | {
      readonly type: "usage";
      readonly usage: TokenUsage;
      /** The calls of the model that it covers, as the program's own record names them. Absent without a record. */
      readonly recordIds?: readonly string[];
    }
  /** The agent waits for an answer (`answerPermission`) and has not carried out the call. */
  | { readonly type: "permission_request"; readonly request: PermissionRequest }
  /** The agent no longer waits for the answer. */
  | { readonly type: "permission_withdrawn"; readonly requestId: string }
  /** The agent has answered, and begins with this message (external-agent-protocol-11). */
  | { readonly type: "follow_up"; readonly text: string }
  | { readonly type: "notice"; readonly text: string };

/** One step of a plan. */
export interface PlanStep {
  readonly text: string;
  readonly status: "pending" | "in_progress" | "completed";
}

/** A program's question whether it may do something. */
export interface PermissionRequest {
  /** Names the request within its process. */
  readonly requestId: string;
  readonly toolCallId: string;
  /** The tool, as the agent names it. */
  readonly tool: string;
  readonly input: Readonly<Record<string, unknown>>;
  /** The form that a person fills in. Absent where the agent asks for yes or no. */
  readonly form?: AskedForm;
}

/** A question of the agent that needs more than yes or no. */
export interface AskedForm {
  /** The words of the agent. */
  readonly message: string;
  /** The JSON Schema of an object. A text with `examples` may be another one than these. */
  readonly schema: JsonSchema;
}

/** The answer to a program that asked for a permission. */
export type PermissionAnswer =
  | {
      readonly allowed: true;
      /** The call gets this in place of its own input (`takesEditedInput`). */
      readonly input?: Readonly<Record<string, unknown>>;
      /** The fields of the form. */
      readonly filled?: Readonly<Record<string, unknown>>;
    }
  /** The message is for the agent to read. */
  | { readonly allowed: false; readonly message: string };

/** The files of a session that the program keeps outside of our record, for the restore receipt. */
export interface AgentTraces {
  /**
   * The folder below which the program stores its sessions, and how the name of the file of this one ends.
   * Absent where that is not known.
   */
  readonly sessions?: { readonly folder: string; readonly ending: string };
  /** Files that name MCP servers. A file that is not there has no hash. */
  readonly mcpFiles: readonly string[];
  /** The variables that the program gets for itself: settings with their values, and the names of keys. */
  readonly environment: {
    readonly settings: Readonly<Record<string, string>>;
    readonly keys: readonly string[];
  };
}

/** The calls of the model that a part of the program's own record tells of (external-agent-protocol-12). */
export interface RecordedCalls {
  readonly calls: readonly { readonly recordId: string; readonly usage: TokenUsage }[];
  /** Whether the part has all calls: no request is without its answer, and no sub-agent has a record of its own. */
  readonly isComplete: boolean;
}

/** The places that a program needs inside of a sandbox. Absolute paths. */
export interface OwnFolders {
  /** The folders of its settings, credentials and sessions. It writes to them. */
  readonly written: readonly string[];
  /** Files and folders. */
  readonly read: readonly string[];
}

/** How our rules see a call of an agent's tool. */
export interface RuledCall {
  /** Our name for the tool, if it is one of ours. */
  readonly tool: string;
  readonly subjectKind: "command" | "path" | "text";
  /** The main argument, `null` for a call that has none. */
  readonly subject: string | null;
}

/** How a turn ended. */
export type ExternalEnd =
  | {
      readonly type: "answered";
      readonly text: string;
      /** The answer as a value of JSON. Absent for a text alone. */
      readonly data?: unknown;
    }
  /** The agent reports an error, such as a refused key. */
  | {
      readonly type: "error";
      readonly message: string;
      /** The cause, where the agent says more than the message: its account has reached a limit, or nobody is signed in. */
      readonly cause?: "quota" | "auth_required";
      /** When the limit ends. Epoch milliseconds. */
      readonly resetsAt?: number;
    }
  /** external-agent-protocol-4. */
  | { readonly type: "unknown_session" }
  /** The program ended before its turn did. */
  | {
      readonly type: "died";
      readonly message: string;
      readonly hasStarted: boolean;
      /** How the program ended. Absent without a process of ours. */
      readonly process?: ProcessEnd;
    }
  /** The program does not keep to the protocol, and was ended. */
  | { readonly type: "broken"; readonly message: string }
  | {
      readonly type: "aborted";
      /** The step that ended its program, and how the program ended. Absent without a process of ours. */
      readonly process?: ProcessEnd;
    };

/** The receipt for a message to a running turn. */
export type Delivery = "injected" | "rejected";
/** The receipt for a message after the answer. */
export type Queueing = "queued" | "rejected";

/** An agent at work. Its turn has begun. */
export interface ExternalAgent {
  /** external-agent-protocol-2. */
  readonly ended: Promise<ExternalEnd>;
  /**
   * Settles when nothing of the program runs any more. Once `ended` has settled, it is absent where the program
   * was not kept. `wayBack` and `gateway` of the turn are good until then.
   */
  readonly left?: Promise<unknown> | undefined;
  /** Gives every event to one subscriber, in order, also those that came before the call. The subscriber must not throw. */
  subscribe(subscriber: (event: ExternalEvent) => void): void;
  /** Adds a message to the running turn, where the agent can take it. */
  steer(text: string): Promise<Delivery>;
  /** Leaves a message for after the answer, where the agent can keep it (external-agent-protocol-11). */
  followUp(text: string): Promise<Queueing>;
  /** external-agent-protocol-5. @returns whether the request was open, and its answer was written. */
  answerPermission(requestId: string, answer: PermissionAnswer): Promise<boolean>;
  /**
   * Ends the turn and every process of it: by request, then by signals. The session can be resumed.
   *
   * @param isUrgent the session of Holdfast was cancelled hard: two seconds later nothing of the turn may be
   *   left.
   */
  abort(isUrgent?: boolean): Promise<ExternalEnd>;
}

/** The port for external agents: each adapter begins the turns of one program. */
export interface ExternalAgentProtocol {
  /** The name of the adapter, which is the name of its agent. */
  readonly name: string;
  /** The names of the variables whose values are keys of its program. */
  readonly keys?: readonly string[];
  /** The names of secrets without which no session of it starts. Its program gets their values. */
  readonly secrets?: readonly string[];
  /**
   * Reads a request of an agent that takes more than a text: the input of a session, or a later request.
   * Pure.
   *
   * @returns `undefined` for a value that is no request.
   * @throws HoldfastError `invalid_input` for a wrong field.
   */
  readRequest?(value: unknown): AgentRequest | undefined;
  /** @param chosen of a profile that the adapter takes (`profileFields`), here and below. */
  capabilities(chosen?: ChosenProgram): ExternalAgentCapabilities;
  /** @throws HoldfastError when the program is missing or too old. */
  find(chosen?: ChosenProgram): Promise<{ readonly program: string; readonly version: string }>;
  /**
   * The program on this machine as an absolute path, or the address of a remote agent. Runs and asks nothing.
   *
   * @throws HoldfastError `program_missing`
   */
  locate(chosen?: ChosenProgram): string;
  /** Begins the first turn of a new session. Never rejects. */
  start(turn: ExternalTurn): Promise<ExternalAgent>;
  /** Begins the next turn of a session whose last turn has ended in order. Never rejects. */
  sendMessage(turn: ExternalTurn): Promise<ExternalAgent>;
  /** Continues a session whose last turn was cut off: what the program stored of it may be half of it. Never rejects. */
  resume(turn: ExternalTurn): Promise<ExternalAgent>;
  /** A call of one of its tools in the words of our permission rules. Pure. */
  ruledCall(call: Pick<PermissionRequest, "tool" | "input">, folder: string): RuledCall;
  /** The folders that the program needs besides that of the session. `undefined` where they are not known. */
  ownFolders?(chosen?: ChosenProgram): OwnFolders | undefined;
  /**
   * The keys that the gateway of a turn can hold, and those that the program gets. Absent for an agent that
   * is no program of this machine.
   */
  keyAccess?(chosen?: ChosenProgram): KeyAccess;
  /** `undefined` where the adapter does not know them. Reads no file. */
  traces?(session: Pick<ExternalTurn, "intent" | "boundId">): AgentTraces | undefined;
  /**
   * Reads the usage in the file of a session (`traces`). Pure. Absent for a program without a record of its
   * usage (external-agent-protocol-12).
   *
   * @param lines of the whole file; those that are no JSON objects are empty ones.
   * @param from the index of the first line whose calls are asked for.
   */
  recordedCalls?(lines: readonly Fields[], from: number, chosen?: ChosenProgram): RecordedCalls;
  /** Ends what an earlier process of ours has left running under this tag. */
  endLost(tag: string): Promise<void>;
  /** Ends the program that waits for the next turn under this tag. Absent for an adapter that keeps none. */
  endWaiting?(tag: string): Promise<void>;
  /** Ends the work that a cancelled session has at another place, which outlives our processes. May be called twice. */
  endRemote?(session: Pick<ExternalTurn, "intent" | "boundId">): Promise<void>;
}
