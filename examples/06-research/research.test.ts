import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { crashEverywhere } from "holdfast/testing";
import { openSqliteReader } from "holdfast";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { Project } from "../../packages/holdfast/src/testing/holdfast-process.ts";
import research from "./research.ts";

const AGENT = fileURLToPath(new URL("./research.ts", import.meta.url));
const PROGRAM = fileURLToPath(new URL("./program.ts", import.meta.url));

const REPORT = {
  answer: "Is it so? Perhaps. Is it so? It is said so. It was said before.",
  asked: ["almanac", "archive"],
  silent: ["attic"],
};

test("it ends the same, wherever a crash comes", { ...ofCampaign, timeout: 120_000 }, async () => {
  const report = await crashEverywhere({
    name: "research",
    agent: research,
    input: { question: "Is it so?", sources: ["almanac", "archive", "attic"] },
  });
  expect(report.outcome).toMatchObject({ status: "completed", output: REPORT });
  expect(report.failures).toEqual([]);
});

describe("research", () => {
  let project: Project;
  beforeEach(() => void (project = new Project({ fromSources: true })));
  afterEach(() => project.dispose());

  test("the command runs three searches at once, retries one, and gives up one that times out", async () => {
    const { code, stdout } = await project.run(
      "run",
      AGENT,
      "--session",
      "r",
      "--input",
      '{"question": "Is it so?"}',
    );
    expect({ code, output: JSON.parse(stdout) as unknown }).toEqual({ code: 0, output: REPORT });
    const { tasks } = await project.json<{ tasks: object[] }>("show", "r");
    expect(tasks).toMatchObject([
      { kind: "search", status: "completed", attempts: 1 },
      { kind: "search", status: "completed", attempts: 2 },
      { kind: "search", status: "failed", attempts: 3, error: { code: "task_timeout" } },
      { kind: "summarise", status: "completed" },
    ]);
  });

  test(
    "an input that does not match the schema is refused before anything is stored",
    ofCampaign,
    async () => {
      const { code, stderr } = await project.run("run", AGENT, "--input", '{"question": ""}');
      expect(code).toBe(2);
      expect(stderr).toContain("/question");
      expect(await project.json("list")).toEqual([]);
    },
  );

  test(
    "a program runs the agent and ends, and a second run of the program repeats no search",
    ofCampaign,
    async () => {
      const run = () =>
        new Promise<{ code: number | null; stdout: string }>((resolve) => {
          const child = spawn(process.execPath, [PROGRAM, "Is it so?", project.path("research.db")], {
            stdio: ["ignore", "pipe", "inherit"],
          });
          let stdout = "";
          child.stdout.setEncoding("utf8").on("data", (text: string) => void (stdout += text));
          child.on("close", (code) => resolve({ code, stdout }));
        });
      const answer = { code: 0, stdout: `${JSON.stringify(REPORT)}\n` };
      expect(await run()).toEqual(answer);
      const records = () => {
        const reader = openSqliteReader({ path: project.path("research.db") });
        return reader.session("Is-it-so").finally(() => reader.close());
      };
      const { nextSeq } = (await records())!;
      expect(await run()).toEqual(answer);
      expect((await records())!.nextSeq).toBe(nextSeq);
    },
  );
});
