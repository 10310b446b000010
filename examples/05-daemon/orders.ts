import { appendFileSync } from "node:fs";
import { defineAgent, defineTask, HoldfastError } from "holdfast";
import { z } from "zod";

/** The schema of an order. The agent checks it at the wait, because a daemon must survive a wrong signal. */
const orderSchema = z.object({ id: z.string().min(1), cents: z.int().nonnegative() });
type Order = z.output<typeof orderSchema>;

interface Input {
  /** A file that every shipped order is written to. */
  readonly ledger?: string;
}

/** The effect on the world. The key is the same for every attempt: a real service deduplicates by it. */
const ship = defineTask({
  name: "ship",
  run({ order, ledger }: { readonly order: Order; readonly ledger: string | undefined }, { idempotencyKey }) {
    if (ledger !== undefined) appendFileSync(ledger, `${idempotencyKey} ${order.id}\n`);
    return { id: order.id };
  },
});

interface State {
  readonly shipped: number;
  readonly cents: number;
}

export default defineAgent<Input | undefined, State, State>({
  name: "order-desk",
  tasks: [ship],
  initial: () => ({ shipped: 0, cents: 0 }),
  // One turn, one event. Each ends in a checkpoint, so waking up costs the same after ten orders as after ten
  // million.
  async turn(ctx, state) {
    let order: Order;
    try {
      const { key, value } = await ctx.select({
        order: ctx.waitForSignal("order", { schema: orderSchema }),
        close: ctx.waitForSignal("close"),
      });
      if (key === "close") return { done: state };
      order = value;
    } catch (error) {
      if (!HoldfastError.is(error) || error.code !== "invalid_signal") throw error;
      ctx.appendEntry({ role: "assistant", content: `refused: ${error.message}` });
      return { state };
    }

    await ctx.scheduleTask(ship, { order, ledger: ctx.input?.ledger });
    ctx.appendEntry({ role: "assistant", content: `shipped ${order.id}` });
    return { state: { shipped: state.shipped + 1, cents: state.cents + order.cents } };
  },
});
