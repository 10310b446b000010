import { defineAgent, defineTask } from "holdfast";

interface Shop {
  readonly name: string;
  readonly cents: number;
  readonly ms: number;
}

/** Stands for a request over the network. Its result is recorded, and the shop is not asked again. */
const askPrice = defineTask({
  name: "ask-price",
  async run({ name, cents, ms }: Shop, task) {
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(resolve, ms);
      // The loser of a race is stopped.
      task.signal.addEventListener("abort", () => (clearTimeout(timer), reject(new Error("stopped"))));
    });
    return { name, cents };
  },
});

const SHOPS: readonly Shop[] = [
  { name: "Corner", cents: 1_250, ms: 300 },
  { name: "Market", cents: 990, ms: 350 },
  { name: "Harbour", cents: 1_100, ms: 400 },
];

export default defineAgent({
  name: "compare-prices",
  tasks: [askPrice],
  async run(ctx) {
    // All three at once: this takes as long as the slowest.
    const offers = await Promise.all(SHOPS.map((shop) => ctx.scheduleTask(askPrice, shop)));
    const cheapest = offers.reduce((best, offer) => (offer.cents < best.cents ? offer : best));

    // The first result counts. The timer is withdrawn when the shop answers; the task is stopped when the
    // timer is due.
    const slow = ctx.scheduleTask(askPrice, { name: "Island", cents: 500, ms: 60_000 });
    const last = await ctx.race([slow, ctx.sleep(200)]);
    return { cheapest, offers: offers.length, island: last ?? "did not answer in time" };
  },
});
