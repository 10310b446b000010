// The process that owns the database ends while a step of another process runs.

import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { Project, type HoldfastProcess } from "../testing/holdfast-process.ts";

const AGENTS: Readonly<Record<string, string>> = {
  // Its second step ends when the file beside its log exists.
  "gate.ts": `import { appendFileSync, existsSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { defineAgent } from "holdfast";
export default defineAgent({ name: "gate", run: async (ctx, file: string) => {
  for (const name of ["one", "two", "three"]) {
    await ctx.run(name, async () => {
      appendFileSync(file, name + "\\n");
      while (name === "two" && !existsSync(file + ".open")) await delay(20);
    }, { effect: "once" });
  }
  return "all three";
} });
`,
  "wait.ts": `import { defineAgent } from "holdfast";
export default defineAgent({ name: "wait", run: (ctx) => ctx.waitForSignal("go") });
`,
};

let project: Project;
beforeEach(() => {
  project = new Project();
  for (const [name, text] of Object.entries(AGENTS)) writeFileSync(project.path(name), text);
});
afterEach(() => project.dispose());

for (const [what, end] of [
  ["ends", (first: HoldfastProcess) => project.run("signal", "first", "go", "1").then(() => first.finished)],
  ["is stopped by Ctrl-C", (first: HoldfastProcess) => (first.kill("SIGINT"), first.finished)],
  ["is killed", (first: HoldfastProcess) => (first.kill("SIGKILL"), first.finished)],
] as const) {
  test(
    `O15: the owner ${what} while a step of another process runs, and each step is done once`,
    ofCampaign,
    async () => {
      const first = project.start(["run", "wait.ts", "--session", "first"]);
      await first.says("waits for signal");
      const log = project.path("done.log");
      const second = project.start(["run", "gate.ts", "--session", "second", "--input", JSON.stringify(log)]);
      await vi.waitFor(() => expect(readFileSync(log, "utf8")).toBe("one\ntwo\n"), 15_000);
      await end(first);
      // The database has another owner by now, which serves further commands.
      await project.run("signal", "second", "noted");
      appendFileSync(`${log}.open`, "");
      expect(await second.finished).toMatchObject({ code: 0, stdout: "all three\n" });
      expect(readFileSync(log, "utf8")).toBe("one\ntwo\nthree\n");
      const { tasks } = await project.json<{ tasks: { attempt?: number }[] }>("show", "second");
      expect(tasks).toHaveLength(3);
    },
  );
}

// Another process owns the database, and runs nothing of the session whose process is gone.
test(
  "a session whose process was killed is shown as interrupted beside the living processes of others",
  ofCampaign,
  async () => {
    const started: HoldfastProcess[] = [];
    for (const name of ["first", "second", "third"]) {
      const log = project.path(`${name}.log`);
      started.push(project.start(["run", "gate.ts", "--session", name, "--input", JSON.stringify(log)]));
      await vi.waitFor(() => expect(readFileSync(log, "utf8")).toBe("one\ntwo\n"), 15_000);
    }
    const [owner, client, last] = started;
    const expectShown = async (shown: Readonly<Record<string, "working" | "interrupted">>): Promise<void> => {
      const { stdout: list } = await project.run("list");
      const { stdout: top } = await project.run("top");
      for (const [name, status] of Object.entries(shown)) {
        const isRun = status === "working";
        expect(list).toMatch(new RegExp(`${name} +${status} .*${isRun ? "" : "somebody to resume it"}`));
        expect(top).toMatch(new RegExp(`${status} +gate .* ${name} `));
        const { stdout: show } = await project.run("show", name);
        expect(show).toContain(isRun ? "has the database open" : "(interrupted: no process is running it)");
      }
    };
    await expectShown({ first: "working", second: "working", third: "working" });
    client!.kill("SIGKILL");
    await client!.finished;
    await vi.waitFor(
      () => expectShown({ first: "working", second: "interrupted", third: "working" }),
      15_000,
    );
    owner!.kill("SIGKILL");
    await owner!.finished;
    await vi.waitFor(
      () => expectShown({ first: "interrupted", second: "interrupted", third: "working" }),
      15_000,
    );
    last!.kill("SIGKILL");
    await last!.finished;
    await expectShown({ first: "interrupted", second: "interrupted", third: "interrupted" });
  },
);
