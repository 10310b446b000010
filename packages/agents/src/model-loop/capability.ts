// The port through which the model loop gets instructions and tools that depend on the session
// (`Capability`): skills, scripts, MCP servers, instructions of a project.
//
//   - `prepare` runs once, in a task at the start of a session. The facts that it returns are kept in the
//     session's state. The session thus works with the same facts after any crash, whatever happens to the
//     files.
//   - `offer` is pure, because a replay runs it again. Effects of its tools happen in tasks.
//   - Two tools of one name refuse the session, and the error names both.

import { HoldfastError, type GivenEnvironment, type Json } from "@holdfast/core";
import type { TaskContext, TaskDefinition } from "@holdfast/runtime";

import type { AgentRecord } from "../record/agent-record.ts";
import type { CapabilityFacts } from "./model-state.ts";
import type { Tool } from "./tools/tool.ts";
import type { WorkspaceFacts } from "./workspace-facts.ts";

/** The session that a capability is prepared for. */
export interface CapabilitySession {
  readonly agent: AgentRecord;
  readonly workspace: WorkspaceFacts;
  /** Absent for a fork, which keeps what its origin was prepared with. */
  readonly input?: unknown;
  /** The environments and variables that its start named. */
  readonly environment?: GivenEnvironment | undefined;
}

/** The start of a session, as its agent knows it. */
export type StartedSession = Pick<CapabilitySession, "input" | "environment">;

/** The contribution of a capability to a session. */
export interface CapabilityOffer {
  /** A part of the system prompt. It stays the same during the session. */
  readonly instructions?: string;
  readonly tools?: readonly Tool[];
}

/** A part that adds tools and instructions to the sessions of a model loop. */
export interface Capability<Facts extends Json = Json> {
  /** The key of its facts in the session's state. Unique in a loop. */
  readonly name: string;
  /** The tasks that its tools schedule. */
  // oxlint-disable-next-line typescript/no-explicit-any -- tasks of any input and output.
  readonly tasks?: readonly TaskDefinition<any, any>[];
  /**
   * Reads what the session needs: small, because it is stored with each checkpoint. `null` when the agent
   * does not use the capability.
   *
   * @throws HoldfastError when the agent asks for something that is not there. The session then fails before
   *   its first model call.
   */
  readonly prepare: (session: CapabilitySession, task: TaskContext) => Promise<Facts | null>;
  readonly offer: (facts: Facts) => CapabilityOffer;
  /**
   * The facts for a fork, whose workspace is another folder. Absent where neither facts nor files depend on
   * the folder. It is called in a task of the fork, and again after a crash.
   */
  readonly move?: (facts: Facts, session: CapabilitySession) => Promise<Facts>;
}

/** A capability of a list with capabilities of different facts. Each gets only the facts that it returned itself. */
// oxlint-disable-next-line typescript/no-explicit-any -- the list holds capabilities of any facts.
export type AnyCapability = Capability<any>;

/** @param builtIn the tools that the loop offers without a capability. @throws HoldfastError `agent_invalid` */
export async function prepareCapabilities(
  capabilities: readonly AnyCapability[],
  session: CapabilitySession,
  task: TaskContext,
  builtIn: readonly Tool[],
): Promise<CapabilityFacts> {
  const facts: Record<string, Json> = {};
  for (const { name, prepare } of capabilities) {
    const found: Json = await prepare(session, task);
    if (found !== null) facts[name] = found;
  }
  refuseDoubledTools(capabilities, facts, builtIn, session.agent);
  return facts;
}

/** The facts of a session for its fork in another folder. */
export async function moveCapabilities(
  capabilities: readonly AnyCapability[],
  facts: CapabilityFacts,
  session: CapabilitySession,
): Promise<CapabilityFacts> {
  const moved: Record<string, Json> = { ...facts };
  for (const { name, move } of capabilities) {
    const own = facts[name];
    if (own !== undefined && move !== undefined) moved[name] = (await move(own, session)) as Json;
  }
  return moved;
}

/** The offers of the capabilities that the session uses, in the order of the loop's list. */
export function offersOf(
  capabilities: readonly AnyCapability[],
  facts: CapabilityFacts,
): readonly (CapabilityOffer & { readonly name: string })[] {
  return capabilities.flatMap(({ name, offer }) => {
    const own = facts[name];
    return own === undefined ? [] : [{ name, ...offer(own) }];
  });
}

function refuseDoubledTools(
  capabilities: readonly AnyCapability[],
  facts: CapabilityFacts,
  builtIn: readonly Tool[],
  agent: AgentRecord,
): void {
  const owners = new Map(builtIn.map(({ offered }) => [offered.name, "a built-in tool"]));
  for (const { name, tools = [] } of offersOf(capabilities, facts)) {
    for (const { offered } of tools) {
      const other = owners.get(offered.name);
      if (other !== undefined)
        // A failed task records the message alone.
        throw new HoldfastError(
          "agent_invalid",
          `agent "${agent.name}" has two tools "${offered.name}", one from ${other} and one from ${name}`,
          { at: agent.source.path, fix: "rename one of them, or take it out of the agent" },
        );
      owners.set(offered.name, name);
    }
  }
}
