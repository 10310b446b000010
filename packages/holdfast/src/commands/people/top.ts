import { limitOf } from "@holdfast/terminal/frame/arguments";
import type { Command, Io } from "@holdfast/terminal/frame/command";
import { type Readers, withReaders } from "../../place/find-session.ts";
import { findDatabase, placesOf } from "../../place/project.ts";
import { CostReader } from "@holdfast/terminal/view/session-cost";
import { liveJson, type LivePage, liveSummary, readLive, topLines } from "../../screens/live-sessions.ts";
import { isAtTerminal, withScreen } from "@holdfast/terminal/frame/terminal-screen";
import { HoldfastError } from "@holdfast/core";

const LIMIT = 50;
const LIMIT_MAX = 1_000;
/** The ages in the table go on without a change. */
const AGES_MS = 5_000;
/** Changes that come together are read together. */
const REST_MS = 100;

export const top: Command = {
  name: "top",
  description:
    "On a terminal the list follows the changes of the place, until q. Elsewhere, and with --json, the command shows the list once and ends. " +
    "Sessions that need a person come first. The cost is that of the session's own calls of models, by its journal. A call without a " +
    "known price has an unknown cost.",
  options: { limit: { help: `how many sessions (default: ${LIMIT})`, value: "N" } },
  examples: [
    ["top", "what happens now"],
    ["top --url https://fleet.example", "what happens at a coordinator"],
    ["top --json | jq '.sessions[].why'", "once, for programs"],
  ],

  async run(args, io) {
    const limit = limitOf(args, { usual: LIMIT, most: LIMIT_MAX });
    const places = placesOf(findDatabase(args, io));
    const where = places.map(({ path }) => path).join(" and ");
    const costs = new CostReader();
    return withReaders(places, async (readers) => {
      if (isAtTerminal(io)) return watch(readers, limit, where, io);
      showOnce(await readLive(readers, limit, costs, Date.now()), where, io);
      return 0;
    });
  },
};

function showOnce(page: LivePage, where: string, io: Io): void {
  if (!io.isJson) io.note(`${liveSummary(page)} in ${where}`);
  io.show(liveJson(page), topLines(page, io.results, Date.now()).join("\n"));
}

/** Draws until q. A place that is away for a while stays on the screen as it was. */
async function watch(readers: Readers, limit: number, where: string, io: Io): Promise<number> {
  const { paint, symbols } = io.results;
  const costs = new CostReader();
  const { followPlaces } = await import("../../screens/place-changes.ts");
  return withScreen(io, async (screen) => {
    let isBehind = false;
    let isResting = false;
    const end = followPlaces(
      readers.map(({ place }) => place),
      () => {
        isBehind = true;
        if (!isResting) screen.wake();
      },
    );
    try {
      return await draw();
    } finally {
      end();
    }

    async function draw(): Promise<number> {
      let lines: readonly string[] = [];
      for (;;) {
        let last = paint.dim("q leaves");
        isBehind = false;
        try {
          const page = await readLive(readers, limit, costs, Date.now());
          lines = [
            `${paint.bold(liveSummary(page))}  ${paint.dim(where)}`,
            "",
            ...topLines(page, io.results, Date.now(), screen.size.columns),
          ];
        } catch (error) {
          if (!HoldfastError.is(error) || error.code !== "storage_unavailable") throw error;
          last = `${paint.yellow(`${symbols.warn} ${error.message}; tried again`)}  ${last}`;
        }
        const room = screen.size.rows - 2;
        const hidden = lines.length - room;
        screen.draw([
          ...lines.slice(0, room),
          hidden > 0 ? paint.dim(`${hidden} more lines: make the terminal higher`) : "",
          last,
        ]);
        isResting = true;
        let key = await screen.key(REST_MS);
        isResting = false;
        if (key === undefined && !isBehind && screen.stopExit === undefined) key = await screen.key(AGES_MS);
        if (screen.stopExit !== undefined) return screen.stopExit;
        if (key?.name === "q" || key?.name === "escape") return 0;
      }
    }
  });
}
