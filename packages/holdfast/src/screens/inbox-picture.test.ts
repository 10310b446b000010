import type { InboxItem } from "@holdfast/proto/view";
import { expect, test } from "vitest";
import type { Look } from "@holdfast/terminal/frame/command";
import { ASCII } from "@holdfast/terminal/frame/terminal";
import { inboxPicture, type InboxState } from "./inbox-picture.ts";
import { cutColoured, typed } from "@holdfast/terminal/frame/terminal-screen";

const same = (text: string): string => text;
const LOOK: Look = {
  paint: { bold: same, dim: same, red: same, green: same, yellow: same, cyan: same },
  symbols: ASCII,
  columns: 40,
};
const SIZE = { columns: 40, rows: 20 };
const item = (id: string, action: string): InboxItem => ({
  id: `${id}-1`,
  kind: "approval",
  sessionId: id,
  path: ["lead", "child"],
  what: "Allow shell?",
  tool: "shell",
  action,
  folder: "/srv/app",
  since: 0,
  principal: "an admin",
  commands: [],
});
const state = (change: Partial<InboxState>): InboxState => ({
  items: [],
  selected: undefined,
  top: 0,
  message: "",
  ...change,
});

test("the selected item is shown in full over several pages, and counts as seen on the last (inbox-picture-1)", () => {
  const action = Array.from({ length: 60 }, (_, at) => `step-${at}-${"x".repeat(50)}`).join("\n");
  let shown = "";
  let top = 0;
  for (let page = 0; page < 100; page++) {
    const picture = inboxPicture(
      state({ items: [item("a", action)], selected: "a-1", top }),
      LOOK,
      SIZE,
      1_000,
    );
    expect(picture.lines.length).toBeLessThanOrEqual(SIZE.rows);
    shown += picture.lines.slice(3, 3 + picture.page).join("\n");
    if (picture.isSeen) break;
    top += picture.page;
  }
  const text = shown.replaceAll(/[\s]/g, "");
  for (let at = 0; at < 60; at++) expect(text).toContain(`step-${at}-${"x".repeat(50)}`);
});

test("an item that is gone is not shown, and does not count as seen", () => {
  const picture = inboxPicture(state({ items: [item("b", "ls")], selected: "a-1" }), LOOK, SIZE, 1_000);
  expect(picture.isSeen).toBe(false);
  expect(picture.lines.join("\n")).not.toContain("/srv/app");
});

test("an item that is answered is not counted among those that wait", () => {
  const answered: InboxItem = { ...item("b", "ls"), kind: "answered" };
  const [head] = inboxPicture(state({ items: [item("a", "ls"), answered] }), LOOK, SIZE, 1_000).lines;
  expect(head).toContain("1 waits for a person, 1 answered");
});

test("text of agents does not steer the terminal", () => {
  const picture = inboxPicture(
    state({ items: [item("a", "rm \u001b[2Ksafe \u202etxt")], selected: "a-1" }),
    LOOK,
    { ...SIZE, columns: 120 },
    1_000,
  );
  for (const character of ["\u001b", "\u202e"]) expect(picture.lines.join("\n")).not.toContain(character);
  expect(picture.lines.join("\n")).toContain("rm \\u{1b}[2Ksafe \\u{202e}txt");
});

test("a coloured line is cut by what is seen of it", () => {
  expect(cutColoured("\u001b[31mabcdef\u001b[39m", 3)).toBe("\u001b[31mabc\u001b[39m");
});

test("a typed line takes characters, and Backspace removes the last one", () => {
  const key = (text: string, name = text) => ({ text, name });
  expect(typed("ab", key("ü"))).toBe("abü");
  expect(typed("a😀", key("\u007f", "backspace"))).toBe("a");
  expect(typed("a", key("\u001b[A", "up"))).toBe("a");
});
