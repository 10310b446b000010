// An external agent as the child of an agent in code.

import { mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRuntime, defineAgent, MemoryStorage } from "@holdfast/runtime";
import { afterEach, expect, test } from "vitest";

import { external } from "./external.ts";
import { fakeOf, installFake } from "./testing/fake-program.ts";

const home = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-external-")));
afterEach(() => rmSync(home, { recursive: true, force: true }));

test("spawnAgent takes an external agent with its prompt, and the child's answer is its result", async () => {
  const environment = installFake(home, fakeOf("claude-code"));
  const model = "claude-opus-5-5";
  const coder = external({
    agent: "claude-code",
    folder: home,
    permissionMode: "acceptEdits",
    model,
    environment,
  });
  const lead = defineAgent({
    name: "lead",
    agents: [coder],
    run: async (ctx) => ctx.waitForChild(ctx.spawnAgent(coder, "think")),
  });
  const runtime = createRuntime({ storage: new MemoryStorage() });
  try {
    const handle = await runtime.start(lead, null);
    expect(await handle.result()).toBe("Done: think");
    const { args } = JSON.parse(readFileSync(join(home, "claude.log"), "utf8")) as {
      args: readonly string[];
    };
    expect(args[args.indexOf("--model") + 1]).toBe(model);
  } finally {
    await runtime.close();
  }
});

test("a sandbox that cannot be used fails a session that asks for none itself", async () => {
  const enclosed = external({
    agent: "claude-code",
    folder: home,
    sandbox: "none-such",
    environment: installFake(home, fakeOf("claude-code")),
  });
  const runtime = createRuntime({ storage: new MemoryStorage() });
  try {
    await expect((await runtime.start(enclosed, "think")).result()).rejects.toThrow(/none-such/);
  } finally {
    await runtime.close();
  }
});

test.each([{ workspace: "worktree" }, { worktree: true }])(
  "a session that asks for %o is refused with the way to one",
  async (choice) => {
    const environment = installFake(home, fakeOf("claude-code"));
    const coder = external({ agent: "claude-code", folder: home, environment });
    const runtime = createRuntime({ storage: new MemoryStorage() });
    try {
      const asked = runtime.start(coder, { text: "think", ...choice });
      await expect(asked).rejects.toMatchObject({
        code: "invalid_input",
        message: expect.stringMatching(
          /have no worktree.*local\("claude-code"\).*holdfast up --agents claude-code/,
        ),
      });
      await expect(runtime.start(coder, { text: "think", colour: "red" })).rejects.toThrow(
        /Unrecognized key: "colour"/,
      );
    } finally {
      await runtime.close();
    }
  },
);

test("a name, a mode and a model that are not known are refused", () => {
  // @ts-expect-error -- the name is no known one.
  expect(() => external({ agent: "clod", folder: home })).toThrow('no external agent "clod"');
  expect(() => external({ agent: "gemini", folder: home, permissionMode: "yolo" })).toThrow(
    'gemini has no permission mode "yolo"',
  );
  expect(() => external({ agent: "gemini", folder: home, model: "gemini-9" })).toThrow(
    "gemini takes no model",
  );
});
