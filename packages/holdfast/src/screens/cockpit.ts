// `showCockpit`: many sessions on one terminal, each with a key for what a person may want of it.
//
//   - A key is for the session that was on the screen when it was pressed. When that one has gone, nothing is
//     selected until a person chooses again.
//   - Nothing that changes a session is sent before Enter.
//   - A place that is away for a while stays on the screen as it was.

import { HOUR_MS, HoldfastError, isEnded } from "@holdfast/core";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { plain, plainLine } from "@holdfast/terminal/frame/plain-text";
import { withScreen, type Key, type TerminalScreen } from "@holdfast/terminal/frame/terminal-screen";
import type { InboxItem } from "@holdfast/proto/view";
import { CostReader } from "@holdfast/terminal/view/session-cost";
import { mergeWork } from "../agents/workspaces/project-worktrees.ts";
import { sessionWork } from "../agents/workspaces/session-work.ts";
import type { Readers } from "@holdfast/place/find-session";
import { cancelSession } from "../sessions/cancel-session.ts";
import { itemsOf } from "../sessions/read-inbox.ts";
import { inboxLines } from "../sessions/inbox-text.ts";
import { sendMessage } from "../sessions/send-message.ts";
import { answerByKey, answerKeys, isAnswerKey, quietly, typeLine } from "./answer-keys.ts";
import { cockpitPicture, type CockpitDetail, type CockpitState } from "./cockpit-picture.ts";
import { readEnded, readLive, type LiveSession } from "./live-sessions.ts";
import { callOwnCommand } from "./own-command.ts";
import { followPlaces } from "./place-changes.ts";
import { PastWorkReader } from "./past-work-reader.ts";

/** The ages in the table go on without a change. */
const AGES_MS = 5_000;
/** Changes that come together are read together. */
const REST_MS = 100;
const ENDED_MS = 12 * HOUR_MS;
const ENDED_SHOWN = 10;
const WORK_LINES = 400;
/** The lines of its work above the question of an opened session. */
const LINES_BEFORE = 20;
const TITLE_CHARS = 40;

export interface CockpitOptions {
  readonly readers: Readers;
  readonly limit: number;
  /** The places, for people. */
  readonly where: string;
  readonly args: Arguments;
  readonly io: Io;
}

/** Shows them until q, which goes back to the list where a session is open. @returns the exit code. */
export async function showCockpit(options: CockpitOptions): Promise<number> {
  return withScreen(options.io, async (screen) => {
    const cockpit = new Cockpit(screen, options);
    const end = followPlaces(
      options.readers.map(({ place }) => place),
      () => cockpit.changed(),
    );
    try {
      return await cockpit.run();
    } finally {
      end();
    }
  });
}

const NOTHING: CockpitDetail = { lines: [], isFollowed: false };

class Cockpit {
  readonly #screen: TerminalScreen;
  readonly #options: CockpitOptions;
  readonly #costs = new CostReader();
  readonly #endedCosts = new CostReader();
  readonly #pastWork: PastWorkReader;
  #state: CockpitState;
  /** The changes of the selected session in its worktree, and what they were read for. */
  #work: { readonly of: string; readonly diff: string | undefined } = { of: "", diff: undefined };
  #showsChanges = false;
  #seen: string | undefined;
  #page = 1;
  #shownTop = 0;
  #isBehind = false;
  #isResting = false;

