// `SiblingMessages`: messages between the children of one turn, which the session of their parent passes on.
// `siblingsCapability` gives the children the tool for them, `message_agent`, where their parent allows it.
//
//   child ─ signal "message" ─► parent ─ signal "steer" ─► the other child, before its next model call
//
//   - Every step is a signal of the journal, so that a message arrives once after any crash.
//   - A message for an agent that is not at work is returned to its sender, with the names of those that are.

import type { ChildHandle } from "@holdfast/core";
import { z } from "zod";
import { defineTool, type Tool, type ToolContext } from "./tool.ts";
import { STEER } from "../turn/turn-draft.ts";
import type { Capability } from "../capability.ts";

/** The signal of a child that has a message for another child. */
const MESSAGE = "message";
const MESSAGE_CHARS_MAX = 8_000;
const LAST_EVENTS = ["completed", "failed", "cancelled", "timed_out"];

const messageSchema = z.object({ to: z.string(), text: z.string().max(MESSAGE_CHARS_MAX) });

interface AtWork {
  readonly name: string;
  readonly child: ChildHandle;
}

export class SiblingMessages {
  /** The children at work, by the context of the turn that started them. */
  readonly #atWork = new WeakMap<ToolContext, Set<AtWork>>();

  /** Passes on the messages of a child until it ends. */
  async relay(ctx: ToolContext, name: string, child: ChildHandle): Promise<void> {
    const atWork = this.#atWork.get(ctx) ?? new Set<AtWork>();
    this.#atWork.set(ctx, atWork);
    const own: AtWork = { name, child };
    atWork.add(own);
    for (;;) {
      const event = await ctx.waitForChildEvent(child);
      if (event.type === "signal" && event.name === MESSAGE) pass(ctx, own, atWork, event.payload);
      if (LAST_EVENTS.includes(event.type)) break;
    }
    atWork.delete(own);
  }
}

function pass(ctx: ToolContext, sender: AtWork, atWork: ReadonlySet<AtWork>, payload: unknown): void {
  const message = messageSchema.safeParse(payload);
  if (!message.success) return;
  const { to, text } = message.data;
  const others = [...atWork].filter((one) => one !== sender);
  const receivers = others.filter(({ name }) => name === to);
  for (const { child } of receivers)
    ctx.signalChild(
      child,
      STEER,
      `(A message of the agent ${sender.name}, which works beside you:)\n${text}`,
    );
  if (receivers.length > 0) return;
  const names = others.map(({ name }) => name).join(", ") || "nobody";
  ctx.signalChild(sender.child, STEER, `(Your message to ${to} was not passed on: at work are ${names}.)`);
}

/** @param names the agents that may be at work beside this one. */
function messageAgent(names: readonly string[]): Tool {
  return defineTool({
    name: "message_agent",
    description:
      "Send a message to an agent that works beside you on the same request. It reads the message before its next step. " +
      `The agents: ${names.join(", ")}`,
    input: z.strictObject({
      agent: z.enum(names).describe("Which agent"),
      message: z.string().trim().min(1).max(MESSAGE_CHARS_MAX),
    }),
    isReading: true,
    subject: ({ agent }) => agent,
    run: async (ctx, { agent: to, message: text }) => {
      const isSent = ctx.signalParent(MESSAGE, { to, text });
      return isSent ? "Sent." : "There is nobody who could pass it on.";
    },
  });
}

const sharedSchema = z.object({ siblings: z.array(z.string()).min(1) });

export function siblingsCapability(): Capability<string[]> {
  return {
    name: "siblings",
    prepare: async (_session, task) => {
      const row = await task.readSession();
      if (row?.shared?.kind !== "custom") return null;
      const shared = sharedSchema.safeParse(JSON.parse(row.shared.value));
      return shared.success ? shared.data.siblings : null;
    },
    offer: (names) => ({ tools: [messageAgent(names)] }),
  };
}
