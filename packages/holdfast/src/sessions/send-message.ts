// `sendMessage`: a message of a person to a conversation. It is the next request of one that waits for it, and
// steers one that works.

import { HoldfastError, isEnded, NEXT_INPUT, type Session } from "@holdfast/core";
import { readAgentSource } from "@holdfast/machine/agent-source";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { isIdleConversation, isOfProgram } from "@holdfast/terminal/view/describe-session";
import { sendSignal, sessionEnded } from "./send-signal.ts";

/** @returns the exit code. */
export function sendMessage(id: string, text: string, args: Arguments, io: Io): Promise<number> {
  return sendSignal(args, io, {
    id,
    choose: (session) => {
      const name = messageSignal(session, io);
      return {
        name,
        send: (requests, sessionId, signalId) => requests.signal(sessionId, name, text, { signalId }),
        said:
          name === NEXT_INPUT ? "stored: it is the next message" : "stored: it reaches the agent as it works",
        repeated: "the message was stored before",
      };
    },
  });
}

/** @throws HoldfastError `conflict` for a session that is no conversation. */
export function messageSignal(session: Session, io: Pick<Io, "call">): typeof NEXT_INPUT | "steer" {
  if (isEnded(session.status)) throw sessionEnded(session, io);
  const waits = session.waits.flatMap((wait) => (wait.type === "signal" ? [wait.name] : []));
  if (waits.includes(NEXT_INPUT)) return NEXT_INPUT;
  const { sessionId, agent } = session;
  // A coordinator stores no source of an agent.
  const isCode = agent.file !== undefined && readAgentSource(agent.file).kind === "code";
  if (!isCode || isOfProgram(session) || isIdleConversation(session)) return "steer";
  throw new HoldfastError(
    "conflict",
    `session ${sessionId} takes no messages: ${agent.name} is an agent of code`,
    {
      fix: `send a signal that its code waits for: ${io.call(`signal ${sessionId} NAME '"TEXT"'`)}`,
    },
  );
}
