// `external`: one of the external agents that Holdfast knows, as a child of an agent in code.
//
// The result is an agent, which the parent declares in `agents`, and the mode of `ctx.spawnAgent`.

import { defined, UsageError, type AgentMode } from "@holdfast/core";
import type { Agent } from "@holdfast/runtime";
import type { Environment } from "@holdfast/system";

import { acpFacts } from "./adapters/acp/acp-agent.ts";
import { ACP_AGENTS } from "./adapters/acp/acp-quirks.ts";
import { CLAUDE_CODE } from "./adapters/claude-code/claude-code.ts";
import { CODEX } from "./adapters/codex/codex-agent.ts";
import {
  hasOwnAdapter,
  INCLUDED_NAMES,
  isIncluded,
  permissionModesOf,
  type IncludedName,
  type IncludedWith,
} from "./included-programs.ts";
import { externalAgent } from "./session/external-agent.ts";
import type { ExternalAgentProtocol } from "./session/external-agent-protocol.ts";
import { LineAgent, type LineAgentFacts, type LineAgentOptions } from "./adapters/lines/line-agent.ts";
import { PI } from "./adapters/pi/pi-agent.ts";

/** Options of `external`. */
export interface ExternalOptions {
  /** The name of an included agent. */
  readonly agent: IncludedName;
  /** Where its sessions work. */
  readonly folder: string;
  /** The mode of sessions that ask for none; `default` by default. */
  readonly permissionMode?: string;
  /** The model of sessions that ask for none. Without it the program's own settings choose. */
  readonly model?: string;
  /** The sandbox of sessions that ask for none, such as `bubblewrap`. */
  readonly sandbox?: string;
  /** The environment of this process by default. */
  readonly environment?: Environment;
}

/** A text, or an object with the text and choices of the session. */
export type ExternalInput =
  | string
  | {
      readonly text: string;
      readonly model?: string;
      readonly permissionMode?: string;
      readonly sandbox?: string;
      readonly conversation?: boolean;
      readonly keepAliveMs?: number;
    };

/** An included agent that is also the mode of a child. */
export interface ExternalMode extends Omit<Agent, "output">, AgentMode<ExternalInput, string> {
  readonly output: Agent<unknown, string>["output"];
  readonly version: string;
}

/**
 * An included coding agent, such as Claude Code, as an agent and as the mode of a child.
 *
 * @throws UsageError for a name that is not known, and a permission mode or a model that the agent does not
 *   have.
 */
export function external({
  agent: name,
  folder,
  permissionMode,
  model,
  sandbox,
  environment,
}: ExternalOptions): ExternalMode {
  const protocol = knownAgent(name, { folder, ...defined({ environment }) });
  if (protocol === undefined)
    throw new UsageError(`there is no external agent "${name}" that Holdfast knows`, {
      expected: INCLUDED_NAMES.join(", "),
      fix: "correct the name, or make an agent of your own program with `customAgent`",
    });
  const modes = permissionModesOf(name);
  const first = permissionMode ?? "default";
  if (!modes.includes(first))
    throw new UsageError(`${name} has no permission mode "${first}"`, {
      expected: modes.join(", "),
      fix: "choose another one, or none",
    });
  if (model !== undefined && !protocol.capabilities().model)
    throw new UsageError(`${name} takes no model`, {
      got: model,
      expected: "the model that its own settings choose",
      fix: "leave `model` out, and choose the model in the settings of the program",
    });
  const permissionModes = [first, ...modes.filter((mode) => mode !== first)] as const;
  const chosen = defined({ model, sandbox });
  const made = externalAgent(protocol, { folder, permissionModes: [...permissionModes], ...chosen });
  return { ...made, type: "local" };
}

/** The adapter of an agent that Holdfast knows. */
export function knownAgent(
  name: string,
  place: Omit<LineAgentOptions, "facts">,
): ExternalAgentProtocol | undefined {
  return isIncluded(name) ? new LineAgent({ facts: includedFacts(name), ...place }) : undefined;
}

/** The facts of an included program. */
export function includedFacts(name: IncludedName): LineAgentFacts {
  if (hasOwnAdapter(name)) return OWN_PROGRAMS[name];
  return acpFacts(ACP_AGENTS.find((facts) => facts.name === name)!);
}

const OWN_PROGRAMS: Readonly<Record<IncludedWith<"own">, LineAgentFacts>> = {
  "claude-code": CLAUDE_CODE,
  codex: CODEX,
  pi: PI,
};
