// Measures how the cost of each operation grows, where no other workload has left garbage.

import { measureGrowth, type GrowthRun } from "../workloads/growth.ts";
import { optionsOf, tell } from "./parent.ts";

for await (const cost of measureGrowth(optionsOf<GrowthRun>())) tell("measured", { cost });
tell("measured", { cost: null });
