// `MachineOptions`: the ports of a `Machine`.

import type { AgentPlaces, StoredEnvironmentsOf } from "@holdfast/agents";
import type { SignInStore } from "@holdfast/mcp";

/** The stored secrets of a user, who is asked nothing. */
export interface MachineSecrets extends SignInStore {
  /** An empty list where their place cannot be used. The caller that needs a value says what is wrong with it. */
  names(): Promise<readonly string[]>;
}

/** A model of this machine, for agents that name none where no provider has a key. */
export interface LocalModel {
  readonly env: AgentPlaces["env"];
  /** For the person who starts the run. */
  readonly note: string;
}

export interface MachineOptions {
  readonly secrets: (places: AgentPlaces) => MachineSecrets;
  /** The name of the user, whose answers add rules to projects. */
  readonly user: string;
  /** Whether each command of the sandbox `filesystem` has a user namespace of its own. */
  readonly commandNamespaces: boolean;
  /** The environments of the coordinator of a session, for agents of the coordinator; none by default. */
  readonly stored?: StoredEnvironmentsOf | undefined;
  readonly findLocalModel?: (places: AgentPlaces) => Promise<LocalModel | undefined>;
  /**
   * Deletes an ended session that an external agent has started.
   *
   * @param place the folder of the agent, and its variables. @returns whether it is deleted.
   */
  readonly deleteSession?: (
    sessionId: string,
    place: { readonly cwd: string; readonly env: AgentPlaces["env"] },
  ) => Promise<boolean>;
}
