// What a session has to do with others, as its kernel knows it.

import type { ParentRef, SharedContext } from "../session/session.ts";
import type { AgentRef } from "../session/session.ts";

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
  /** Whether this session is gone with its process: then its children are, too, unless they are asked for otherwise. */
  readonly isEphemeral: boolean;
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
  isEphemeral: false,
  flags: 0,
  format: 1,
};

/** What is known here of an agent that is to be run as a child; `undefined` when it is not known. */
export type DescribeAgent = (name: string) => AgentRef | undefined;
