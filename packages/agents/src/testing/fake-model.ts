// A model in the process of the test: a list of replies, or a function that makes them.

import { defined } from "@holdfast/core";
import type { ModelProvider, ModelReply, ModelRequest } from "../models/model-provider.ts";

export type Say = Partial<Omit<ModelReply, "toolCalls">> & {
  readonly calls?: readonly (readonly [name: string, input: object, problem?: string])[];
};

/** @param number how many replies of the model the conversation already has. */
export type Play = (request: ModelRequest, number: number) => Say | Promise<Say>;

export type FakeModel = ModelProvider & { readonly requests: ModelRequest[] };

export function fakeModel(replies: readonly Say[] | Play): FakeModel {
  const requests: ModelRequest[] = [];
  return {
    provider: "fake",
    model: "model",
    isScripted: true,
    isPriced: true,
    describe: () => "fake",
    requests,
    generate: async (request, { onText }) => {
      requests.push(request);
      const number = request.messages.filter((message) => message.role === "assistant").length;
      const said = typeof replies === "function" ? await replies(request, number) : replies[number];
      if (said === undefined)
        throw Object.assign(new Error(`nothing to say at ${number}`), { name: "NonRetryableError" });
      const { calls = [], text = "", ...rest } = said;
      onText(text);
      return {
        text,
        finishReason: calls.length > 0 ? "tool_calls" : "stop",
        usage: {
          inputTokens: 10,
          outputTokens: 5,
          cacheReadTokens: 0,
          cacheWriteTokens: 0,
          costMicroUsd: 100,
        },
        model: "fake/model",
        ...rest,
        toolCalls: calls.map(([name, input, problem], at) => ({
          id: `call_${number}_${at}`,
          name,
          input: input as Record<string, unknown>,
          ...defined({ problem }),
        })),
      };
    },
  };
}
