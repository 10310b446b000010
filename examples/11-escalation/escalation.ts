import { defineAgent, defineTask, local } from "holdfast";

/** The parent's own knowledge, for any child that asks. */
const lookUp = defineTask({
  name: "look-up",
  run: (what: string) => (what === "region" ? "north" : null),
});

/** Asks upwards whatever it does not know: a handler of its parent first, then a person, by way of the parent. */
const clerk = defineAgent({
  name: "clerk",
  async run(ctx, order: { readonly amount: number }) {
    const region = await ctx.requestFromParent<string | null>("lookUp", "region");
    if (order.amount <= 100) return `booked for ${region}`;
    ctx.signalParent("permission", { amount: order.amount });
    const { approved } = await ctx.waitForSignal<{ readonly approved: boolean }>("decision");
    return approved ? `booked for ${region}, as permitted` : "not booked";
  },
});

export default defineAgent({
  name: "office",
  agents: [clerk],
  handlers: { lookUp },
  async run(ctx, order: { readonly amount: number }) {
    const child = ctx.spawnAgent(local(clerk), order);
    for (;;) {
      const event = await ctx.waitForChildEvent(child);
      if (event.type === "completed") return event.output;
      if (event.type === "failed" || event.type === "cancelled") return `the clerk ${event.type}`;
      if (event.type !== "signal" || event.name !== "permission") continue;
      const decision = await ctx.requestInput({ prompt: "May this be booked?", details: event.payload });
      ctx.signalChild(child, "decision", decision);
    }
  },
});
