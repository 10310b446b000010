import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { CONFIG_SCHEMA } from "./config.ts";

test("docs/config.schema.json is what the code reads files by", () => {
  const published: unknown = JSON.parse(
    readFileSync(new URL("../../../docs/config.schema.json", import.meta.url), "utf8"),
  );
  expect(published).toEqual(CONFIG_SCHEMA);
});

// Files are checked for exactly this; a setting of another type needs another check first.
test("every setting is a text that is not empty, but one that may be a list, and nothing else may stand in a file", () => {
  const { trace, ...others } = CONFIG_SCHEMA.properties;
  for (const setting of Object.values(others))
    expect(setting).toEqual({ type: "string", minLength: 1, description: expect.any(String) });
  expect(trace).toMatchObject({ type: ["string", "array"], items: { type: "string", minLength: 1 } });
  expect(CONFIG_SCHEMA.additionalProperties).toBe(false);
});
