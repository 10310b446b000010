// `ChatHistory`: the lines that a person typed in conversations, for the arrow keys of the next one. They are in
// a file of the user's data folder that no other user reads. A line with a secret that this process hides is not
// kept.

import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { dataFolder, makePrivateFolder, replacePrivate } from "@holdfast/system";
import type { Io } from "@holdfast/terminal/frame/command";

export const HISTORY_LINES_MAX = 500;
const LINE_CHARS_MAX = 2_000;

export class ChatHistory {
  readonly #io: Pick<Io, "env" | "hides">;

  constructor(io: Pick<Io, "env" | "hides">) {
    this.#io = io;
  }

  /** The newest first. */
  lines(): readonly string[] {
    try {
      const lines: unknown = JSON.parse(readFileSync(this.#path, "utf8"));
      return Array.isArray(lines)
        ? lines.filter((line) => typeof line === "string").slice(0, HISTORY_LINES_MAX)
        : [];
    } catch {
      return []; // There is none yet, or somebody has changed it by hand.
    }
  }

  add(message: string): void {
    if (this.#io.hides(message)) return;
    const lines = message.split("\n").filter((line) => line.trim() !== "" && line.length <= LINE_CHARS_MAX);
    // Another conversation may have written meanwhile, and a line may hold what is a secret only now.
    const others = this.lines().filter((line) => !this.#io.hides(line));
    const kept = [...new Set([...lines.toReversed(), ...others])].slice(0, HISTORY_LINES_MAX);
    try {
      makePrivateFolder(dirname(this.#path));
      replacePrivate(this.#path, JSON.stringify(kept, null, 1));
    } catch {
      // A conversation goes on without a history.
    }
  }

  get #path(): string {
    return join(dataFolder(this.#io), "chat-history.json");
  }
}
