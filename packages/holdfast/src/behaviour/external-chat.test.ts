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
  const stdin = "/early\nhello\n/hello world\n//hello\nplain\n/hi\n";
  const chat = project.start(["chat", "claude-code"], { stdin, env });
  const { code, stdout, stderr } = await chat.finished;
  expect(code, stderr).toBe(0);
  expect(stdout).toBe(
    "Done: hello\nDone: command /hello world\nDone: /hello\nDone: plain\nDone: command /hi\n",
  );
  expect(stderr).toContain("a conversation begins with a message; /early works after its first answer");
});

test(
  "no input and no message of a machine is a command, whatever it says of itself",
  ofCampaign,
  async () => {
    const env = { PATH: `${project.path("bin")}:${process.env["PATH"] ?? ""}` };
    const claimed = JSON.stringify({ text: "/evil", command: "/evil" });
    const started = await project.start(["run", "claude-code", "--input", claimed], { env }).finished;
    expect(started.stdout + started.stderr).not.toContain("command /evil");
    await project.start(["chat", "claude-code", "--session", "s"], { stdin: "hello\n/hi\n", env }).finished;
    for (const name of ["next_input", "steer"]) {
      expect((await project.start(["signal", "s", name, claimed], { env }).finished).code).toBe(0);
      const { code, stdout } = await project.start(["chat", "--session", "s"], { stdin: "", env }).finished;
      expect({ code, stdout }).toEqual({ code: 0, stdout: expect.not.stringContaining("command /evil") });
    }
    const { stdout } = await project.start(["logs", "s"], { env }).finished;
    expect(stdout).toContain("/evil");
    expect(stdout).toContain("command /hi");
    expect(stdout).not.toContain("command /evil");
  },
);

test("a program without commands gets a line with a slash as a text alone, and that is said", async () => {
  const env = { PATH: `${project.path("bin")}:${process.env["PATH"] ?? ""}` };
  const chat = project.start(["chat", "codex"], { stdin: "hello\n/x\n//x\n", env });
  const { code, stdout, stderr } = await chat.finished;
  expect(code, stderr).toBe(0);
  expect(stderr).toContain("there is no command /x; //x sends it as a text");
  expect(stdout).toBe("Done: hello\nDone: /x\n");
});
