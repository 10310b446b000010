// The preparation of a session of an external agent (`prepareSession`): its program, its folder, and all that
// its turns keep (external-agent-1).

import { realpathSync, statSync } from "node:fs";
import { isAbsolute } from "node:path";
import { defined, HoldfastError, type RetryPolicy } from "@holdfast/core";
import type { AgentContext, TaskContext } from "@holdfast/runtime";

import type { AgentRecord, PermissionRule, ProjectRules } from "@holdfast/agents";
import { openEnclosure } from "../enclosure/enclosure.ts";
import type { AgentRequest, ExternalAgentProtocol, ExternalIntent } from "../external-agent-protocol.ts";
import type { Fields } from "../fields.ts";
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
  readonly parameters?: Fields;
  readonly rules: readonly PermissionRule[];
}> {
  const { protocol, folder, permissionMode, projectRules, place, takeProfile: take } = parts;
  const asked = readFirstRequest(protocol, ctx.input);
  const input = asked === undefined ? readInput(ctx.input) : { text: asked.text };
  const { sandbox = parts.sandbox } = input;
  const {
    rules,
    taken,
    keys: _shown,
    ...found
  } = await ctx.run(
    "prepare",
    async (task) => {
      const own = asked?.folder === undefined ? undefined : requireFolder(asked.folder);
      const chosen = input.profile === undefined ? undefined : take?.(input.profile);
      const program = await protocol.find(chosen?.intended);
      const { workspace = input.worktree === true ? "worktree" : "shared" } = input;
      const root = own ?? realpathSync((await place?.(task, workspace)) ?? folder);
      await openEnclosure(protocol, { ...program, sandbox, folder: root, profile: chosen?.intended });
      const access = protocol.keyAccess?.(chosen?.intended);
      return {
        ...program,
        folder: root,
        ...(access && { keys: { held: access.held, readable: access.readable } }), // For `holdfast show`.
        rules: projectRules?.read() ?? [],
        ...defined({ taken: chosen }),
      };
    },
    { retry: PREPARE_RETRY },
  );
  const intent: ExternalIntent = {
    ...found,
    ...defined({ sandbox }),
    agentSessionId: ctx.randomUuid(),
    model: input.model ?? taken?.model ?? parts.model ?? null,
    permissionMode: input.permissionMode ?? taken?.permissionMode ?? permissionMode,
    ...(taken === undefined ? {} : { profile: taken.intended }),
    ...defined({ sessionFields: asked?.sessionFields }),
  };
  const { parameters } = asked ?? {};
  return { intent, input, ...(parameters && { parameters }), rules: [...(taken?.rules ?? []), ...rules] };
}

/** The real path of the folder that a session asks for. @throws HoldfastError `file_not_found` */
export function requireFolder(folder: string): string {
  if (isAbsolute(folder) && statSync(folder, { throwIfNoEntry: false })?.isDirectory() === true)
    return realpathSync(folder);
  throw new HoldfastError("file_not_found", "the session's project_dir is no folder of this machine", {
    at: "/project_dir",
    got: folder,
    expected: "the absolute path of an existing folder",
  });
}

/**
 * The first request to an agent that takes more than a text; `undefined` for any other agent.
 *
 * @throws HoldfastError `invalid_input`
 */
function readFirstRequest(protocol: ExternalAgentProtocol, input: unknown): AgentRequest | undefined {
  if (protocol.readRequest === undefined) return undefined;
  const request = protocol.readRequest(input);
  if (request !== undefined) return request;
  throw new HoldfastError("invalid_input", "the session has no prompt", {
    expected: '{ "prompt": "…" }, { "parameters": { … } } or a text',
    fix: 'start it with --input \'{"prompt": "…"}\'',
  });
}
