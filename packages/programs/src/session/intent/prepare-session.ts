// The preparation of a session of an external agent (`prepareSession`): its program, its folder, and all that its turns keep (external-agent-1).

import { realpathSync } from "node:fs";
import type { RetryPolicy } from "@holdfast/core";
import type { AgentContext, TaskContext } from "@holdfast/runtime";

import type { AgentRecord, PermissionRule, ProjectRules } from "@holdfast/agents";
import { openEnclosure } from "../enclosure/enclosure.ts";
import type { ExternalAgentProtocol, ExternalIntent } from "../external-agent-protocol.ts";
import { readInput, type TurnInput } from "./turn-input.ts";
import type { TakenProfile } from "./session-profile.ts";

export interface PreparedParts {
  readonly protocol: ExternalAgentProtocol;
  readonly folder: string;
  readonly permissionMode: string;
  /** The model and the sandbox of sessions that ask for none. */
  readonly model: string | undefined;
  readonly sandbox: string | undefined;
  readonly projectRules: ProjectRules | undefined;
  readonly takeProfile: ((name: string) => TakenProfile) | undefined;
  readonly place: ((task: TaskContext, workspace: AgentRecord["workspace"]) => Promise<string>) | undefined;
}

const PREPARE_RETRY: RetryPolicy = {
  nonRetryable: [
    "program_missing",
    "version_unsupported",
    "file_not_found",
    "invalid_input",
    "conflict",
    "config_invalid",
    "policy_denied",
  ],
};

export async function prepareSession(
  ctx: Pick<AgentContext, "input" | "run" | "randomUuid">,
  parts: PreparedParts,
): Promise<{
  readonly intent: ExternalIntent;
  readonly input: TurnInput;
  readonly rules: readonly PermissionRule[];
}> {
  const { protocol, folder, permissionMode, projectRules, place, takeProfile: take } = parts;
  const input = readInput(ctx.input);
  const { sandbox = parts.sandbox } = input;
  const {
    rules,
    taken,
    keys: _shown,
    ...found
  } = await ctx.run(
    "prepare",
    async (task) => {
      const chosen = input.profile === undefined ? undefined : take?.(input.profile);
      const program = await protocol.find(chosen?.intended);
      const { workspace = input.worktree === true ? "worktree" : "shared" } = input;
      const root = realpathSync((await place?.(task, workspace)) ?? folder);
      await openEnclosure(protocol, { ...program, sandbox, folder: root, profile: chosen?.intended });
      const access = protocol.keyAccess?.(chosen?.intended);
      return {
        ...program,
        folder: root,
        ...(access && { keys: { held: access.held, readable: access.readable } }), // For `holdfast show`.
        rules: projectRules?.read() ?? [],
        ...(chosen === undefined ? {} : { taken: chosen }),
      };
    },
    { retry: PREPARE_RETRY },
  );
  const intent: ExternalIntent = {
    ...found,
    ...(sandbox === undefined ? {} : { sandbox }),
    agentSessionId: ctx.randomUuid(),
    model: input.model ?? taken?.model ?? parts.model ?? null,
    permissionMode: input.permissionMode ?? taken?.permissionMode ?? permissionMode,
    ...(taken === undefined ? {} : { profile: taken.intended }),
  };
  return { intent, input, rules: [...(taken?.rules ?? []), ...rules] };
}
