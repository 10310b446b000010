// A program of the user's own as an external agent (`customAgent`). It speaks the Agent Client Protocol or
// Holdfast's JSON lines.

import type { Environment } from "@holdfast/system";

import { AcpAgent } from "../acp/acp-agent.ts";
import type { ExternalAgentProtocol, OwnFolders } from "../../session/external-agent-protocol.ts";
import { LineAgent, type LineAgentFacts } from "../lines/line-agent.ts";
import type { StopLimits } from "../lines/line-program.ts";
import { namedCall } from "../lines/named-call.ts";
import { CustomDialogue } from "./custom-dialogue.ts";

/** Options of `customAgent`. */
export interface CustomAgentOptions {
  /** The name of the agent that is made. */
  readonly name: string;
  readonly protocol: "acp" | "lines";
  /** The program and its arguments; no shell reads them. A program with a slash is taken from `folder`. */
  readonly command: readonly [string, ...string[]];
  /** Whether the program continues a session in a new process. */
  readonly resumes: boolean;
  /** Variables that the program gets of the user's environment, besides those of every process. */
  readonly variables?: readonly string[];
  /** The names of variables whose values are keys. They are passed on, and replaced in everything that is recorded. */
  readonly keys?: readonly string[];
  /** The places that the program needs in a sandbox. Without them it works in none. */
  readonly folders?: OwnFolders;
  /** The environment of this process by default. */
  readonly environment?: Environment;
  /** The folder from which a program with a slash is taken. */
  readonly folder: string;
  readonly stopLimits?: StopLimits;
}

/** The adapter for a program of the user's own. */
export function customAgent(options: CustomAgentOptions): ExternalAgentProtocol {
  const { name, protocol, command, resumes, variables = [], keys = [], folders, ...place } = options;
  const [file, ...args] = command;
  const shared = {
    name,
    program: { name: file, title: name, install: "correct `command` in the profile" },
    variables: [...variables, ...keys],
    keys,
    settings: {},
    ...(folders === undefined ? {} : { ownFolders: () => folders }),
  };
  if (protocol === "acp")
    return new AcpAgent({ facts: { ...shared, args, resumes, reportsUsage: false }, ...place });
  return new LineAgent({
    facts: {
      ...shared,
      ...ownLines({ resumes }),
      argumentsOf: () => args,
      ruledCall: ({ tool, input }, folder) => namedCall(tool, input, folder),
    },
    ...place,
  });
}

/** The facts of every program that speaks Holdfast's JSON lines. */
export function ownLines({
  resumes,
}: {
  readonly resumes: boolean;
}): Pick<LineAgentFacts, "capabilities" | "settings" | "takesOurId" | "dialogue"> {
  const resume = resumes ? "id" : "none";
  return {
    capabilities: {
      steer: "inject",
      followUp: "none",
      resume,
      usage: "message",
      model: true,
      pricePrefix: "",
    },
    settings: {},
    takesOurId: true,
    dialogue: (turn) => new CustomDialogue(turn),
  };
}
