// Entries and forms of external agents, by the real command. The program is a fake that speaks the protocol
// of the real one.

import { writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { ExternalProject } from "../testing/external-project.ts";
import type { Finished } from "../testing/holdfast-process.ts";
import { IpcTestHost } from "../testing/ipc-host.ts";

let project: ExternalProject;
beforeEach(() => void (project = new ExternalProject()));
afterEach(() => project.dispose());

const run = (...args: string[]): Promise<Finished> => project.finishHere(args);

test("a sub-agent of the program is no answer, and the log tells its work apart", ofCampaign, async () => {
  const chat = project.start(["chat", "claude-code", "--session", "s"], {
    stdin: "sub-agent\n",
    env: { PATH: `${project.path("bin")}:${process.env["PATH"] ?? ""}` },
  });
  const { code, stdout, stderr } = await chat.finished;
  expect(code, stderr).toBe(0);
  expect(stdout).toBe("Done: sub-agent\n");
  expect(stderr).toContain("sub-agent: The sub-agent has looked.");
  const logs = (await run("logs", "s")).stdout;
  expect(logs).toMatch(/assistant \(sub-agent of toolu_[\w-]+\): The sub-agent has looked\./);
  expect(logs).toMatch(/tool \(sub-agent of toolu_[\w-]+\): listed/);
  expect(logs).toContain("assistant: Done: sub-agent");
  expect((await run("show", "s")).stdout).toMatch(/assistant \(sub-agent of toolu_/);
});

test(
  "a form is the same question after kill -9, and `approve --input` answers it once",
  ofCampaign,
  async () => {
    const first = project.startHere(["run", "claude-code", "choose", "--session", "s"]);
    await first.says("Which database?");
    const question = async (): Promise<unknown> => {
      const { waits } = await project.json<{ waits: readonly { type: string; id: number }[] }>("show", "s");
      return waits.find(({ type }) => type === "input")?.id;
    };
    const before = await question();
    first.kill("SIGKILL");
    await first.finished;
    expect(await question()).toBe(before);
    expect((await run("inbox")).stdout).toMatch(/Which database\?[^]*SQLite[^]*a file/);
    const yes = await run("approve", "s");
    expect(yes.code).toBe(2);
    expect(yes.stderr).toContain("needs another answer than yes or no");
    const fields = JSON.stringify({ Database: "SQLite", Checks: ["lint"] });
    expect((await run("approve", "s", "--input", fields)).code).toBe(0);
    const { code, stderr } = await run("resume", "s");
    expect(code, stderr).toBe(0);
    expect(project.answers()).toHaveLength(1);
    expect(project.answers()[0]).toContain('"answers":{"Which database?":"SQLite","Which checks?":"lint"}');
    const prompts = (await project.shown("s")).entries.filter(({ role }) => role === "user");
    expect(prompts.at(-1)?.content).toContain(`The answer: ${fields}`);
  },
);

test("a person refuses a form with `approve --no`", ofCampaign, async () => {
  const running = project.startHere(["run", "claude-code", "choose", "--session", "s"]);
  await running.says("Which database?");
  expect((await run("approve", "s", "--no", "--reason", "you decide")).code).toBe(0);
  expect((await running.finished).code).toBe(0);
  expect(project.answers()[0]).toContain("The reason: you decide");
});

test("a session that a held runner starts has the source of its agent and the limits of its file", async () => {
  const limits = "holdfast:\n  budget: { turns: 3 }\n";
  writeFileSync(project.path("file.md"), `---\nname: file\ndescription: Works.\n${limits}---\nWork.\n`);
  const args = ["runner", "--ipc", "--agents", "claude-code", "file.md"];
  const env = { ...project.environment(), HOLDFAST_SCRIPTED_MODEL_URL: "http://127.0.0.1:1" };
  const host = new IpcTestHost(project.start(args, { env }));
  await host.meet();
  const started = { sessionId: "s", agent: "claude-code", input: "hello" };
  expect(await host.ask("start", started)).toEqual({ sessionId: "s" });
  await host.ask("start", { sessionId: "f", agent: "file", input: "hello" });
  await host.ask("stop");
  await host.process.finished;
  const agentOf = async (id: string) => (await project.json<{ agent: object }>("show", id)).agent;
  expect(await agentOf("s")).toMatchObject({ file: "external:claude-code" });
  expect(await agentOf("f")).toMatchObject({ file: project.path("file.md") });
  const { accounts } = await project.json<{ accounts: object[] }>("budget", "f");
  expect(accounts).toMatchObject([{ limits: [{ limit: "maxTurns", max: 3 }] }]);
});
