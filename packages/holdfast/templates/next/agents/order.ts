import { appendFileSync } from "node:fs";
import { defineAgent } from "holdfast";

export interface Order {
  readonly item: string;
}

/** An order of a customer. Replace `charge` and `ship` by calls of your services. */
export const order = defineAgent({
  name: "order",
  async run(ctx, { item }: Order) {
    // The key is the same when a crash repeats the step, so the service charges once.
    const receipt = await ctx.run("charge", (task) => charge(item, task.idempotencyKey));
    // It may wait for days, and over restarts of the server.
    const { approved } = await ctx.requestInput({ prompt: `Ship ${item}?` });
    if (!approved) return { receipt, state: "refused" };
    return { receipt, state: await ctx.run("ship", () => ship(item)) };
  },
});

export default order;

function charge(item: string, idempotencyKey: string): string {
  appendFileSync(process.env["LEDGER"] ?? "ledger.log", `charged ${item} ${idempotencyKey}\n`);
  return `receipt of ${item}`;
}

function ship(item: string): string {
  appendFileSync(process.env["LEDGER"] ?? "ledger.log", `shipped ${item}\n`);
  return "shipped";
}
