// The requests of an external agent for permissions, as durable questions (`PermissionQuestions`).
//
//   permission-questions-1. A rule decides first (`askPermission`). No rule permits a call by default, because the program asks only for what its
//       own rules do not permit.
//   permission-questions-2. An answer reaches the program once. If its process has ended, an approval is kept as a grant for exactly this call,
//       and the next turn tells the program. The grant is used up by the call.
//   permission-questions-3. If it is unknown whether the program received the answer, there is no grant: the program asks again.
//   permission-questions-4. A rule that forbids a call also forbids it as an input that a person gave in place of another.

import { HoldfastError } from "@holdfast/core";
import type { AgentContext } from "@holdfast/runtime";

import type { PermissionRule } from "../agent-files/agent-record.ts";
import { askPermission, type ProjectRules } from "../model-loop/permission/ask-permission.ts";
import { decideWithAnswers } from "../model-loop/permission/permissions.ts";
import type { PermissionEvent } from "./event-entries.ts";
import type {
  ExternalAgentProtocol,
  PermissionAnswer,
  PermissionRequest,
} from "./external-agent-protocol.ts";
import type { LiveTurns } from "./turn-task.ts";

/** A call that a person has allowed, and that was not carried out. */
export interface Grant {
  readonly tool: string;
  /** The input as JSON. */
  readonly input: string;
}

export interface QuestionParts {
  readonly protocol: ExternalAgentProtocol;
  readonly live: LiveTurns;
  readonly projectRules: ProjectRules | undefined;
}

/** An answer that did not reach the program. */
export interface LateAnswer {
  readonly request: PermissionRequest;
  /** Why the call is refused; `undefined` for an approval. */
  readonly refusal: string | undefined;
  /** The input that the person gave in place of that of the call. */
  readonly input?: Input | undefined;
}

type Input = PermissionRequest["input"];

type Delivery = "delivered" | "not_delivered" | "unknown";

export class PermissionQuestions {
  grants: readonly Grant[];
  /** The rules that people gave, with those of the project. */
  rules: readonly PermissionRule[];
  readonly #ctx: AgentContext;
  readonly #parts: QuestionParts;
  readonly #folder: string;
  /** The questions of this turn that the program did not withdraw. */
  readonly #open = new Map<string, Promise<LateAnswer | undefined>>();

  constructor(
    ctx: AgentContext,
    parts: QuestionParts,
    { folder, grants, rules }: { folder: string; grants: readonly Grant[]; rules: readonly PermissionRule[] },
  ) {
    this.#ctx = ctx;
    this.#parts = parts;
    this.#folder = folder;
    this.grants = grants;
    this.rules = rules;
  }

  take(event: PermissionEvent): void {
    if (event.type === "permission_withdrawn") {
      this.#open.delete(event.requestId);
      return;
    }
    const asked = this.#ask(event.request);
    asked.catch(() => {}); // Awaited only after a turn that was cut off.
    this.#open.set(event.request.requestId, asked);
  }

  /** Waits for the answers of all questions of a turn that was cut off. @returns those that did not reach the program. */
  async late(): Promise<readonly LateAnswer[]> {
    const late = (await Promise.all(this.#open.values())).filter((one) => one !== undefined);
    const granted = late.filter(({ refusal }) => refusal === undefined);
    this.grants = [
      ...this.grants,
      ...granted.map(({ request, input = request.input }) => grantOf({ ...request, input })),
    ];
    return late;
  }

  async #ask(request: PermissionRequest): Promise<LateAnswer | undefined> {
    const { refusal, input } = this.#isGranted(request) ? NO_REFUSAL : await this.#judge(request);
    const answer: PermissionAnswer =
      refusal === undefined
        ? { allowed: true, ...(input === undefined ? {} : { input }) }
        : { allowed: false, message: refusal };
    const delivery = await this.#ctx
      .run(
        "answer_permission",
        async ({ sessionId }): Promise<Delivery> => {
          const reached = await this.#parts.live.get(sessionId)?.answer(request.requestId, answer);
          return reached === true ? "delivered" : "not_delivered";
        },
        { retry: { maxAttempts: 1 } },
      )
      .catch((error: unknown): Delivery => {
        if (HoldfastError.is(error)) return "unknown"; // permission-questions-3.
        throw error;
      });
    return delivery === "not_delivered" ? { request, refusal, input } : undefined;
  }

  async #judge(request: PermissionRequest): Promise<Pick<LateAnswer, "refusal" | "input">> {
    let input: Input | undefined;
    const refusal = await this.#whyRefused(request, (given) => void (input = given));
    if (input === undefined || !this.#isForbidden({ ...request, input })) return { refusal, input };
    return {
      refusal: "Not permitted with the input that the person gave. A rule forbids it.",
      input: undefined,
    };
  }

  /** permission-questions-4. */
  #isForbidden(request: PermissionRequest): boolean {
    const { tool, subjectKind, subject } = this.#parts.protocol.ruledCall(request, this.#folder);
    const ruled = { offered: { name: tool }, isReading: false, subjectKind };
    return decideWithAnswers([], this.rules, ruled, subject).decision === "deny";
  }

  async #whyRefused(
    request: PermissionRequest,
    takeInput: (input: Input) => void,
  ): Promise<string | undefined> {
    const { protocol, projectRules } = this.#parts;
    if (request.tool === "AskUserQuestion") return NO_CHOICES;
    const { tool, subjectKind, subject } = protocol.ruledCall(request, this.#folder);
    return askPermission(this.#ctx, {
      agent: { name: protocol.name, permissions: [] },
      tool: { offered: { name: tool }, isReading: false, subjectKind }, // permission-questions-1.
      subject,
      input: request.input,
      folder: this.#folder,
      rules: () => this.rules,
      keep: (rule) => void (this.rules = [...this.rules, rule]),
      projectRules,
      ...(protocol.capabilities().takesEditedInput === true ? { takeInput } : {}),
    });
  }

  /** permission-questions-2. */
  #isGranted(request: PermissionRequest): boolean {
    const { tool, input } = grantOf(request);
    const at = this.grants.findIndex((grant) => grant.tool === tool && grant.input === input);
    if (at < 0) return false;
    this.grants = this.grants.toSpliced(at, 1);
    return true;
  }
}

const NO_REFUSAL = { refusal: undefined, input: undefined } as const;
const NO_CHOICES = "Nobody can choose here. Ask the question in your answer, and end your turn.";

function grantOf({ tool, input }: PermissionRequest): Grant {
  return { tool, input: JSON.stringify(input) };
}
