// `answerInbox`: the inbox on a terminal, answered by keys.
//
//   - A key answers the item that was on the screen when it was pressed. When that item has gone, nothing is
//     selected until a person chooses again.
//   - An item whose last line was never shown cannot be approved.
//   - The screen closes when nothing waits any more, and the effect of the last key stays on the terminal.

import { HoldfastError } from "@holdfast/core";
import type { InboxItem } from "@holdfast/proto/view";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { plainLine } from "@holdfast/terminal/frame/plain-text";
import { answerByKey, isAnswerKey, typeLine, type AnswerKey, type TypedText } from "./answer-keys.ts";
import { inboxPicture, waitingIn, type InboxState } from "./inbox-picture.ts";
import { withScreen, type Key, type TerminalScreen } from "@holdfast/terminal/frame/terminal-screen";

const LOOK_MS = 1_000;
const MESSAGE_CHARS = 400;

/** @param where the places whose inbox it is, for people. */
export async function answerInbox(read: ReadInbox, where: string, args: Arguments, io: Io): Promise<number> {
  const nothing = `nothing waits for a person in ${where}`;
  if (isAnswered(await read())) {
    io.note(nothing);
    return 0;
  }
  const { code, message, isOver } = await withScreen(io, async (screen) => {
    const shown = new InboxScreen(screen, read, args, io);
    return { code: await shown.run(), message: shown.message, isOver: shown.isOver };
  });
  // The effect of the last key stays on the terminal.
  if (isOver) for (const line of [message, nothing]) if (line !== "") io.note(line);
  return code;
}

/** The first items, and whether there are sessions behind them. */
export type ReadInbox = () => Promise<{ readonly items: readonly InboxItem[]; readonly hasMore: boolean }>;

function isAnswered({ items, hasMore }: Awaited<ReturnType<ReadInbox>>): boolean {
  return !hasMore && waitingIn(items).length === 0;
}

class InboxScreen {
  readonly #screen: TerminalScreen;
  readonly #read: ReadInbox;
  readonly #args: Arguments;
  readonly #io: Io;
  #state: InboxState = { items: [], selected: undefined, top: 0, message: "" };
  #seen: string | undefined;
  #page = 1;
  #isOver = false;

  constructor(screen: TerminalScreen, read: ReadInbox, args: Arguments, io: Io) {
    this.#screen = screen;
    this.#read = read;
    this.#args = args;
    this.#io = io;
  }

  /** Whether nothing waits any more. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** The effect of the last key. */
  get message(): string {
    return this.#state.message;
  }

  /** @returns the exit code. */
  async run(): Promise<number> {
    await this.#refresh();
    this.#set({ selected: this.#state.items[0]?.id });
    for (;;) {
      if (this.#isOver) return 0;
      this.#draw();
      const key = await this.#screen.key(LOOK_MS);
      if (this.#screen.stopExit !== undefined) return this.#screen.stopExit;
      if (key === undefined) await this.#refresh();
      else if (key.name === "q" || key.name === "escape" || key.name === "end") return 0;
      else await this.#press(key);
    }
  }

  #set(change: Partial<InboxState>): void {
    this.#state = { ...this.#state, ...change };
  }

  #draw(): void {
    const picture = inboxPicture(this.#state, this.#io.results, this.#screen.size, Date.now());
    if (picture.isSeen) this.#seen = this.#state.selected;
    this.#page = picture.page;
    this.#screen.draw(picture.lines);
  }

  async #refresh(): Promise<void> {
    try {
      const page = await this.#read();
      const { items } = page;
      const { selected } = this.#state;
      const isGone = selected !== undefined && !items.some(({ id }) => id === selected);
      this.#isOver = isAnswered(page);
      this.#set({
        items,
        // The item of the next key must be chosen by a person.
        ...(isGone ? { selected: undefined, top: 0 } : {}),
        ...(isGone && this.#state.message === "" ? { message: "the item is gone: choose with j or k" } : {}),
      });
    } catch (error) {
      if (!HoldfastError.is(error) || error.code !== "storage_unavailable") throw error;
      this.#set({ message: plainLine(`${error.message}; tried again`, MESSAGE_CHARS) });
    }
  }

  async #press({ name }: Key): Promise<void> {
    const { top } = this.#state;
    if (name === "j" || name === "down") return this.#choose(1);
    if (name === "k" || name === "up") return this.#choose(-1);
    if (name === "space" || name === "pagedown")
      return this.#set({ top: this.#isSeen() ? top : top + this.#page });
    if (name === "pageup" || name === "b") return this.#set({ top: Math.max(0, top - this.#page) });
    if (isAnswerKey(name)) return this.#answer(name);
  }

  #isSeen(): boolean {
    return this.#state.selected !== undefined && this.#seen === this.#state.selected;
  }

  #choose(step: number): void {
    const { items, selected } = this.#state;
    const at = items.findIndex(({ id }) => id === selected);
    const next = at < 0 ? 0 : Math.min(items.length - 1, Math.max(0, at + step));
    if (items[next]?.id !== selected) this.#seen = undefined;
    this.#set({ selected: items[next]?.id, top: 0, message: "" });
  }

  async #answer(key: AnswerKey): Promise<void> {
    const item = this.#state.items.find(({ id }) => id === this.#state.selected);
    if (item === undefined) return this.#set({ message: "no item is selected: choose with j or k" });
    const type = (label: string) => typeLine(this.#screen, label, (typing) => this.#drawTyping(typing));
    const message = await answerByKey(key, { item, isSeen: this.#isSeen() }, type, this.#args, this.#io);
    this.#set({ message });
    await this.#refresh();
  }

  #drawTyping(typing: TypedText | undefined): void {
    const { typing: _typed, ...rest } = this.#state;
    this.#state = typing === undefined ? rest : { ...rest, typing };
    this.#draw();
  }
}
