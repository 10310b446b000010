import { defineAgent, local } from "holdfast";

interface Ticket {
  readonly text: string;
}

const billing = defineAgent({
  name: "billing",
  async run(ctx, ticket: Ticket) {
    const { approved } = await ctx.requestInput({ prompt: "Pay it back?", details: ticket.text });
    return { by: "billing", refunded: approved };
  },
});

const technical = defineAgent({
  name: "technical",
  run: async (ctx, ticket: Ticket) => ({
    by: "technical",
    advice: await ctx.run("advise", () => `restart it (${ticket.text})`),
  }),
});

/** Reads a ticket and hands over to the agent for it. */
const desk = defineAgent({
  name: "desk",
  agents: [billing, technical],
  async run(ctx, ticket: Ticket): Promise<unknown> {
    const isAboutMoney = await ctx.run("classify", () => /invoice|refund|pay/i.test(ticket.text));
    return isAboutMoney
      ? ctx.handoffToAgent(local(billing), ticket, { completion: "immediate" })
      : ctx.handoffToAgent(local(technical), ticket, { completion: "immediate" });
  },
});

export default defineAgent({
  name: "support",
  agents: [desk],
  run: async (ctx, ticket: Ticket) => ctx.waitForChild(ctx.spawnAgent(local(desk), ticket)),
});
