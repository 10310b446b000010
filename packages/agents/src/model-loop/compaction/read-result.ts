// The tool `read_result`. The model reads a result that a boundary has taken out of its conversation, or that
// was too long.

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
    "Read the result of one of your earlier calls, which a summary replaced or which was too long to be shown whole.",
  input: z.strictObject({
    call_id: z.string().min(1).max(200),
    offset: z.int().min(0).default(0).describe("The first character, counted from 0"),
    chars: z.int().min(1).max(PAGE_CHARS).default(PAGE_CHARS).describe("The most characters to read"),
  }),
  isReading: true,
  run: async (ctx, { call_id: callId, offset, chars }) => {
    const { calls } = (ctx.state as ModelState).earlier;
    const call = calls.find(({ id }) => id === callId);
    if (call === undefined)
      throw new HoldfastError(
        "task_failed",
        `No earlier result can be read by the id ${callId}. These can: ${calls.map(({ id }) => id).join(", ")}.`,
      );
    const given = { messages: ctx.conversation(call.entry), callId, offset, chars };
    const { text, total } = await ctx.scheduleTask(earlierResult, given);
    const end = offset + text.length;
    return end < total ? `${text}\n[${total - end} characters follow: call again with offset ${end}]` : text;
  },
});
