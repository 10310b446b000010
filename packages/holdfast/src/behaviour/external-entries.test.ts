// Entries of external agents as the real command shows them. The program is a fake that speaks the protocol of the real one.

import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { ExternalProject } from "../testing/external-project.ts";
import type { Finished } from "../testing/holdfast-process.ts";

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
