// The floor of a restart: open the file, read the session's rows, add one.

import { openFloor } from "../floors.ts";
import { assertDone } from "../measure.ts";
import { optionsOf, notifyParent } from "./parent.ts";

const { place, steps } = optionsOf<{ place: string; steps: number }>();
const { floor, read } = await openFloor(place);
const rows = await read(1);
assertDone("whether the floor has its rows", rows.length >= steps, true);
notifyParent("running");
await floor.keep(1, rows.length, '{"output":true}');
process.once("disconnect", () => process.exit());
