// Packages that many runs never use and that take 40 to 70 ms to load. The first use loads them,
// synchronously.
//
// A caller that can wait uses `import()` instead.

import { createRequire } from "node:module";

const require = createRequire(import.meta.url);

/** The JSON Schema validator: for agents and tools with a schema. */
export const ajv = lazily(() => require("ajv/dist/2020.js") as typeof import("ajv/dist/2020.js"));

/** The price table of models: for the first reply of a model. */
export const genaiPrices = lazily(
  () => require("@pydantic/genai-prices") as typeof import("@pydantic/genai-prices"),
);

/** The parser of command lines: for the first rule that compares one. */
export const shellParser = lazily(() => require("unbash") as typeof import("unbash"));

function lazily<Module>(load: () => Module): () => Module {
  let loaded: Module | undefined;
  return () => (loaded ??= load());
}
