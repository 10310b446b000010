// Measures how the cost of each operation grows, where no other workload has left garbage.

import { measureGrowth, type GrowthRun } from "../workloads/growth.ts";
import { optionsOf, notifyParent } from "./parent.ts";

for await (const cost of measureGrowth(optionsOf<GrowthRun>())) notifyParent("measured", { cost });
notifyParent("measured", { cost: null });
