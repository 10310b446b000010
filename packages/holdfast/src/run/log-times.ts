// `withLogTimes`: the lines of a process that stays, with their time and level. As JSON they always have both
// (`at`, `level`). As text they have them by `--log-times`, because systemd and the local stack add a time.

import type { Io, Options } from "@holdfast/terminal/frame/command";

export const LOG_TIMES_OPTION: Options[string] = {
  help: "begin each line of the log with its time and level, for what adds none; lines of --json have both",
};

/** JSON lines of these types say that something needs a look. */
const WARNINGS: ReadonlySet<unknown> = new Set(["warning", "lost", "renewed_more_often"]);

export function withLogTimes(io: Io, hasTimes: boolean, now = (): Date => new Date()): Io {
  const { warn, failed } = io.notes.symbols;
  const over: Pick<Io, "result" | "note"> = {
    result(value, text) {
      const { type } = value as { readonly type?: unknown };
      const level = WARNINGS.has(type) ? "warn" : "info";
      io.result({ at: now().toISOString(), level, ...(value as object) }, text);
    },
    note(line) {
      // A line begins with the mark of its kind, behind a colour.
      const level = [warn, failed].some((mark) => line.slice(0, 8).includes(mark)) ? "warn" : "info";
      io.note(hasTimes ? `${now().toISOString()} ${level} ${line}` : line);
    },
  };
  return Object.assign(Object.create(io) as Io, over);
}
