// The parts of the AI SDK's specification `harness-v1` that we use (`Harness`), as observed in
// `@ai-sdk/harness` 1.0.122. A harness is an object of the user's own packages, so no package of the AI SDK
// is needed to call it.

export interface HarnessTool {
  readonly name: string;
  readonly description?: string;
  readonly inputSchema?: unknown;
}

/** The state of a session between its turns, for a later process. */
export type HarnessState = Readonly<Record<string, unknown>>;

/** An event of a turn. Types that we do not know are ignored. */
export interface HarnessPart {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** A turn that has begun. */
export interface HarnessTurn {
  submitToolResult(input: {
    readonly toolCallId: string;
    readonly output: unknown;
    readonly isError?: boolean;
  }): PromiseLike<void>;
  submitToolApproval?(input: {
    readonly approvalId: string;
    readonly approved: boolean;
    readonly reason?: string;
  }): PromiseLike<void>;
  submitUserMessage?(text: string): PromiseLike<void>;
  readonly done: PromiseLike<void>;
}

export interface HarnessSession {
  readonly sessionId: string;
  doPromptTurn(options: {
    readonly prompt: string;
    readonly model?: string;
    readonly skills: readonly [];
    readonly tools: readonly HarnessTool[];
    readonly abortSignal: AbortSignal;
    readonly emit: (part: HarnessPart) => void;
  }): PromiseLike<HarnessTurn>;
  /** Stores the conversation. The session object is of no use after that. */
  doStop(): PromiseLike<HarnessState>;
  doDestroy(): PromiseLike<void>;
}

export interface Harness {
  readonly specificationVersion: "harness-v1";
  readonly harnessId: string;
  readonly supportsBuiltinToolApprovals?: boolean;
  /** The bridge that some harnesses install in their sandbox. */
  readonly getBootstrap?: unknown;
  doStart(options: {
    readonly sessionId: string;
    readonly resumeFrom?: HarnessState;
    readonly permissionMode: "allow-reads" | "allow-edits";
    readonly sandboxSession: unknown;
    readonly sessionWorkDir: string;
    readonly abortSignal: AbortSignal;
  }): PromiseLike<HarnessSession>;
}

export function isHarness(value: unknown): value is Harness {
  if (typeof value !== "object" || value === null) return false;
  const { specificationVersion, doStart } = value as Partial<Harness>;
  return specificationVersion === "harness-v1" && typeof doStart === "function";
}
