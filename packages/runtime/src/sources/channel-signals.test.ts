import { describe, expect, test } from "vitest";
import type { IncomingSignal } from "@holdfast/core";
import { channelSignals } from "./channel-signals.ts";
import { defineAgent } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime } from "../runtime.ts";

describe("channelSignals", () => {
  test("a signal sent through it reaches the agent", async () => {
    const channel = channelSignals();
    const runtime = createRuntime({ storage: new MemoryStorage(), signals: [channel] });
    const agent = defineAgent({ name: "listener", run: (ctx) => ctx.waitForSignal("go") });
    const session = await runtime.start(agent);

    const receipt = await channel.send({ sessionId: session.sessionId, name: "go", payload: { version: 2 } });

    expect(receipt).toEqual({ status: "stored" });
    expect(await session.result()).toEqual({ version: 2 });
    await runtime.close();
  });

  test("signals that are sent before a runtime listens wait in their order", async () => {
    const channel = channelSignals();
    const seen: string[] = [];
    const first = channel.send({ sessionId: "s", name: "first" });
    const second = channel.send({ sessionId: "s", name: "second" });

    void channel.open(async ({ name }: IncomingSignal) => {
      seen.push(name);
      return { status: "stored" };
    });
    const third = channel.send({ sessionId: "s", name: "third" });

    const stored = { status: "stored" };
    expect(await Promise.all([first, second, third])).toEqual([stored, stored, stored]);
    expect(seen).toEqual(["first", "second", "third"]);
  });

  test("a signal is refused after the channel was closed, also if it waited for the opening", async () => {
    const channel = channelSignals();
    const runtime = createRuntime({ storage: new MemoryStorage(), signals: [channel] });
    await runtime.close();

    expect(await channel.send({ sessionId: "s", name: "late" })).toMatchObject({ status: "refused" });
  });

  test("a sender gets the error for a session that does not exist", async () => {
    const channel = channelSignals();
    const runtime = createRuntime({ storage: new MemoryStorage(), signals: [channel] });

    const receipt = await channel.send({ sessionId: "nobody", name: "go" });

    expect(receipt).toEqual({ status: "refused", reason: "there is no session nobody" });
    await runtime.close();
  });
});
