// The requests of an external agent for permissions, as durable questions (`PermissionQuestions`).
//
//   - A rule decides first (`askPermission`). No rule permits a call by default, because the program asks
//     only for what its own rules do not permit.
//   permission-questions-2. An answer reaches the program once. If its process has ended, an approval is kept
//       as a grant for exactly this call, and the next turn tells the program. The grant is used up by the
//       call.
//   - If it is unknown whether the program received the answer, there is no grant: the program asks again.
//   - A form (`askForm`) is a question too. If its turn was cut off before the program reported the result of
//     its call, the next turn is told the answer. If the program asks the same again there, it gets the same
//     answer, once, and nobody is asked again.
//   - A rule that forbids a call also forbids it as an input that a person gave in place of another.

import { defined, HoldfastError } from "@holdfast/core";
import type { AgentContext } from "@holdfast/runtime";

import {
  askPermission,
  decidePlaces,
  type PermissionRule,
  type ProjectRules,
  subjectsOf,
} from "@holdfast/agents";
import { askForm } from "./ask-form.ts";
import type { PermissionEvent } from "../event-entries.ts";
import type {
  ExternalAgentProtocol,
  PermissionAnswer,
  PermissionRequest,
} from "../external-agent-protocol.ts";
import type { LiveTurns } from "../turn-task.ts";

/** A call that a person has allowed, and that was not carried out; or a form that a person has filled in. */
export interface Grant {
  readonly tool: string;
  /** The input as JSON. */
  readonly input: string;
  readonly filled?: Input;
}

export interface QuestionParts {
  readonly protocol: ExternalAgentProtocol;
  readonly live: LiveTurns;
  readonly projectRules: ProjectRules | undefined;
}

/** An answer that may not have reached the program. */
export interface LateAnswer {
  readonly request: PermissionRequest;
  readonly answer: PermissionAnswer;
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

  /**
   * Waits for the answers of all questions of a turn that was cut off.
   *
   * @param hasResult whether the program has reported the result of this call.
   * @returns the answers that may not have reached the program.
   */
  async late(hasResult: (callId: string) => boolean): Promise<readonly LateAnswer[]> {
    const late = (await Promise.all(this.#open.values())).filter(
      (one) => one !== undefined && !(one.request.form !== undefined && hasResult(one.request.toolCallId)),
    ) as readonly LateAnswer[];
    this.grants = [
      ...this.grants,
      ...late.flatMap(({ request, answer }) => (answer.allowed ? grantOf(request, answer) : [])),
    ];
    return late;
  }

  async #ask(request: PermissionRequest): Promise<LateAnswer | undefined> {
    const answer = this.#takeGrant(request) ?? (await this.#answerTo(request));
    const delivery = await this.#ctx
      .run(
        "answer_permission",
        async ({ sessionId }): Promise<Delivery> => {
          const reached = await this.#parts.live.get(sessionId)?.answer(request.requestId, answer);
          return reached === true ? "delivered" : "not_delivered";
        },
        // An orderly stop would hand over one attempt: the next process would say that it was not delivered.
        { effect: "once" },
      )
      .catch((error: unknown): Delivery => {
        if (HoldfastError.is(error)) return "unknown";
        throw error;
      });
    // Without a report of its delivery an answer grants nothing, but a form is told again.
    return delivery === "not_delivered" || request.form !== undefined ? { request, answer } : undefined;
  }

  async #answerTo(request: PermissionRequest): Promise<PermissionAnswer> {
    const { form } = request;
    if (form !== undefined) return askForm(this.#ctx, this.#parts.protocol.name, { ...request, form });
    let input: Input | undefined;
    const refusal = await this.#whyRefused(request, (given) => void (input = given));
    if (refusal !== undefined) return { allowed: false, message: refusal };
    if (input === undefined) return { allowed: true };
    if (!(await this.#isForbidden({ ...request, input }))) return { allowed: true, input };
    return {
      allowed: false,
      message: "Not permitted with the input that the person gave. A rule forbids it.",
    };
  }

  async #isForbidden(request: PermissionRequest): Promise<boolean> {
    const { tool: name, subjectKind, subject } = this.#parts.protocol.ruledCall(request, this.#folder);
    const tool = { offered: { name }, isReading: false, subjectKind };
    const agent = { name: this.#parts.protocol.name, permissions: [] };
    const call = { agent, tool, subject, folder: this.#folder, rules: () => this.rules };
    const subjects = await subjectsOf(this.#ctx, call);
    return decidePlaces([], this.rules, tool, subjects).decision === "deny";
  }

  async #whyRefused(
    request: PermissionRequest,
    takeInput: (input: Input) => void,
  ): Promise<string | undefined> {
    const { protocol, projectRules } = this.#parts;
    if (request.tool === "AskUserQuestion") return NO_CHOICES; // Its questions cannot be read.
    const { tool, subjectKind, subject } = protocol.ruledCall(request, this.#folder);
    return askPermission(this.#ctx, {
      agent: { name: protocol.name, permissions: [] },
      // Its program asks only for what its own rules do not permit.
      tool: { offered: { name: tool }, isReading: false, subjectKind },
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
  #takeGrant(request: PermissionRequest): PermissionAnswer | undefined {
    const { tool, input } = grantOf(request);
    const at = this.grants.findIndex((grant) => grant.tool === tool && grant.input === input);
    const grant = this.grants[at];
    if (grant === undefined) return undefined;
    this.grants = this.grants.toSpliced(at, 1);
    return { allowed: true, ...defined({ filled: grant.filled }) };
  }
}

const NO_CHOICES = "Nobody can choose here. Ask the question in your answer, and end your turn.";

function grantOf(
  { tool, input }: PermissionRequest,
  given: { readonly input?: Input; readonly filled?: Input } = {},
): Grant {
  const { filled } = given;
  return { tool, input: JSON.stringify(given.input ?? input), ...defined({ filled }) };
}
