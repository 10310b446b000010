// `OpenCalls`, `inFolder`, `cutPath`: the paths in the calls of a conversation, as short as a person reads them. A path
// below the folder of its session begins there, and one that is too long keeps its end, which names the file.

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

/** Whether the subject of a call is a path and nothing else. A command is shown as it is. */
export function isPath({ verb, subject }: CallView): boolean {
  return verb !== "Run" && /^(\/|\.{0,2}\/|[\w.@-]+\/)\S*$/.test(subject);
}

/** The call with its path from the folder of the session. */
export function inFolder(call: CallView, folder: string | undefined): CallView {
  const { subject } = call;
  const isBelow = folder !== undefined && folder !== "/" && subject.startsWith(`${folder}/`);
  return isBelow && isPath(call) ? { ...call, subject: subject.slice(folder.length + 1) } : call;
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
