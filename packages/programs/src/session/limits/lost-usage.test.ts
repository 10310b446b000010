// The usage of a turn whose supervising process is gone: it is found in the program's own record, or unknown.
// Programs that speak the protocols of the real ones write such records as these do.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { SessionCost } from "@holdfast/core";
import { createRuntime, MemoryStorage } from "@holdfast/runtime";
import { vanishRuntime } from "@holdfast/runtime/internal";
import { releaseClaim } from "@holdfast/testkit/test-runtime";
import { sampled } from "@holdfast/testkit/campaign";
import { afterEach, expect, test } from "vitest";

import type { IncludedName } from "../../included-programs.ts";
import { ExternalSession } from "../../testing/external-session.ts";
import { externalAgent } from "../external-agent.ts";
import { countRecorded } from "./recorded-usage.ts";

let place: ExternalSession;
afterEach(() => place.dispose());

/** A session over the program of `place`, whose process can vanish. */
class VanishingSession {
  readonly #storage = new MemoryStorage();
  #runtime = createRuntime({ storage: this.#storage });
  readonly #budget: Readonly<Record<string, number>>;

  constructor(budget: Readonly<Record<string, number>> = { maxTokens: 1_000_000 }) {
    this.#budget = budget;
  }

  get #agent() {
    const { protocol, folder } = place;
    return externalAgent(protocol, { folder, permissionModes: ["default"] });
  }

  async start(text: string): Promise<void> {
    await this.#runtime.start(this.#agent, text, { sessionId: "s", budget: this.#budget });
  }

  /** The process is gone, and another one takes the session. */
  async vanish(): Promise<void> {
    vanishRuntime(this.#runtime);
    await releaseClaim(this.#storage, "s");
    this.#runtime = createRuntime({ storage: this.#storage, agents: [this.#agent] });
  }

  async resume() {
    return this.#runtime.resume("s");
  }

  async #session() {
    return (await this.#storage.reader.session("s"))!;
  }

  /** Waits until the program has asked for a permission. */
  async asked(): Promise<void> {
    while ((await this.#session()).status !== "input_required") await delay(20);
  }

  /** The tokens that were charged. */
  async spent(): Promise<number> {
    return (await this.#session()).account!.spent.tokens;
  }

  async cost(): Promise<SessionCost> {
    return (await this.#session()).cost!;
  }

  /** The tokens that the program has recorded, of all its turns. */
  async recorded(): Promise<number> {
    const journal = await this.#storage.reader.journal("s", 0, 10_000);
    const text = JSON.stringify(journal);
    const [, agentSessionId = ""] = /agentSessionId[^\da-f]+([\da-f-]{36})/.exec(text) ?? [];
    const [, boundId = null] = /boundId[^\da-f]+([\da-f-]{36})/.exec(text) ?? [];
    const intent = { agentSessionId, folder: place.folder } as Parameters<typeof countRecorded>[1]["intent"];
    const { usage } = await countRecorded(place.protocol, { intent, boundId, from: 0, reported: [] });
    return usage.reduce((sum, { inputTokens, outputTokens }) => sum + inputTokens + outputTokens, 0);
  }

  close(): Promise<void> {
    return this.#runtime.close();
  }
}

/** The calls of its small model, which Claude Code reports and does not record. */
const ASIDE: Partial<Record<IncludedName, number>> = { "claude-code": 10 };

test.each<IncludedName>(sampled(["codex", "claude-code", "pi"]))(
  "%s: the calls of killed turns are charged once, also that which asked",
  async (name) => {
    place = new ExternalSession(name);
    const session = new VanishingSession();
    await session.start("write:a.txt ask:b.txt");
    await session.asked();
    await session.vanish();
    await session.resume();
    await session.asked();
    await session.vanish();
    const handle = await session.resume();
    await handle.answer({ approved: true });
    expect(await handle.result()).toContain("Done");
    expect(await session.spent()).toBe((await session.recorded()) + (ASIDE[name] ?? 0));
    const { inputTokens, outputTokens, unpriced } = await session.cost();
    expect([inputTokens + outputTokens, unpriced]).toEqual([await session.spent(), 0]);
    await session.close();
  },
);

test("a request that was under way at a kill, and a record that is gone, are unknown and not zero", async () => {
  place = new ExternalSession("codex");
  const session = new VanishingSession();
  await session.start("write:a.txt no-answer");
  while (!existsSync(join(place.home, "done-no_answer"))) await delay(20);
  await session.vanish();
  expect(await (await session.resume()).result()).toContain("Done");
  expect(await session.spent()).toBe(await session.recorded());
  expect(await session.cost()).toMatchObject({ unpriced: 1 });
  await session.close();
});

test("a turn of a killed agent without a record is unknown", async () => {
  place = new ExternalSession("opencode");
  const session = new VanishingSession({ maxTurns: 20 });
  await session.start("hang");
  while (place.lines("pids").length === 0) await delay(20);
  await session.vanish();
  expect(await (await session.resume()).result()).toContain("Done");
  // The turn that was killed, and the one after it.
  expect(await session.cost()).toMatchObject({ calls: 2, unpriced: 2, inputTokens: 0 });
  await session.close();
});
