// For the sibling packages' tests and tools; not for users.

export { vanishRuntime } from "./runtime.ts";
