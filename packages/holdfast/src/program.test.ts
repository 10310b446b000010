// The SDK in a program of its own process.

import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

/** What a program prints, and how it ends. */
function runProgram(text: string): Promise<{ code: number | null; output: string }> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, ["--input-type=module", "--eval", text], { cwd: ROOT });
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (piece: string) => void (output += piece));
    child.on("close", (code) => resolve({ code, output }));
  });
}

test("after the result nothing of ours keeps a program alive, also when its agent used timers and waits", async () => {
  const { code, output } = await runProgram(`
    import { createRuntime, defineAgent, MemoryStorage } from "holdfast";
    const agent = defineAgent({ name: "waits", run: async (ctx) => {
      await ctx.sleep(5);
      await ctx.waitForSignal("go");
      return "done";
    } });
    const runtime = createRuntime({ storage: new MemoryStorage() });
    const session = await runtime.start(agent);
    await session.signal("go");
    console.log(await session.result(), process.getActiveResourcesInfo().filter((what) => what === "Timeout"));
  `);
  expect({ code, output }).toEqual({ code: 0, output: "done []\n" });
});

test("a signal to no session is refused by an error, as everything else is", async () => {
  const { code, output } = await runProgram(`
    import { createRuntime, MemoryStorage } from "holdfast";
    const runtime = createRuntime({ storage: new MemoryStorage() });
    for (const ask of [() => runtime.signal("nosuch", "go"), () => runtime.answer("nosuch", {}), () => runtime.cancel("nosuch")])
      await ask().then(() => console.log("stored"), (error) => console.log(error.code));
  `);
  expect({ code, output }).toEqual({ code: 0, output: "session_not_found\n".repeat(3) });
});
