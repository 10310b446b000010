// The command with a coordinator in place of a database: sessions live there, are asked after there, and move
// there and back.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { Project, type HoldfastProcess } from "../testing/holdfast-process.ts";

const AGENT = `
import { appendFileSync } from "node:fs";
import { defineAgent } from "holdfast";
export default defineAgent({
  name: "counter",
  initial: () => [],
  turn: async (ctx, words) => {
    if (words.length === 3) return { done: words };
    const word = await ctx.waitForSignal("word");
    await ctx.run("note", () => appendFileSync("effects.log", word + "\\n"));
    return { state: [...words, word] };
  },
});
`;

const ADDRESS = /http:\/\/127\.0\.0\.1:\d+/;

let project: Project;
let coordinator: HoldfastProcess;
let url: string;

beforeEach(async () => {
  project = new Project();
  writeFileSync(join(project.folder, "counter.ts"), AGENT);
  coordinator = project.start(["coordinator", "--port", "0", "--storage", "sqlite:fleet.db"]);
  await coordinator.says(ADDRESS);
  url = ADDRESS.exec(coordinator.stderr + coordinator.stdout)![0];
});
afterEach(() => project.dispose());

describe("a coordinator in place of a database", () => {
  const there = (...args: readonly string[]): string[] => [
    ...args,
    "--url",
    url,
    "--token-file",
    join(project.folder, "admin-token"),
  ];

  test(
    "a session runs here and lives there, and every command finds it",
    { ...ofCampaign, timeout: 60_000 },
    async () => {
      const parked = await project.run(...there("run", "counter.ts", "--session", "s", "--park"));
      expect(parked).toMatchObject({ code: 0 });
      expect((await project.run(...there("list"))).stdout).toContain("counter");
      expect((await project.run(...there("show", "s"))).stdout).toContain("word");
      for (const word of ["a", "b", "c"])
        expect(await project.run(...there("signal", "s", "word", JSON.stringify(word)))).toMatchObject({
          code: 0,
        });
      const done = await project.run(...there("resume", "s"));
      expect(done, done.stderr).toMatchObject({ code: 0 });
      expect(JSON.parse((await project.run(...there("result", "s"))).stdout)).toEqual(["a", "b", "c"]);
      expect((await project.run("list")).stdout).not.toContain("counter");
    },
  );

  test(
    "a session is pushed there and pulled back, and does nothing twice",
    { ...ofCampaign, timeout: 60_000 },
    async () => {
      await project.run("run", "counter.ts", "--session", "s", "--park");
      await project.run("signal", "s", "word", '"a"', "--key", "a");
      await project.run("resume", "s", "--park");
      const pushed = await project.run(...there("push", "s"));
      expect(pushed, pushed.stderr).toMatchObject({ code: 0 });
      const refused = await project.run("signal", "s", "word", '"b"');
      expect(refused.code).toBe(6);
      expect(refused.stderr).toContain(url);
      expect(refused.stderr).toContain("E_SESSION_MOVED");
      expect((await project.run("show", "s")).stdout).toContain(url);

      await project.run(...there("signal", "s", "word", '"a"', "--key", "a"));
      await project.run(...there("signal", "s", "word", '"b"'));
      const worked = await project.run(...there("resume", "s", "--park"));
      expect(worked, worked.stderr).toMatchObject({ code: 0 });
      const pulled = await project.run(...there("pull", "s"));
      expect(pulled, pulled.stderr).toMatchObject({ code: 0 });
      await project.run("signal", "s", "word", '"c"');
      expect(await project.run("resume", "s")).toMatchObject({ code: 0 });
      expect(JSON.parse((await project.run("result", "s")).stdout)).toEqual(["a", "b", "c"]);
      expect(readFileSync(join(project.folder, "effects.log"), "utf8")).toBe("a\nb\nc\n");
    },
  );

  test("the end that is here is named as everywhere", { ...ofCampaign, timeout: 60_000 }, async () => {
    await project.run("run", "counter.ts", "--session", "s", "--park", "--db", "other.db");
    const pushed = await project.run(...there("push", "s", "--db", "other.db"));
    expect(pushed, pushed.stderr).toMatchObject({ code: 0 });
    const pulled = await project.run(...there("pull", "s", "--db", "other.db"));
    expect(pulled, pulled.stderr).toMatchObject({ code: 0 });
    expect(pulled.stderr).toContain(`holdfast resume s --db ${join(project.folder, "other.db")}\n`);
    expect((await project.run("list", "--db", "other.db")).stdout).toContain("waiting");
  });

  test("a push to nobody says that nothing was moved", { ...ofCampaign, timeout: 60_000 }, async () => {
    await project.run("run", "counter.ts", "--session", "s", "--park");
    coordinator.kill("SIGKILL");
    await coordinator.finished;
    const pushed = await project.run(...there("push", "s"));
    expect(pushed).toMatchObject({ code: 7, stderr: expect.stringContaining("session s was not moved") });
    expect(pushed.stderr).not.toContain("may be incomplete");
    expect((await project.run("list")).stdout).toContain("waiting");
  });

  test(
    "a missing session, database or coordinator is reported by name",
    { ...ofCampaign, timeout: 60_000 },
    async () => {
      expect(await project.run(...there("pull", "none"))).toMatchObject({ code: 4 });
      expect(await project.run(...there("push", "none"))).toMatchObject({ code: 4 });
      expect(await project.run("list", "--url", url, "--db", "x.db")).toMatchObject({ code: 2 });
      const away = await project.run(
        "list",
        "--url",
        "http://127.0.0.1:1",
        "--token-file",
        join(project.folder, "admin-token"),
      );
      expect(away.stderr).not.toContain("    at ");
      expect([7, 10]).toContain(away.code);
      const nobody = await project.run("list", "--url", url);
      expect(nobody).toMatchObject({ code: 5 });
    },
  );
});
