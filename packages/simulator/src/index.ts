// The simulator's entry: run one seed, and describe what it broke. This package is private; it is never
// published.

export { describeFailure } from "./failure.ts";
export {
  isFleet,
  simulate,
  type SimulationOptions,
  type SimulationReport,
  type Violation,
} from "./simulation.ts";
