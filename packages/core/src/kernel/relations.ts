// `Relations`: the facts about a session's relations to other sessions that its kernel needs.

import type { AgentRef, ParentRef, Persistence, SharedContext } from "../session/session.ts";

export interface Relations {
  readonly parent: ParentRef | undefined;
  readonly depth: number;
  /** The number of children that were asked for before this turn. */
  readonly children: number;
  /**
   * Children of an earlier turn whose end the session's own end waits for, and which have not ended so far.
   */
  readonly awaited: readonly number[];
  /**
   * The incarnation of a session without a journal: the token of the claim under which it began. Each
   * incarnation asks under the same numbers.
   */
  readonly life?: number;
  readonly shared: SharedContext | undefined;
  /**
   * How much of this session survives its process. Children of an ephemeral session are ephemeral by default.
   */
  readonly persistence: Persistence;
  /** Behaviour flags and format of the children. */
  readonly flags: number;
  readonly format: number;
}

/** A session without a parent and without children. */
export const NO_RELATIONS: Relations = {
  parent: undefined,
  depth: 0,
  children: 0,
  awaited: [],
  shared: undefined,
  persistence: "full",
  flags: 0,
  format: 1,
};

/** Describes an agent that a child is to run; `undefined` when the agent is unknown here. */
export type DescribeAgent = (name: string) => AgentRef | undefined;
