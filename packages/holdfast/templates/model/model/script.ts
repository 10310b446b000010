import { turns } from "holdfast/testing";

/** The replies of a model that needs no key: it looks at the order, refunds it, and says so. */
export const script = turns([
  { toolCalls: [{ name: "find_order", input: { id: "7" } }] },
  { toolCalls: [{ name: "refund", input: { id: "7", euros: 49 } }] },
  { text: "You get 49 EUR back." },
]);
