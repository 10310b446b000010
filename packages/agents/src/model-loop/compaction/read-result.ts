// The tool `read_result`: the model reads the result of a call that a boundary has taken out of its conversation.

import { HoldfastError } from "@holdfast/core";
import { z } from "zod";

import type { ModelState } from "../model-state.ts";
import { defineTool } from "../tools/tool.ts";
import { earlierResult } from "./boundary-tasks.ts";

const PAGE_CHARS = 20_000;

export const READ_RESULT = "read_result";

export const readResult = defineTool({
  name: READ_RESULT,
  description:
    "Read the result of one of your earlier calls, which the summary of the conversation replaced.",
  input: z.strictObject({
    call_id: z.string().min(1).max(200),
    offset: z.int().min(0).default(0).describe("The first character, counted from 0"),
  }),
  isReading: true,
  run: async (ctx, { call_id: callId, offset }) => {
    const { boundaries } = ctx.state as ModelState;
    for (const leaf of boundaries?.leaves ?? []) {
      try {
        const given = { messages: ctx.conversation(leaf), callId, offset, chars: PAGE_CHARS };
        const { text, total } = await ctx.scheduleTask(earlierResult, given);
        const end = offset + text.length;
        return end < total
          ? `${text}\n[${total - end} characters follow: call again with offset ${end}]`
          : text;
      } catch (error) {
        if (!isMissing(error)) throw error;
      }
    }
    throw new HoldfastError("invalid_input", `no earlier call has the id ${callId}`);
  },
});

function isMissing(error: unknown): boolean {
  const { cause } = error as { readonly cause?: { readonly code?: unknown } };
  return cause?.code === "file_not_found";
}
