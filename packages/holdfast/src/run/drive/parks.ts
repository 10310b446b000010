// When a command leaves a session that waits (`parksOf`).

import { NEXT_INPUT, type Session } from "@holdfast/core";
import type { Arguments } from "@holdfast/terminal/frame/command";

/** `answered`: only a conversation that waits for its next request is left, and no session that asks. */
export type Parks = boolean | "answered";

export function parksOf(args: Arguments): Parks {
  if (args.has("park")) return true;
  return args.has("conversation") ? "answered" : false;
}

/** A conversation that has answered. */
export function awaitsRequest({ waits }: Pick<Session, "waits">): boolean {
  return waits.some((wait) => wait.type === "signal" && wait.name === NEXT_INPUT);
}
