// `inboxLines`: the items of the inbox as text for a terminal.
//
// The command that is to be approved is shown in full. A person approves what is shown. Only beyond 20,000
// characters the text says that there is more, and where.

import { defined, TITLE_CHARS } from "@holdfast/core";
import type { InboxItem } from "@holdfast/proto/view";
import type { Look } from "@holdfast/terminal/frame/command";
import { duration, plainLine } from "@holdfast/terminal/frame/plain-text";
import { shownIds } from "@holdfast/terminal/view/session-tree";
import { askedLines, moment, ruleAdvice } from "@holdfast/terminal/view/describe-session";

const NAME_CHARS = 60;
const TITLE_MIN = 12;

const TITLES: { readonly [kind in InboxItem["kind"]]: string } = {
  uncertain_effect: "uncertain effect",
  approval: "approval",
  question: "question",
  pause: "pause",
  answered: "answered, and not yet taken",
};

/** @param hasKeys whether keys answer the items, so that no command is shown. */
export function inboxLines(
  items: readonly InboxItem[],
  look: Look,
  now: number,
  hasKeys = false,
): readonly string[] {
  const ids = shownIds(items, look);
  return items
    .flatMap((item) => [...itemLines(item, ids(item.sessionId), { look, now, hasKeys }), ""])
    .slice(0, -1);
}

function itemLines(
  item: InboxItem,
  id: string,
  { look, now, hasKeys }: { readonly look: Look; readonly now: number; readonly hasKeys: boolean },
): readonly string[] {
  const { paint, symbols, columns } = look;
  const {
    kind,
    path,
    title = "",
    since,
    until,
    what,
    tool,
    action,
    change,
    beside,
    folder,
    details,
    principal,
    lastingRule,
    askedBy,
  } = item;
  const names = path.map((name) => plainLine(name, NAME_CHARS)).join(" > ");
  const age = duration(Math.max(0, now - since));
  const begin = `${kind === "pause" ? symbols.warn : symbols.ask} ${TITLES[kind]}`;
  // The title has the rest of the line.
  const room = columns - `${begin}  ${names}    ${id}  ${age}`.length;
  const about = room < TITLE_MIN ? "" : `${plainLine(title, Math.min(room, TITLE_CHARS), symbols.cut)}  `;
  const head = `${paint.bold(begin)}  ${names}  ${title === "" ? "" : about}${paint.dim(`${id}  ${age}`)}`;
  const asked = askedLines({
    prompt: what,
    ...defined({ tool, action, change, beside, folder, askedBy, details }),
  });
  const advice = lastingRule === undefined || kind === "answered" ? [] : [ruleAdvice(lastingRule)];
  return [
    head,
    ...asked.map((line) => `    ${line}`),
    ...(until === undefined ? [] : [`    until ${moment(until, now)}`]),
    ...(principal.startsWith("anybody") ? [] : [`    for ${plainLine(principal, NAME_CHARS)}`]),
    ...(hasKeys ? [] : item.commands.map((command) => `    ${paint.cyan(command)}`)),
    ...(hasKeys ? [] : advice.map((line) => `    ${paint.dim(line)}`)),
  ];
}
