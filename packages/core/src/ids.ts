// `positionId`, `isName` and others: the one place where ids are made and checked.
//
// Sessions, runs, signals, runners, schedules, moves and deployments get a type prefix and a UUIDv7 (RFC 9562): sortable
// by time, random in the rest. Tasks, timers, waits and entries are named by their position:
// `{session}-{seq}` (K1).

type IdPrefix = "ses" | "run" | "sig" | "rnr" | "sch" | "mov" | "dep" | "cmd";

/** A new id. `now` in epoch milliseconds; `randomU32` gives integers in [0, 2^32). */
export function mintId(prefix: IdPrefix, now: number, randomU32: () => number): string {
  const a = randomU32();
  const b = randomU32();
  const c = randomU32();
  const version = hex4(0x7000 | (a & 0x0fff));
  const variant = hex4(0x8000 | ((a >>> 12) & 0x3fff));
  const tail = hex8(b) + hex4(c >>> 16);
  return `${prefix}_${hex8(now / 0x1_0000)}-${hex4(now % 0x1_0000)}-${version}-${variant}-${tail}`;
}

function hex8(value: number): string {
  return hex4(value >>> 16) + hex4(value & 0xffff);
}

/** Sixteen bits at a time, because writing larger numbers takes engines many times as long. */
function hex4(value: number): string {
  return (value | 0x1_0000).toString(16).slice(1);
}

/** The id of the item at a position of a session's journal. */
export function positionId(sessionId: string, seq: number): string {
  return `${sessionId}-${seq}`;
}

/** The position in an id that `positionId` made for this session; `undefined` in any other. */
export function positionIn(id: string, sessionId: string): number | undefined {
  const digits = id.startsWith(`${sessionId}-`) ? id.slice(sessionId.length + 1) : "";
  return /^\d{1,15}$/.test(digits) ? Number(digits) : undefined;
}

/** Whether a text may be a session id of a user's choice: it is also safe as a file name and in a URL. */
export function isSessionId(text: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/.test(text);
}

/** An id that `mintId` made, or one of a child below it. Only the last part tells ids of one minute apart. */
const MINTED = /^(([a-z]{3}_)[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-([0-9a-f]{12}))((?:-\d+)*)$/;
/** The lengths of a short id, the shortest first. */
const SHORT_CHARS = [8, 12] as const;

/**
 * The ids as people read and type them. A minted one becomes the beginning of its random end, long enough to
 * tell it from the others. The numbers of a child stand behind it. Other ids stay whole.
 */
export function shortIds(ids: readonly string[]): ReadonlyMap<string, string> {
  const roots = new Map<string, Set<string>>();
  for (const id of ids) {
    const [, root = id, , end = id] = MINTED.exec(id) ?? [];
    for (const chars of SHORT_CHARS) {
      const begun = end.slice(0, chars);
      roots.set(begun, (roots.get(begun) ?? new Set()).add(root));
    }
  }
  return new Map(
    ids.map((id) => {
      const [, , , end = "", below = ""] = MINTED.exec(id) ?? [];
      const chars = SHORT_CHARS.find((one) => roots.get(end.slice(0, one))?.size === 1);
      return [id, end === "" || chars === undefined ? id : end.slice(0, chars) + below];
    }),
  );
}

/**
 * Whether a text that a person typed means this id: its beginning, or that of its random end. The numbers of
 * a child are typed in full.
 */
export function isMeantBy(id: string, text: string): boolean {
  const [, root = id, prefix = "", end = "", below = ""] = MINTED.exec(id) ?? [];
  if (!text.endsWith(below)) return false;
  const typed = text.slice(0, text.length - below.length);
  return typed !== "" && [root, root.slice(prefix.length), end].some((form) => form.startsWith(typed));
}

/** Names of agents, task kinds and signals: printable, no spaces at the ends, at most 200 characters. */
export function isName(text: string): boolean {
  return /^[\p{L}\p{N}_][\p{L}\p{N} ._:/@+-]{0,199}$/u.test(text) && text.trim() === text;
}
