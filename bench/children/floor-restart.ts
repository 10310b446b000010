// The floor of a restart: open the file, read the session's rows, add one.

import { openSqliteFloor } from "../floors.ts";
import { assertDone } from "../measure.ts";
import { optionsOf, tell } from "./parent.ts";

const { file, steps } = optionsOf<{ file: string; steps: number }>();
const { floor, read } = openSqliteFloor(file);
const rows = read(1);
assertDone("whether the floor has its rows", rows.length >= steps, true);
tell("running");
await floor.keep(1, rows.length, '{"output":true}');
process.once("disconnect", () => process.exit());
