// `tracedVariables`: the variables of a program that its restore receipt names. Pure.

import type { AgentTraces } from "../external-agent-protocol.ts";

/** Variables of the machine and its network, which a service manager and a terminal set differently. */
const OF_THE_MACHINE = /^(SHELL|USER|XDG_\w+|HTTPS?_PROXY|NO_PROXY|NODE_EXTRA_CA_CERTS|SSL_CERT_FILE)$/;

export function tracedVariables(
  own: Readonly<Record<string, string | undefined>>,
  passed: readonly string[],
  keyNames: readonly string[],
): AgentTraces["environment"] {
  const settings: Record<string, string> = {};
  for (const name of passed) {
    const value = own[name];
    if (value !== undefined && !keyNames.includes(name) && !OF_THE_MACHINE.test(name)) settings[name] = value;
  }
  return { settings, keys: keyNames.filter((name) => own[name] !== undefined) };
}
