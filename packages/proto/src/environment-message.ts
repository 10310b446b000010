// Environments and variables of a start as the contract has them, and as programs have them.

import type { Environment as EnvironmentMessage } from "./gen/holdfast/v1/session_pb.js";

/** The environments and variables that a start names. */
export interface StartEnvironment {
  readonly references?: readonly string[];
  readonly values?: Readonly<Record<string, string>>;
}

/** For a message of the contract. */
export function environmentMessage({ references = [], values = {} }: StartEnvironment) {
  return { references: [...references], values: { ...values } };
}

/** @returns `undefined` for one that names nothing. */
export function environmentOf(message: EnvironmentMessage | undefined): StartEnvironment | undefined {
  if (message === undefined) return undefined;
  const { references, values } = message;
  if (references.length + Object.keys(values).length === 0) return undefined;
  return { references: [...references], values: { ...values } };
}
