// `agentFileSchema`: the JSON Schema of the front matter of an agent file, for editors.
//
// It is made of the schemas that files are read by. `docs/agent-file.schema.json` is its copy.

import { z } from "zod";
import { holdfast } from "./dialects/claude.ts";
import { holdfastKeySchema } from "./dialects/holdfast-key.ts";

export function agentFileSchema(): Record<string, unknown> {
  const fields = Object.entries(holdfast.table.rules).map(
    ([name, { schema }]) =>
      [name, name === "holdfast" ? holdfastKeySchema.optional() : schema.optional()] as const,
  );
  const schema = z
    .looseObject({
      ...Object.fromEntries(fields),
      description: holdfast.table.rules["description"]?.schema ?? z.string(),
    })
    .describe("The front matter of an agent file of Holdfast. Its text below is the system prompt.");
  return { title: "Agent file of Holdfast", ...z.toJSONSchema(schema, { io: "input" }) };
}
