// `siblingsCapability`: the tool `message_agent`, in sessions whose parent lets its children send messages to each other.

import { z } from "zod";

import type { Capability } from "../capability.ts";
import { messageAgent } from "./sibling-messages.ts";

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
