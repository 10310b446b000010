// The answers of the API as JSON, as far as the page reads them.
// `packages/proto/proto/holdfast/v1/session.proto` says what they mean.

import type {
  Cost,
  PlainAccount,
  PlainError,
  PlainExhausted,
  PlainQuota,
  PlainWait,
  PlainWorktree,
  Status,
} from "@holdfast/proto/view";

export interface Wait extends PlainWait {
  readonly answer?: "approval" | "any";
  readonly answered?: boolean;
}

export interface Session {
  readonly sessionId: string;
  /** One line about the session for people. */
  readonly title?: string;
  readonly agent: string;
  readonly agentVersion: string;
  readonly status: Status;
  /** Why the session is paused. */
  readonly pauseReason?: string;
  readonly owner?: string;
  readonly demands?: Readonly<Record<string, string>>;
  readonly input?: unknown;
  /** The output of a completed session; of a cancelled one a partial output. */
  readonly output?: unknown;
  /** The error with which the session ended. */
  readonly error?: PlainError;
  /** The waits on which the session is blocked. */
  readonly waits: readonly Wait[];
  readonly account?: PlainAccount;
  /** The cost of its own calls of models. */
  readonly cost?: Cost;
  /** The limit that it is paused for. */
  readonly exhausted?: PlainExhausted;
  /** The usage limit that it is paused for. */
  readonly quota?: PlainQuota;
  /** When it continues without a person, although it is paused. */
  readonly resumesAt?: number;
  readonly parentSessionId?: string;
  /** The session that it was forked from. */
  readonly originSessionId?: string;
  readonly persistence?: "full" | "minimal" | "ephemeral";
  readonly depth: number;
  readonly children: number;
  readonly handedOffTo?: string;
  /** The number of its checkpoints. */
  readonly turn: number;
  readonly nextSeq: number;
  /** The number of entries in its conversation. */
  readonly entryCount: number;
  readonly progress?: unknown;
  readonly blocked?: string;
  readonly runnerId?: string;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly endedAt?: number;
  readonly movedTo?: string;
}

export interface SessionPage {
  readonly sessions: readonly Session[];
  readonly nextCursor?: string;
  /** How many sessions were read for it, with filters that no index serves. */
  readonly searched?: number;
}

/** An agent that the caller can start. */
export interface StartableAgent {
  readonly name: string;
  readonly versions?: readonly string[];
  readonly runners: number;
  readonly description?: string;
  /** The JSON Schema of its input. */
  readonly inputSchema?: unknown;
}

export interface StartableAgents {
  readonly agents?: readonly StartableAgent[];
}

/** A file of agents, skills, MCP servers or hooks, and what becomes of each of its fields. */
export interface ReportedFile {
  readonly path: string;
  readonly name?: string;
  readonly dialect?: string;
  readonly scope?: string;
  readonly status: string;
  readonly description?: string;
  readonly problem?: string | { readonly message: string; readonly fix: string } | null;
  readonly fields: readonly {
    readonly field: string;
    readonly verdict: "honoured" | "mapped" | "ignored" | "refused";
    readonly text: string;
    readonly line: number | null;
  }[];
}

export interface ReportedServer {
  readonly name: string;
  readonly status: string;
  readonly reason?: string;
  readonly isSignedIn: boolean;
}

export interface AgentFiles {
  readonly agents: readonly ReportedFile[];
  readonly skills: readonly ReportedFile[];
  readonly mcpFiles: readonly ReportedFile[];
  readonly hookFiles: readonly ReportedFile[];
  readonly servers: readonly ReportedServer[];
}

/** The worktree of a session with its work. `packages/workspace/src/worktrees/worktrees.ts` says what the fields mean. */
export interface WorktreeWork extends PlainWorktree {
  readonly path: string;
  readonly branch: string;
  readonly base: string;
  readonly rescue: string | null;
  readonly processes: readonly number[] | null;
  readonly commits: readonly {
    readonly id: string;
    readonly subject: string;
    readonly author: string;
    readonly at: number;
    readonly isOnlyHere: boolean;
  }[];
  readonly diff: string;
  readonly isDiffCut: boolean;
  /** Absent from runners of a version that binds no merge to it. */
  readonly revision?: string | null;
  readonly tree?: string | null;
}

