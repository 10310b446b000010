import { limitOf } from "@holdfast/terminal/frame/arguments";
import type { Command, Io } from "@holdfast/terminal/frame/command";
import { withReaders } from "@holdfast/place/find-session";
import { findDatabase, placesOf } from "@holdfast/place/project";
import { CostReader } from "@holdfast/terminal/view/session-cost";
import { liveJson, type LivePage, liveSummary, readLive, topLines } from "../../screens/live-sessions.ts";
import { isAtTerminal } from "@holdfast/terminal/frame/terminal-screen";

const LIMIT = 50;
const LIMIT_MAX = 1_000;

export const top: Command = {
  name: "top",
  description:
    "On a terminal the list follows the changes of the place until q, with the sessions that ended in the last 12 hours below, and the " +
    "selected session in full: what it asks, or what it does. Keys: j and k choose, Enter opens it on the whole screen and q or Escape goes " +
    "back to the list, a approves and d denies with a reason, s and p keep the answer as a rule for the session or the project, e writes an answer, m sends a message " +
    "(t marks several for it), c shows the changes in its worktree and M merges them, x stops it, r resumes it in the background, n starts a new one in the background. Elsewhere, and with --json, the command " +
    "shows the list once and ends. Sessions that need a person come first. The cost is that of the session's own calls of models, by its " +
    "journal. A call without a known price has an unknown cost.",
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
      if (isAtTerminal(io)) {
        const { showCockpit } = await import("../../screens/cockpit.ts");
        return showCockpit({ readers, limit, where, args, io });
      }
      showOnce(await readLive(readers, limit, costs, Date.now()), where, io);
      return 0;
    });
  },
};

function showOnce(page: LivePage, where: string, io: Io): void {
  if (!io.isJson) io.note(`${liveSummary(page)} in ${where}`);
  io.show(liveJson(page), topLines(page, io.results, Date.now()).join("\n"));
}
