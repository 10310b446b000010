// The public conformance suites: `import { externalAgentConformance } from "holdfast/conformance"`. They test
// adapters that users write. They are apart from `holdfast/testing`, because they import vitest, which can
// only be imported inside of its own runs.

export { externalAgentConformance, type ExternalAgentSubject } from "@holdfast/programs/testing";