/** `none`: it has no worktree of its own. */
export type SessionWork = ({ readonly status: "there" } & WorktreeWork) | { readonly status: "none" };

/** The work of a session in the project. `isNew` is false when the project had everything already. */
export interface MergedWork {
  readonly branch: string;
  readonly into: string;
  readonly isNew: boolean;
}

/** A record of a journal. Its payload is JSON as text. */
export interface JournalRecord {
  readonly seq: number;
  readonly type: string;
  /** The number of a command. */
  readonly id?: number;
  readonly payload?: string;
  /** The signals that it takes. */
  readonly signalId?: string;
  readonly signalIds?: readonly string[];
}

export interface Entry {
  readonly id: number;
  readonly index: number;
  readonly role: string;
  readonly turn: number;
  readonly content?: unknown;
  readonly createdAt: number;
}

/** The bearer of the token, and the place whose sessions are shown. */
export interface About {
  readonly kind: string;
  readonly name: string;
  /** A database's path or a coordinator's storage. */
  readonly place: string;
  /** Whether it is a database of this machine. */
  readonly isLocal: boolean;
  /** Whether the folders of sessions are on the machine of the page's server, and this bearer may see them. */
  readonly hasWorkspaces: boolean;
}

/** Times that come again, and what is done at each of them. */
export interface Schedule {
  readonly scheduleId: string;
  readonly cron: string;
  readonly timeZone: string;
  readonly start?: {
    readonly agent: string;
    readonly agentVersion?: string;
    readonly input?: unknown;
    readonly demands?: Readonly<Record<string, string>>;
    readonly priority?: number;
    readonly budget?: object;
  };
  readonly signal?: { readonly sessionId: string; readonly name: string; readonly payload?: unknown };
  /** Absent while it is paused. */
  readonly nextAt?: number;
  readonly isPaused?: boolean;
  /** The last time at which it fired. */
  readonly lastAt?: number;
  readonly owner?: string;
}

export interface Runner {
  readonly runnerId: string;
  readonly name: string;
  readonly hostname: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly agents: readonly { readonly name: string; readonly version?: string }[];
  readonly taskKinds: readonly string[];
  readonly maxRuns: number;
  readonly status: "online" | "draining" | "silent";
  readonly owner?: string;
  /** The number of sessions that it holds. */
  readonly held: number;
  readonly seenAt: number;
  readonly version?: string;
  /** The agents of the catalogue whose current version it does not offer. */
  readonly refusedAgents?: readonly { readonly name: string; readonly problem: string }[];
}

/** A session that has something to do and that no runner holds. */
export interface QueuedRun {
  readonly sessionId: string;
  readonly agent: string;
  readonly owner?: string;
  readonly demands: Readonly<Record<string, string>>;
  readonly since?: number;
  /** Why no runner has taken it. */
  readonly blocked?: string;
  readonly blockedUntil?: number;
}

/** A change by a person or a process, as it was recorded. */
export interface AuditRow {
  readonly seq: number;
  readonly at: number;
  readonly actor: string;
  readonly action: string;
  readonly object: string;
  readonly outcome: string;
  readonly requestId?: string;
  /** JSON as text: of an answer, its question and the answer. */
  readonly details?: string;
}

export interface AuditPage {
  readonly rows: readonly AuditRow[];
  /** Where the next, older page begins. */
  readonly nextBefore?: number;
}

/** A secret without its value. */
export interface NamedSecret {
  readonly name: string;
  readonly place: "keychain" | "file";
  /** Whether its value is the one that is used. */
  readonly used: boolean;
  /** When a process of this user last took it. */
  readonly usedAt?: number;
}

export function isEnded({ status }: Pick<Session, "status">): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}
