// The floor of command-turns: the bare loop of the AI SDK, which keeps nothing. JavaScript, so that its start
// strips no types.

import { readFile } from "node:fs/promises";
import { createAnthropic } from "@ai-sdk/anthropic";
import { jsonSchema, stepCountIs, streamText, tool } from "ai";

const anthropic = createAnthropic({ baseURL: `${process.env.ANTHROPIC_BASE_URL}/v1`, apiKey: "unused" });
const { fullStream } = streamText({
  model: anthropic("claude-sonnet-4-5"),
  system: "You read files.",
  prompt: "Read all files.",
  stopWhen: stepCountIs(100_000),
  tools: {
    read_file: tool({
      description: "Reads a file.",
      inputSchema: jsonSchema({
        type: "object",
        properties: { path: { type: "string" } },
        required: ["path"],
      }),
      execute: ({ path }) => readFile(path, "utf8"),
    }),
  },
});
for await (const part of fullStream) {
  if (part.type === "text-delta") process.stdout.write(part.text);
  else if (part.type === "tool-call")
    process.stdout.write(`\n${part.toolName} ${JSON.stringify(part.input)}\n`);
  else if (part.type === "error") throw part.error;
}
