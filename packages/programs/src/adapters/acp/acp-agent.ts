// The adapter for programs that speak the Agent Client Protocol (`AcpAgent`), such as OpenCode and Gemini
// CLI. Its messages are JSON lines, so it is a `LineAgent`. A turn is in `acp-dialogue.ts`.
//
// Neither files nor terminals are offered to the program: it uses its own.

import { defined } from "@holdfast/core";

import { LineAgent, type LineAgentFacts, type LineAgentOptions } from "../lines/line-agent.ts";
import { STOP_LIMITS } from "../lines/line-program.ts";
import { acpCall } from "./acp-calls.ts";
import { AcpDialogue } from "./acp-dialogue.ts";
import type { AcpAgentFacts } from "./acp-quirks.ts";

/** Options of `new AcpAgent`. */
export interface AcpAgentOptions extends Omit<LineAgentOptions, "facts"> {
  readonly facts: AcpAgentFacts;
}

/** The adapter for a program that speaks the Agent Client Protocol. */
export class AcpAgent extends LineAgent {
  constructor({ facts, ...place }: AcpAgentOptions) {
    super({ facts: acpFacts(facts), ...place });
  }
}

export function acpFacts(facts: AcpAgentFacts): LineAgentFacts {
  const {
    args,
    resumes,
    takesModel = true,
    reportsUsage,
    signIn,
    profileFields,
    mcpFiles,
    ...shared
  } = facts;
  return {
    ...shared,
    capabilities: {
      steer: resumes ? "restart" : "none", // acp-dialogue-6.
      followUp: "queue",
      resume: resumes ? "id" : "none",
      usage: reportsUsage ? "turn" : "none",
      model: takesModel,
      ...defined({ signIn, profileFields }),
    },
    argumentsOf: () => args,
    takesOurId: false,
    interruptMs: STOP_LIMITS.askMs, // It answers a cancel, and some end with their input before they do.
    // Where these programs store their sessions is their own matter, and changes with their versions.
    files: (environment, _id, folder) => ({ mcpFiles: mcpFiles?.(environment, folder) ?? [] }),
    dialogue: (turn) => new AcpDialogue(turn, facts),
    ruledCall: acpCall,
  };
}
