// `holdfast message`: one text for one agent or several, whether they wait for it or work.

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { ExternalProject } from "../testing/external-project.ts";

const ASKS = `import { defineAgent } from "holdfast";
export default defineAgent({ name: "asks", run: (ctx) => ctx.requestInput({ prompt: "Go?" }) });
`;

let project: ExternalProject;
beforeEach(() => {
  project = new ExternalProject();
  project.write("asks.ts", ASKS);
});
afterEach(() => project.dispose());

const run = (...args: string[]) => project.finishHere(args);

test(
  "a message is the next one of two conversations, and nobody gets it when one of the sessions takes none",
  ofCampaign,
  async () => {
    for (const id of ["one", "two"]) {
      const ran = await run("run", "claude-code", "hello", "--conversation", "--session", id);
      expect(ran.code, ran.stderr).toBe(0);
    }
    expect((await run("run", "asks.ts", "--session", "code", "--park")).code).toBe(0);
    const refused = await run("message", "one", "code", "write:a.txt");
    expect([refused.code, refused.stderr]).toEqual([
      6,
      expect.stringContaining("session code takes no messages"),
    ]);
    expect((await run("message", "one", "nosuch", "write:a.txt")).stderr).toContain(
      "put a text of several words in quotes",
    );
    expect((await run("message", "one", " ")).stderr).toContain("the text is empty");
    const sent = await run("message", "one", "two", "write:a.txt");
    expect(sent.code, sent.stderr).toBe(0);
    expect(sent.stderr).toContain("two: stored: it is the next message");
    const resumed = [project.startHere(["resume", "one"]), project.startHere(["resume", "two"])];
    const said = () => project.lines("a.txt").length;
    await vi.waitFor(() => expect(said()).toBe(2), { timeout: 60_000, interval: 200 });
    for (const one of resumed) {
      one.kill("SIGTERM");
      await one.finished;
    }
  },
);
