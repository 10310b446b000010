import { defined, HoldfastError } from "@holdfast/core";
import { type InboxItem, inInboxOrder } from "@holdfast/proto/view";
import { limitOf, refuse } from "@holdfast/terminal/frame/arguments";
import type { Arguments, Command, Io } from "@holdfast/terminal/frame/command";
import { type Readers, withReaders } from "@holdfast/place/find-session";
import { type Database, findDatabase, placesOf } from "@holdfast/place/project";
import { isAtTerminal } from "@holdfast/terminal/frame/terminal-screen";
import { InboxSources } from "../../sessions/inbox-sources.ts";
import { itemsOf } from "../../sessions/read-inbox.ts";
import { inboxLines } from "../../sessions/inbox-text.ts";

const LIMIT = 50;
const LIMIT_MAX = 10_000;

export const inbox: Command = {
  name: "inbox",
  description:
    "Shows for each the exact command or question in full, the folder, the agents from the root of the tree down, the age, and the " +
    "command that answers it. Uncertain effects come first. A failed session whose effect is uncertain is listed for 7 days after its end. " +
    "On a terminal it is answered by keys until nothing waits: j and k choose, a approves and d denies with a reason, s and p keep the answer as a rule, e writes an answer, q leaves. Nothing is sent before Enter.",
  options: {
    limit: { help: `how many sessions (default: ${LIMIT})`, value: "N" },
    after: { help: "the next page: the text that the page before has shown", value: "TEXT" },
  },
  examples: [
    ["inbox", "what waits for you"],
    ["inbox --url https://fleet.example", "what waits at a coordinator"],
    ["inbox --json | jq '.items[].commands'", "for programs"],
  ],

  async run(args, io) {
    const limit = limitOf(args, { usual: LIMIT, most: LIMIT_MAX });
    const places = placesOf(findDatabase(args, io));
    return withReaders(places, async (readers) => {
      if (isAtTerminal(io)) {
        const { answerInbox } = await import("../../screens/inbox-screen.ts");
        const where = places.map(({ path }) => path).join(" and ");
        const read = async () => {
          const { items, next } = await readPage(readers, limit, args, io);
          return { items, hasMore: next !== undefined };
        };
        return answerInbox(read, where, args, io);
      }
      const { items, next } = await readPage(readers, limit, args, io);
      if (io.isJson) io.result({ items, ...defined({ next }) }, "");
      else showPage(items, next, places, io);
      return 0;
    });
  },
};

interface Page {
  readonly items: readonly InboxItem[];
  /** Where the next page begins, if there is more. */
  readonly next: string | undefined;
}

async function readPage(readers: Readers, limit: number, args: Arguments, io: Io): Promise<Page> {
  const places = readers.map((one) => ({ ...one, place: one }));
  const sources = new InboxSources(places, { cursor: args.text("after"), now: Date.now() });
  const items: InboxItem[] = [];
  let next: string | undefined;
  try {
    for (let sessions = 0; sessions <= limit; sessions++) {
      const cursor = sources.cursor;
      const found = await sources.take();
      if (found === undefined) break;
      if (sessions === limit) next = cursor;
      else items.push(...(await itemsOf(found.session, { ...found.place, io })));
    }
  } catch (error) {
    if (!HoldfastError.is(error) || error.code !== "session_not_found" || !args.has("after")) throw error;
    throw refuse("a session of --after was deleted since the page before", args.usage, {
      fix: "leave --after out to begin with the first page",
    });
  }
  return { items: inInboxOrder(items), next };
}

function showPage(
  items: readonly InboxItem[],
  next: string | undefined,
  places: readonly Database[],
  io: Io,
): void {
  if (items.length === 0)
    return io.note(`nothing waits for a person in ${places.map(({ path }) => path).join(" and ")}`);
  io.show([], inboxLines(items, io.results, Date.now()).join("\n"));
  if (next !== undefined) io.note(io.notes.paint.dim(`there are more: ${io.call(`inbox --after ${next}`)}`));
}
