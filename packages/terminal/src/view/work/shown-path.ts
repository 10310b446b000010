// `OpenCalls`, `cutPath`: the calls of a conversation with the folder at which their paths begin, and a path that is
// too long for its line. It keeps its end, which names the file.

import type { CallView } from "@holdfast/proto/view";
import { cutTo } from "../../frame/plain-text.ts";
import type { JournalEvent } from "../journal-events.ts";

/** The calls of tools of a conversation that have no result yet, by their ids. */
export class OpenCalls extends Map<string, CallView> {
  /** The folder in which the session works, once its journal has said so. */
  folder: string | undefined;

  /** Reads the folder from the start of a turn of an external agent. */
  event({ type, input }: JournalEvent): void {
    if (type !== "schedule_task") return;
    const { intent } = (input ?? {}) as { readonly intent?: { readonly folder?: unknown } };
    if (typeof intent?.folder === "string") this.folder = intent.folder;
  }
}

/** A path cut in front of the last names that fit. */
export function cutPath(path: string, charsMax: number, cutMark: string): string {
  if (path.length <= charsMax) return path;
  const names = path.split("/");
  let end = names.at(-1) ?? "";
  for (const name of names.slice(0, -1).toReversed()) {
    if (cutMark.length + 1 + name.length + 1 + end.length > charsMax) break;
    end = `${name}/${end}`;
  }
  return cutTo(`${cutMark}/${end}`, charsMax, cutMark);
}
