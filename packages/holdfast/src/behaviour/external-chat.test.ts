// `holdfast chat` with a coding agent, by the real command. The program is a fake that speaks the protocol of the
// real one.

import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { ExternalProject } from "../testing/external-project.ts";

let project: ExternalProject;
beforeEach(() => void (project = new ExternalProject()));
afterEach(() => project.dispose());

test("chat is a conversation with one process of the program", ofCampaign, async () => {
  const chat = project.start(["chat", "claude-code", "--session", "s"], {
    stdin: "write:a.txt\nwrite:b.txt\n",
    env: { PATH: `${project.path("bin")}:${process.env["PATH"] ?? ""}` },
  });
  const { code, stdout, stderr } = await chat.finished;
  expect(code, stderr).toBe(0);
  expect(stdout).toBe("Done: write:a.txt\nDone: write:b.txt\n");
  expect(project.starts().map(({ args }) => args.at(-2))).toEqual(["--session-id"]);
});

test("a line with a slash is a command of the program, and with two slashes a text", async () => {
  const env = { PATH: `${project.path("bin")}:${process.env["PATH"] ?? ""}` };
  const chat = project.start(["chat", "claude-code"], { stdin: "/hello world\n//hello\nplain\n/hi\n", env });
  const { code, stdout, stderr } = await chat.finished;
  expect(code, stderr).toBe(0);
  expect(stdout).toBe("Done: command /hello world\nDone: /hello\nDone: plain\nDone: command /hi\n");
});

test("a program without commands gets a line with a slash as a text alone, and that is said", async () => {
  const env = { PATH: `${project.path("bin")}:${process.env["PATH"] ?? ""}` };
  const chat = project.start(["chat", "codex"], { stdin: "hello\n/x\n//x\n", env });
  const { code, stdout, stderr } = await chat.finished;
  expect(code, stderr).toBe(0);
  expect(stderr).toContain("there is no command /x; //x sends it as a text");
  expect(stdout).toBe("Done: hello\nDone: /x\n");
});
