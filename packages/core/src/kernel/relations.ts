// What a session has to do with others, as its kernel knows it.

import type { AgentRef, ParentRef, Persistence, SharedContext } from "../session/session.ts";

export interface Relations {
  readonly parent: ParentRef | undefined;
  readonly depth: number;
  /** Children asked for before this kernel's life. */
  readonly children: number;
  /** Of those, whose end the session's own waits for, unheard so far. */
  readonly awaited: readonly number[];
  /** Of a session that keeps no journal: the token of the claim that this life of it began under. In each it asks under the same numbers. */
  readonly life?: number;
  readonly shared: SharedContext | undefined;
  /** How much of this session survives its process. Children of an ephemeral one are ephemeral, unless asked for otherwise. */
  readonly persistence: Persistence;
  /** Behaviour flags and format that children get. */
  readonly flags: number;
  readonly format: number;
}

/** A session nobody asked for, which has asked for none. */
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

/** What is known here of an agent that is to be run as a child; `undefined` when it is not known. */
export type DescribeAgent = (name: string) => AgentRef | undefined;
