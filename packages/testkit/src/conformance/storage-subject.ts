// `StorageSubject` is the part that an adapter gives the suite to test.

import type { AgentStorage } from "@holdfast/core";

export interface StorageSubject {
  readonly name: string;
  /** A new, empty storage, independent of every other one. */
  readonly open: () => Promise<AgentStorage>;
  /** The number of random sequences of changes in the part `any sequence`. The default is 300. */
  readonly sequences?: number;
  /** Whether its sessions can be followed (ST47). */
  readonly follows?: boolean;
  /** Close this one and open what it kept, as a new process would. Durable adapters only. */
  readonly reopen?: (storage: AgentStorage) => Promise<AgentStorage>;
}
