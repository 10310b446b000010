import { appendFileSync } from "node:fs";
import { defineAgent, defineTask } from "holdfast";

interface Order {
  readonly id: string;
  readonly cents: number;
}

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
  // One turn, one event. Each ends in a checkpoint, so waking up costs the same after ten orders as after ten million.
  async turn(ctx, state) {
    const { key, value } = await ctx.select({
      order: ctx.waitForSignal<Order>("order"),
      close: ctx.waitForSignal("close"),
    });
    if (key === "close") return { done: state };

    await ctx.scheduleTask(ship, { order: value, ledger: ctx.input?.ledger });
    ctx.appendEntry({ role: "assistant", content: `shipped ${value.id}` });
    return { state: { shipped: state.shipped + 1, cents: state.cents + value.cents } };
  },
});
