import { inspect } from "node:util";
import { recordError } from "@holdfast/core";
import { describe, expect, test } from "vitest";

import { retryAfterMs } from "./retry-after.ts";
import { costMicroUsd } from "./prices.ts";
import { resolveModel, type ModelEnvironment } from "./resolve-model.ts";

const chosen = (env: ModelEnvironment): string | undefined => {
  const model = resolveModel(env);
  return model === undefined ? undefined : `${model.provider}/${model.model}`;
};

describe("the environment decides which model is used", () => {
  test.each<[ModelEnvironment, string | undefined]>([
    [{}, undefined],
    [{ ANTHROPIC_API_KEY: "", OPENAI_API_KEY: "  " }, undefined],
    [{ HOLDFAST_MODEL: "some-model" }, undefined],
    [{ ANTHROPIC_API_KEY: "k" }, "anthropic/claude-sonnet-5"],
    [{ OPENAI_API_KEY: "k" }, "openai/gpt-5.5"],
    [{ ANTHROPIC_API_KEY: "k", OPENAI_API_KEY: "k" }, "anthropic/claude-sonnet-5"],
    [{ ANTHROPIC_API_KEY: "k", OPENAI_API_KEY: "k", HOLDFAST_MODEL: "openai/gpt-5" }, "openai/gpt-5"],
    [{ ANTHROPIC_API_KEY: " k\n", HOLDFAST_MODEL: "claude-opus-5" }, "anthropic/claude-opus-5"],
    [
      { OPENAI_BASE_URL: "http://127.0.0.1:11434/v1", HOLDFAST_MODEL: "qwen/qwen3" },
      "openai-compatible/qwen/qwen3",
    ],
    [
      { HOLDFAST_SCRIPTED_MODEL_URL: "http://127.0.0.1:1", ANTHROPIC_API_KEY: "k" },
      "scripted/scripted-model",
    ],
  ])("%o → %s", (env, expected) => {
    expect(chosen(env)).toBe(expected);
  });

  test.each<[ModelEnvironment, string, RegExp]>([
    [{ OPENAI_BASE_URL: "http://127.0.0.1:11434/v1" }, "config_invalid", /HOLDFAST_MODEL/],
    [
      { OPENAI_BASE_URL: "127.0.0.1:11434", HOLDFAST_MODEL: "m" },
      "config_invalid",
      /OPENAI_BASE_URL is not the address/,
    ],
    [
      { OPENAI_API_KEY: "k", HOLDFAST_MODEL: "anthropic/claude-opus-5" },
      "config_invalid",
      /ANTHROPIC_API_KEY is not set/,
    ],
    [{ ANTHROPIC_API_KEY: "two\nlines" }, "model_auth", /ANTHROPIC_API_KEY/],
    [{ ANTHROPIC_API_KEY: "k\u00e4se" }, "model_auth", /ANTHROPIC_API_KEY/],
  ])("%o is an error that says what to set", (env, code, message) => {
    expect(() => resolveModel(env)).toThrow(
      expect.objectContaining({ code, message: expect.stringMatching(message) }),
    );
  });

  test("no error and no description shows a key", () => {
    for (const env of [{ ANTHROPIC_API_KEY: "canary 81f2" }, { ANTHROPIC_API_KEY: "canary-81f2" }]) {
      const shown = (() => {
        try {
          return resolveModel(env);
        } catch (error) {
          return error;
        }
      })();
      expect(inspect(shown, { depth: 9 })).not.toContain("81f2");
    }
  });

  test("the default models have a price", () => {
    expect(resolveModel({ ANTHROPIC_API_KEY: "k" })?.isPriced).toBe(true);
    expect(resolveModel({ OPENAI_API_KEY: "k" })?.isPriced).toBe(true);
    expect(
      resolveModel({ OPENAI_BASE_URL: "http://127.0.0.1:1/v1", HOLDFAST_MODEL: "gpt-5.5" })?.isPriced,
    ).toBe(false);
  });
});

describe("the cost of a call", () => {
  const usage = { inputTokens: 1_000, outputTokens: 100, cacheReadTokens: 0, cacheWriteTokens: 0 };

  test("the cost is in whole millionths of a dollar", () => {
    expect(costMicroUsd({ providerId: "anthropic" }, "claude-sonnet-4-5", usage)).toBe(4_500);
    expect(
      costMicroUsd({ providerId: "anthropic" }, "claude-sonnet-4-5", {
        ...usage,
        inputTokens: 1,
        outputTokens: 0,
      }),
    ).toBe(3);
  });

  test("tokens that were read from a cache cost less", () => {
    const cached = costMicroUsd({ providerId: "anthropic" }, "claude-sonnet-4-5", {
      ...usage,
      cacheReadTokens: 1_000,
    });
    expect(cached).toBeLessThan(4_500);
  });

  test("nothing is made up for a model nobody knows", () => {
    expect(costMicroUsd({ providerId: "anthropic" }, "no-such-model", usage)).toBeUndefined();
    expect(costMicroUsd({ providerApiUrl: "http://127.0.0.1:11434/v1" }, "gpt-5", usage)).toBeUndefined();
  });
});

test.each([
  [{ "retry-after": "3" }, 3_000],
  [{ "retry-after": "0" }, 0],
  [{ "retry-after-ms": "250", "retry-after": "9" }, 250],
  [{ "retry-after": "Thu, 01 Jan 1970 00:00:10 GMT" }, 9_000],
  [{ "retry-after": "soon" }, undefined],
  [{ "retry-after": "" }, undefined],
  [{}, undefined],
])("retry-after %o is %s ms", (headers, expected) => {
  expect(retryAfterMs(headers, 1_000)).toBe(expected);
});

test.each(["OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "HOLDFAST_SCRIPTED_MODEL_URL"])(
  "X4: a password in %s is refused without being quoted",
  (name) => {
    const env = { ANTHROPIC_API_KEY: "k", HOLDFAST_MODEL: "m", [name]: "http://user:canary@127.0.0.1:1/v1" };
    const wanted = name.startsWith("OPENAI") ? { ...env, HOLDFAST_MODEL: "compatible/m" } : env;
    const error = thrownBy(() => resolveModel(wanted));
    expect(error).toMatchObject({ code: "config_invalid", message: expect.stringContaining(name) });
    expect(JSON.stringify([recordError(error), error])).not.toContain("canary");
  },
);

function thrownBy(call: () => unknown): unknown {
  try {
    call();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}
