// The adapter for an agent that a profile of the user describes (`profileAgent`).

import { join, resolve } from "node:path";
import { defined, HoldfastError } from "@holdfast/core";
import type { Environment } from "@holdfast/system";

import { a2aAgent } from "./adapters/a2a/a2a-agent.ts";
import { customAgent, type CustomAgentOptions } from "./adapters/custom/custom-agent.ts";
import type { ExternalAgentProtocol } from "./session/external-agent-protocol.ts";
import { harnessAgent, type HarnessAgentOptions } from "./adapters/harness/harness-agent.ts";
import { mcpToolAgent, type McpToolAgentOptions } from "./adapters/mcp-tool/mcp-tool-agent.ts";

/** The part of a profile that makes it an agent of its own. At most one of them is there. */
export interface DescribedAgent {
  readonly name: string;
  readonly a2a?: { readonly url: string; readonly tokenVariable?: string | undefined } | undefined;
  readonly mcp?:
    | Optional<
        Pick<
          McpToolAgentOptions,
          "command" | "tool" | "prompt" | "arguments" | "reply" | "variables" | "keys"
        >
      >
    | undefined;
  readonly custom?:
    | Optional<
        Pick<CustomAgentOptions, "command" | "protocol" | "resumes" | "variables" | "keys" | "folders">
      >
    | undefined;
  readonly harness?:
    | Optional<Pick<HarnessAgentOptions, "module" | "variables" | "keys" | "folders">>
    | undefined;
}

/** A field that a file leaves out may be there without a value. */
type Optional<Fields> = {
  readonly [Name in keyof Fields]: Fields[Name] | (object extends Pick<Fields, Name> ? undefined : never);
};

/** @throws HoldfastError `config_invalid` for a profile that is no agent of its own, or whose variable is not set. */
export function profileAgent(
  { name, a2a, mcp, custom, harness }: DescribedAgent,
  place: { readonly environment: Environment; readonly folder: string },
): ExternalAgentProtocol {
  if (a2a !== undefined) {
    const { url, tokenVariable } = a2a;
    return a2aAgent({ name, url, ...tokenOf(name, tokenVariable, place.environment) });
  }
  if (mcp !== undefined) {
    const { command, tool, ...rest } = mcp;
    return mcpToolAgent({ name, command, tool, ...defined(rest), ...place });
  }
  if (custom !== undefined) {
    const { command, protocol, resumes, ...rest } = custom;
    return customAgent({ name, command, protocol, resumes, ...defined(rest), ...place });
  }
  if (harness !== undefined) {
    const { module, ...rest } = harness;
    const profiles = join(place.environment["HOME"] ?? "/", ".holdfast", "profiles");
    return harnessAgent({ name, module: resolve(profiles, module), ...defined(rest), ...place });
  }
  throw new HoldfastError("config_invalid", `the profile "${name}" is no agent of its own`, {
    expected: "one of a2a, mcp, custom and harness",
    fix: "run the agent that the profile is for, with `--profile`",
  });
}

function tokenOf(
  name: string,
  variable: string | undefined,
  environment: Environment,
): { readonly token?: string } {
  if (variable === undefined) return {};
  const token = environment[variable];
  if (token !== undefined && token !== "") return { token };
  throw new HoldfastError("config_invalid", `the agent ${name} has no token`, {
    expected: `the variable ${variable}, which its profile names`,
    fix: `set ${variable}`,
  });
}
