// The commands that a person types in a conversation (`/name arguments`). `ChatCommands` are the commands of
// other tools and the skills, for an agent of ours. They are looked for whenever one is typed. `ProgramCommands`
// are those of the program of an external agent, which reads them itself.

import {
  commandDescription,
  commandNamed,
  expandCommand,
  findCommands,
  type AgentPlaces,
  type TypedCommand,
} from "@holdfast/agents";
import { didYouMean } from "@holdfast/core";
import { hasCommands } from "@holdfast/programs/included-programs";
import type { Io } from "@holdfast/terminal/frame/command";
import { plainLine } from "@holdfast/terminal/frame/plain-text";
import { agentPlaces, shownPath } from "../agents/agent-places.ts";
import { hiddenTextIn } from "../agents/content-notes.ts";

/** A line that names a command: the message that it stands for, or the reason why it cannot be sent. */
export type TypedLine =
  | { readonly text: string; readonly notes: readonly string[]; readonly isCommand?: true }
  | { readonly problem: string };

const OWN = new Set(["help", "exit", "quit", "queue"]);
const NAMED = /^\/([^\s/]\S*)\s*([^]*)$/;
const DESCRIPTION_CHARS = 80;

export interface LineCommands {
  readonly isExternal: boolean;
  /** @returns `undefined` for a line that is no command of these. */
  read(line: string): TypedLine | undefined;
  /** The end of the sentence that there is no such command. */
  guess(line: string): string;
  /** A line for each command. */
  help(): readonly string[];
}

export class ProgramCommands implements LineCommands {
  readonly isExternal = true;
  readonly #program: string;

  constructor(program: string) {
    this.#program = program;
  }

  read(line: string): TypedLine | undefined {
    const [, name] = NAMED.exec(line) ?? [];
    if (name === undefined || OWN.has(name) || !hasCommands(this.#program)) return undefined;
    return { text: line, notes: [], isCommand: true };
  }

  guess(line: string): string {
    return `; /${line.split(/\s/)[0]} sends it as a text`;
  }

  help(): readonly string[] {
    if (!hasCommands(this.#program)) return [];
    return [`any other /NAME is a command of ${this.#program}, which runs it after its answer`];
  }
}

export class ChatCommands implements LineCommands {
  readonly isExternal = false;
  readonly #io: Io;
  readonly #places: AgentPlaces;

  constructor(io: Io) {
    this.#io = io;
    this.#places = agentPlaces(io);
  }

  read(line: string): TypedLine | undefined {
    const [, name = "", given = ""] = NAMED.exec(line) ?? [];
    if (name === "" || OWN.has(name)) return undefined;
    const command = commandNamed(name, this.#commands());
    if (command === undefined) return undefined;
    const path = shownPath(command.path, this.#io);
    if (!command.isTrusted)
      return {
        problem: `/${name} is in ${path}, and you have not trusted this project: read it, and then run \`${this.#io.call("agents trust")}\``,
      };
    const made = expandCommand(command, given, this.#places);
    if (typeof made === "string") return { problem: `/${name} (${path}): ${made}` };
    const hidden = hiddenTextIn(command.path, path);
    return { text: made.text, notes: [`/${name} is the text of ${path}`, ...made.notes, ...hidden] };
  }

  guess(line: string): string {
    const [, name = ""] = /^\/(\S+)/.exec(line) ?? [];
    return didYouMean(name, [...OWN, ...this.#commands().map((command) => command.name)]);
  }

  help(): readonly string[] {
    return this.#commands().map((command) => {
      const description = plainLine(command.isTrusted ? commandDescription(command) : "", DESCRIPTION_CHARS);
      return `/${plainLine(command.name, 60)}  ${description === "" ? shownPath(command.path, this.#io) : description}`;
    });
  }

  /** Looked for each time. A skill counts with the content that its user has approved, and files change. */
  #commands(): readonly TypedCommand[] {
    return findCommands(this.#places);
  }
}
