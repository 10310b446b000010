// Secrets from a real process to its real child.

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { openSync } from "node:fs";
import type { Writable } from "node:stream";
import { text } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { ofCampaign, sampled } from "@holdfast/testkit/campaign";
import { readSecretsFromPipe, writeSecrets } from "./secret-pipe.ts";

const CANARY = 'sk-CANARY-"é\n0123';
const LIBRARY = new URL("secret-pipe.ts", import.meta.url).href;

/** Reads the secrets, and shows what another process could see of this one, and whether the pipe is still open. */
const CHILD = `
  const { readSecretsFromPipe } = await import(${JSON.stringify(LIBRARY)});
  const { readFileSync, readdirSync, readlinkSync } = await import("node:fs");
  const isPipe = (fd) => {
    try { return /^(pipe|socket):/.test(readlinkSync("/proc/self/fd/" + fd)); } catch { return false; }
  };
  try {
    const secrets = await readSecretsFromPipe(3, 10_000);
    const seen = readFileSync("/proc/self/cmdline", "latin1") + readFileSync("/proc/self/environ", "latin1");
    const isSeen = [...secrets.values()].some((value) => seen.includes(value));
    const pipes = readdirSync("/proc/self/fd").filter((fd) => Number(fd) > 2 && isPipe(fd));
    console.log(JSON.stringify({ secrets: [...secrets], isSeen, isOpen: pipes.includes("3") }));
  } catch (error) {
    console.log(JSON.stringify({ code: error.code, message: error.message, stack: error.stack }));
  }
`;

function startChild(): {
  readonly child: ChildProcess;
  readonly pipe: Writable;
  readonly said: Promise<string>;
} {
  const child = spawn(process.execPath, ["--input-type=module", "-e", CHILD], {
    stdio: ["ignore", "pipe", "inherit", "pipe"],
  });
  return { child, pipe: child.stdio[3] as Writable, said: text(child.stdout!) };
}

describe("a child process", () => {
  test("a child has the values of its parent, and nobody can see them", ofCampaign, async () => {
    const { child, pipe, said } = startChild();
    const values = new Map([
      ["API_KEY", CANARY],
      ["OTHER", "another value"],
    ]);
    await writeSecrets(pipe, values);
    await once(child, "exit");
    const { secrets, isSeen, isOpen } = JSON.parse(await said) as Record<string, unknown>;
    expect(new Map(secrets as [string, string][])).toEqual(values);
    expect({ isSeen, isOpen }).toEqual({ isSeen: false, isOpen: false });
  });

  test.each(
    sampled([
      ["half a message", '{"version":1,"secrets":{"API_KEY":"sk-CANARY'],
      ["a message of another version", '{"version":2,"secrets":{"API_KEY":"sk-CANARY"}}'],
      ["a value that is no text", '{"version":1,"secrets":{"API_KEY":["sk-CANARY"]}}'],
      ["nothing", ""],
      ["more than a mebibyte", `"sk-CANARY${"x".repeat(1024 * 1024)}"`],
    ]),
  )("a child that is sent %s says so without any of it", async (_what, message) => {
    const { child, pipe, said } = startChild();
    pipe.on("error", () => {}); // The child may close its end before it has read everything.
    pipe.end(message);
    await once(child, "exit");
    const answer = await said;
    expect(JSON.parse(answer)).toMatchObject({ code: "config_invalid" });
    expect(answer).not.toContain("CANARY");
  });
});

test("a file descriptor that is no pipe is refused", async () => {
  const fd = openSync("/dev/null", "r");
  await expect(readSecretsFromPipe(fd)).rejects.toMatchObject({
    code: "config_invalid",
    at: `file descriptor ${fd}`,
  });
});

test("a parent that never ends the pipe is waited for only so long", ofCampaign, async () => {
  const holder = spawn(process.execPath, ["--input-type=module", "-e", CHILD.replace("10_000", "50")], {
    stdio: ["ignore", "pipe", "inherit", "pipe"],
  });
  const said = await text(holder.stdout!);
  expect(JSON.parse(said)).toMatchObject({
    code: "config_invalid",
    message: expect.stringContaining("50 ms"),
  });
});

test("a child that has gone is an error of the parent's write, and not of its process", async () => {
  const child = spawn("true", { stdio: ["ignore", "ignore", "ignore", "pipe"] });
  await once(child, "exit");
  const big = new Map([["API_KEY", "x".repeat(900_000)]]);
  await expect(writeSecrets(child.stdio[3] as Writable, big)).rejects.toThrow();
});