  constructor(screen: TerminalScreen, options: CockpitOptions) {
    this.#screen = screen;
    this.#options = options;
    this.#pastWork = new PastWorkReader(options.io.results);
    this.#state = {
      sessions: [],
      liveCount: 0,
      isCut: false,
      where: options.where,
      selected: undefined,
      marked: new Set(),
      item: undefined,
      hasWorktree: false,
      isOpen: false,
      detail: NOTHING,
      top: undefined,
      message: "",
    };
  }

  /** A place has changed. */
  changed(): void {
    this.#isBehind = true;
    if (!this.#isResting) this.#screen.wake();
  }

  /** @returns the exit code. */
  async run(): Promise<number> {
    for (;;) {
      // A key that was pressed meanwhile goes first.
      if (!this.#screen.hasKey) await this.#refresh();
      this.#draw();
      this.#isResting = true;
      let key = await this.#screen.key(REST_MS);
      this.#isResting = false;
      if (key === undefined && !this.#isBehind && this.#screen.stopExit === undefined)
        key = await this.#screen.key(AGES_MS);
      if (this.#screen.stopExit !== undefined) return this.#screen.stopExit;
      if (key === undefined) continue;
      const goesBack = key.name === "q" || key.name === "escape";
      if (key.name === "end" || (goesBack && !this.#state.isOpen)) return 0;
      if (goesBack) this.#set({ isOpen: false, top: undefined, message: "" });
      else await this.#press(key);
    }
  }

  #set(change: Partial<CockpitState>): void {
    this.#state = { ...this.#state, ...change };
  }

  #draw(): void {
    const picture = cockpitPicture(this.#state, this.#options.io.results, this.#screen.size, Date.now());
    if (picture.isSeen) this.#seen = this.#subject;
    [this.#page, this.#shownTop] = [picture.page, picture.top];
    this.#screen.draw(picture.lines);
  }

  /** The question or the session that is shown in full. */
  get #subject(): string | undefined {
    return this.#state.item?.id ?? this.#state.selected;
  }

  get #selected(): LiveSession | undefined {
    return this.#state.sessions.find(({ session }) => session.sessionId === this.#state.selected);
  }

  async #refresh(): Promise<void> {
    const { readers, limit } = this.#options;
    this.#isBehind = false;
    try {
      const now = Date.now();
      const live = await readLive(readers, limit, this.#costs, now);
      const ended = { since: now - ENDED_MS, most: ENDED_SHOWN };
      const all = [...live.sessions, ...(await readEnded(readers, ended, this.#endedCosts))];
      const work = await this.#pastWork.read(all);
      const sessions = all.map((one) => {
        const { session, isDriven, why } = one;
        const doing =
          session.status === "working" && isDriven ? work.get(session.sessionId)?.doing : undefined;
        return { ...one, why: doing === undefined || doing === "" ? why : doing };
      });
      this.#keep(sessions, live.sessions.length, live.isCut);
      const lines = work.get(this.#state.selected ?? "")?.lines(WORK_LINES) ?? [];
      await this.#showDetail(lines, now);
    } catch (error) {
      if (!HoldfastError.is(error) || error.code !== "storage_unavailable") throw error;
      this.#set({ message: plainLine(`${error.message}; tried again`, 400) });
    }
  }

  #keep(sessions: readonly LiveSession[], liveCount: number, isCut: boolean): void {
    const ids = new Set(sessions.map(({ session }) => session.sessionId));
    const { selected, marked, message } = this.#state;
    const isGone = selected !== undefined && !ids.has(selected);
    const wasEmpty = this.#state.sessions.length === 0;
    this.#set({
      sessions,
      liveCount,
      isCut,
      marked: new Set([...marked].filter((id) => ids.has(id))),
      ...(isGone ? { selected: undefined, isOpen: false } : {}),
      ...(isGone && message === "" ? { message: "the session is gone: choose with j or k" } : {}),
    });
    if (wasEmpty && message === "") this.#choose(1);
  }

  async #showDetail(work: readonly string[], now: number): Promise<void> {
    const selected = this.#selected;
    if (selected === undefined) return this.#set({ item: undefined, hasWorktree: false, detail: NOTHING });
    const { session, place, reader } = selected;
    const { io } = this.#options;
    const items = isEnded(session.status) ? [] : await itemsOf(session, { reader, place, io });
    const item = items.find(({ kind }) => kind !== "answered");
    this.#readWork(selected);
    const { diff } = this.#work;
    const { paint } = io.results;
    const questionOf = (asked: InboxItem): readonly string[] =>
      inboxLines([asked], io.results, now, answerKeys(asked).length > 0);
    // The question begins the detail of the list, where little of it fits.
    const before = this.#state.isOpen && work.length > 0 ? [...work.slice(-LINES_BEFORE), ""] : [];
    const detail: CockpitDetail = this.#showsChanges
      ? { lines: diffLines(diff ?? "", io), isFollowed: false }
      : item === undefined
        ? { lines: work, isFollowed: true }
        : { lines: [...before, ...questionOf(item)], isFollowed: false };
    const title = this.#showsChanges ? [paint.bold("changes in its worktree:")] : [];
    if (item?.id !== this.#state.item?.id) this.#set({ top: undefined });
    this.#set({
      item,
      hasWorktree: diff !== undefined,
      detail: { ...detail, lines: [...title, ...detail.lines] },
    });
  }

  /** Git is asked again when the session has changed. It is slow, so nothing waits for it. */
  #readWork({ session }: LiveSession): void {
    const { sessionId, updatedAt, nextSeq } = session;
    const of = `${sessionId} ${updatedAt} ${nextSeq}`;
    if (this.#work.of === of) return;
    const isSame = this.#work.of.startsWith(`${sessionId} `);
    this.#work = { of, diff: isSame ? this.#work.diff : undefined };
    void sessionWork(session, this.#options.io)
      .catch(() => undefined)
      .then((found) => {
        if (this.#work.of !== of) return;
        const isThere = found?.status === "there" && found.state !== "removed";
        this.#work = { of, diff: isThere ? found.diff : undefined };
        this.changed();
      });
  }

  #choose(step: number): void {
    const { sessions, selected } = this.#state;
    const at = sessions.findIndex(({ session }) => session.sessionId === selected);
    const next = at < 0 ? 0 : Math.min(sessions.length - 1, Math.max(0, at + step));
    const id = sessions[next]?.session.sessionId;
    if (id !== selected) [this.#seen, this.#showsChanges] = [undefined, false];
    this.#set({ selected: id, top: undefined, message: "" });
  }

  async #press({ name, text }: Key): Promise<void> {
    const move = MOVES[name];
    if (move !== undefined) return this.#choose(move);
    if (name === "space" || name === "pagedown") return this.#scroll(this.#page);
    if (name === "b" || name === "pageup") return this.#scroll(-this.#page);
    if (name === "n") return this.#startOne();
    const selected = this.#selected;
    if (selected === undefined) return this.#set({ message: "no session is selected: choose with j or k" });
    const message = await this.#act(text === "M" ? "M" : name, selected);
    if (message !== undefined) {
      this.#work = { of: "", diff: undefined };
      this.#set({ message });
    }
  }

  #scroll(by: number): void {
    this.#set({ top: Math.max(0, this.#shownTop + by) });
  }

  /** @returns what came of it; `undefined` for a key that says nothing. */
  async #act(name: string, selected: LiveSession): Promise<string | undefined> {
    const { args, io } = this.#options;
    const { item, marked } = this.#state;
    const { sessionId } = selected.session;
    if (isAnswerKey(name)) {
      if (item === undefined) return "it asks nothing";
      if (this.#showsChanges) return "c shows the question again";
      const isSeen = this.#seen === item.id;
      return answerByKey(name, { item, isSeen }, (label) => this.#type(label), args, io);
    }
    switch (name) {
      case "return":
        this.#set({ isOpen: true, top: undefined, message: "" });
        return undefined;
      case "c":
        this.#showsChanges = !this.#showsChanges && this.#work.diff !== undefined;
        this.#set({ top: undefined });
        return this.#work.diff === undefined ? "it has no worktree" : undefined;
      case "t":
        this.#set({ marked: toggled(marked, sessionId) });
        return undefined;
      case "m":
        return this.#sendTo(marked.size === 0 ? [sessionId] : [...marked]);
      case "M":
        return this.#merge(selected);
      case "x":
        return this.#stop(selected);
      case "r":
        return callOwnCommand(["resume", sessionId, "--detach"], "", args, io);
      default:
        return undefined;
    }
  }

  #type(label: string, initial = ""): Promise<string | undefined> {
    const draw = (typing: CockpitState["typing"]): void => {
      this.#set({ typing });
      this.#draw();
    };
    return typeLine(this.#screen, label, draw, initial);
  }

  async #sendTo(ids: readonly string[]): Promise<string> {
    const { args, io } = this.#options;
    const to = ids.length === 1 ? "message" : `message to ${ids.length} sessions`;
    const text = await this.#type(`${to} (Enter sends, Escape leaves)`);
    if (text === undefined || text.trim() === "") return "nothing was sent";
    const said: string[] = [];
    for (const id of ids) said.push(await quietly(io, (quiet) => sendMessage(id, text, args, quiet)));
    this.#set({ marked: new Set() });
    return [...new Set(said)].join("; ");
  }

  #say(message: string): void {
    this.#set({ message });
    this.#draw();
  }

  async #merge({ session }: LiveSession): Promise<string> {
    const { args, io } = this.#options;
    if (this.#work.diff === undefined) return "it has no worktree";
    const label = "merge its work, with this message (Enter merges, Escape leaves)";
    const message = await this.#type(label, plainLine(session.title ?? "", TITLE_CHARS * 2));
    if (message === undefined) return "nothing was merged";
    this.#say("it is merged");
    const asked: Arguments = {
      ...args,
      has: (option) => option === "commit" || args.has(option),
      text: (option) =>
        option !== "message" ? args.text(option) : message.trim() === "" ? undefined : message,
    };
    return quietly(io, (quiet) => mergeWork(session.sessionId, asked, quiet));
  }

  async #stop({ session: { sessionId, title } }: LiveSession): Promise<string> {
    const { args, io } = this.#options;
    const what = plainLine(title ?? sessionId, TITLE_CHARS);
    const reason = await this.#type(
      `stop "${what}", with a reason if you like (Enter stops it, Escape leaves)`,
    );
    if (reason === undefined) return "it was not stopped";
    const given = reason.trim() === "" ? undefined : reason.trim();
    return quietly(io, (quiet) => cancelSession(sessionId, { hard: false, reason: given }, args, quiet));
  }

  async #startOne(): Promise<void> {
    const { args, io } = this.#options;
    const last = this.#selected?.session.agent.name ?? "claude-code";
    const agent = await this.#type("agent of the new session (Enter, Escape leaves)", last);
    if (agent === undefined || agent.trim() === "") return this.#set({ message: "nothing was started" });
    const text = await this.#type(
      `what should ${plainLine(agent, TITLE_CHARS)} do (Enter starts it, Escape leaves)`,
    );
    if (text === undefined || text.trim() === "") return this.#set({ message: "nothing was started" });
    this.#say("it starts");
    const words = [
      "run",
      "--detach",
      "--input=-",
      ...(await this.#workspaceWords(agent)),
      "--",
      agent.trim(),
    ];
    this.#set({ message: await callOwnCommand(words, JSON.stringify(text), args, io) });
  }

  /** A worktree of its own, where the project can have one and the agent takes one. */
  async #workspaceWords(agent: string): Promise<readonly string[]> {
    const { io } = this.#options;
    const isCode = /\.[cm]?[jt]s$/.test(agent.trim());
    const { canHaveWorktrees } = await import("../agents/workspaces/project-worktrees.ts");
    return !isCode && (await canHaveWorktrees(io)) ? ["--worktree"] : [];
  }
}

const MOVES: Readonly<Record<string, number | undefined>> = { j: 1, down: 1, k: -1, up: -1 };

function toggled(marked: ReadonlySet<string>, id: string): ReadonlySet<string> {
  return marked.has(id) ? new Set([...marked].filter((one) => one !== id)) : new Set([...marked, id]);
}

function diffLines(diff: string, { results: { paint } }: Io): readonly string[] {
  if (diff === "") return ["nothing has changed"];
  return plain(diff)
    .trimEnd()
    .split("\n")
    .map((line) => {
      if (/^(diff|index|---|\+\+\+)/.test(line)) return paint.dim(line);
      if (line.startsWith("+")) return paint.green(line);
      return line.startsWith("-") ? paint.red(line) : line;
    });
}
