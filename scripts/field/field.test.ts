// The campaign `field`: small programs that play what users of other systems reported in public, and attacks.
// They lie beside a checkout. The two tables here say what each must print.

import { existsSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { isCampaign } from "@holdfast/testkit/campaign";
import { CHROMIUM, NO_CHROMIUM } from "../../packages/holdfast/src/testing/browser.ts";
import { COMMAND_PROGRAMS } from "./command-programs.ts";
import { ENGINE_PROGRAMS } from "./engine-programs.ts";
import type { FieldProgram } from "./field-program.ts";
import { FieldStand } from "./field-stand.ts";

const FIELD_PROGRAMS: readonly FieldProgram[] = [...ENGINE_PROGRAMS, ...COMMAND_PROGRAMS];
const VARIABLE = "HOLDFAST_FIELD_PROGRAMS";
const PROGRAMS = resolve(
  process.env[VARIABLE] ?? fileURLToPath(new URL("../../../shared/field", import.meta.url)),
);
const FIGURES = process.env["HOLDFAST_FIELD_FIGURES"];
const PLAY_MS = 15 * 60_000;

let stand: FieldStand | undefined;
const held: FieldProgram[] = [];
const broken: string[] = [];

const reason = !isCampaign
  ? "the programs take half an hour: `npm run campaign -- field` plays them"
  : existsSync(PROGRAMS)
    ? undefined
    : `the programs are not beside this checkout; ${VARIABLE} may name their folder`;

beforeAll(() => {
  if (reason === undefined) stand = FieldStand.open(PROGRAMS);
}, PLAY_MS);
afterAll(async () => {
  await stand?.close();
  if (FIGURES !== undefined && stand !== undefined) writeFileSync(FIGURES, figures());
});
beforeEach(({ skip, task }) => {
  if (reason !== undefined) skip(reason);
  if (CHROMIUM === undefined && task.name.startsWith("page/")) skip(NO_CHROMIUM);
});

test.each(FIELD_PROGRAMS.map((program) => [titleOf(program), program.expects, program] as const))(
  "%s does what its user expects: %s",
  { timeout: PLAY_MS + 60_000 },
  async (title, _expects, program) => {
    const text = await stand!.play(program, PLAY_MS);
    const missing = program.says.filter((each) => !each.test(text)).map(String);
    const wrong = (program.neverSays ?? []).filter((each) => each.test(text)).map(String);
    if (missing.length + wrong.length === 0) held.push(program);
    else broken.push(title);
    expect({ missing, wrong }, text).toEqual({ missing: [], wrong: [] });
  },
);

function titleOf({ file, args = [] }: FieldProgram): string {
  return [file, ...args].join(" ");
}

/** The end of the row of evidence. */
function figures(): string {
  const misused = held.filter(({ misuse }) => misuse !== undefined);
  return [
    `${held.length} of ${FIELD_PROGRAMS.length} do what their users expect`,
    ...(misused.length === 0
      ? []
      : [
          `${misused.map(titleOf).join(" and ")} as a user can write them, because what they ask for cannot be`,
        ]),
    ...(broken.length === 0 ? [] : [`not so: ${broken.join(", ")}`]),
  ].join("; ");
}
