// ST57: what a session is about, on one line.

import { defined } from "@holdfast/core";
import { expect, test } from "vitest";
import { creating, ENDINGS, STARTED, type Fixture } from "../fixture.ts";

export function titleConformance(fixture: Fixture): void {
  const entitle = (title?: string, sessionId = "ses-1") =>
    fixture.apply({ type: "set_title", sessionId, ...defined({ title }) }, 9);
  const titleIn = async (sessionId = "ses-1") => (await fixture.session(sessionId)).title;

  test("ST57: a session is created with the given title, or with one that is made of its input", async () => {
    await fixture.apply(creating("ses-1", { input: '{"prompt":"Fix the login\\nand more"}' }));
    expect(await titleIn()).toBe("Fix the login");
    await fixture.apply(creating("ses-2", { input: '{"prompt":"Fix the login"}', title: "Login\nof users" }));
    expect(await titleIn("ses-2")).toBe("Login");
    await fixture.apply(creating("ses-3", { input: "null" }));
    expect(await fixture.session("ses-3")).not.toHaveProperty("title");
  });

  test("ST57: a child has the title of its own input", async () => {
    await fixture.apply(creating("ses-1", { title: "The whole" }));
    const parent = await fixture.claim("ses-1", "owner-1", 1);
    await fixture.spawn(parent, "ses-2", { input: '"a part"' });
    expect(await titleIn("ses-2")).toBe("a part");
  });

  test("ST57: a title that is set replaces the former one, and changes nothing else", async () => {
    const claimant = await fixture.createIn("waiting");
    const before = await fixture.session("ses-1");
    expect(await entitle("Another")).toEqual({ status: "done" });
    expect(await fixture.session("ses-1")).toEqual({ ...before, title: "Another" });
    // The holder of the claim goes on, and its batches leave the title as it is.
    expect(await claimant.commit({ records: [STARTED] })).toMatchObject({ status: "committed" });
    expect(await titleIn()).toBe("Another");
    if (fixture.subject.reopen !== undefined) {
      await fixture.reopen();
      expect(await titleIn()).toBe("Another");
    }
    expect(await entitle()).toEqual({ status: "done" });
    expect(await fixture.session("ses-1")).not.toHaveProperty("title");
  });

  for (const status of ENDINGS)
    test(`ST57: a session that is ${status} gets another title`, async () => {
      await fixture.createIn(status);
      const before = await fixture.session("ses-1");
      expect(await entitle("Another")).toEqual({ status: "done" });
      expect(await fixture.session("ses-1")).toEqual({ ...before, title: "Another" });
    });

  test("ST57: a title that is set is one line without anything that steers a terminal", async () => {
    await fixture.createIn("waiting");
    await entitle(`\n\u001b[31m${"long ".repeat(2_000)}\nmore`);
    expect(await titleIn()).toBe(`${"long ".repeat(16).trim()}…`);
  });

  test("ST57: a session that is not there, or that moves, gets no title", async () => {
    expect(await entitle("Another")).toEqual({ status: "not_found" });
    await fixture.createIn("waiting");
    await fixture.apply({ type: "begin_move", sessionId: "ses-1", moveId: "mov-1", to: "there" });
    expect(await entitle("Another")).toEqual({ status: "moved", to: "there" });
  });
}
