// A usage limit of an external agent's account, or a missing sign-in, pauses a session, and its work
// continues afterwards.

import { afterEach, expect, test } from "vitest";
import { ofCampaign, sampled } from "@holdfast/testkit/campaign";

import type { IncludedName } from "../../included-programs.ts";
import { ExternalSession } from "../../testing/external-session.ts";

let session: ExternalSession;
afterEach(() => session.dispose());

test.each<IncludedName>(sampled(["claude-code", "codex", "pi"]))(
  "a usage limit of %s is paused(quota) with its reset, and the turn continues after it",
  async (name) => {
    session = new ExternalSession(name);
    const soon = Math.floor(Date.now() / 1_000);
    const { status, pauseReason, quota, error } = await session.converse("write:a.txt limit:600");
    expect({ status, pauseReason }).toEqual({ status: "paused", pauseReason: "quota" });
    expect(quota?.pool).toBe(name);
    expect(quota?.resetsAt).toBeGreaterThanOrEqual((soon + 600) * 1_000);
    expect(quota?.resetsAt).toBeLessThan((soon + 660) * 1_000);
    expect(quota?.resumesAt).toBeUndefined();
    expect(error?.message).toContain("usage limit of its account");
    expect((await session.unpause()).status).toBe("waiting");
    expect(session.prompts()).toContain("ended by a limit of your account");
  },
);

test("a limit is waited for without a person where the input asks for that", ofCampaign, async () => {
  session = new ExternalSession("claude-code");
  const { quota } = await session.converse("limit:600", { resumeAtReset: true });
  expect(quota?.resumesAt).toBeGreaterThanOrEqual(quota!.resetsAt!);
});

test.each<[IncludedName, RegExp]>(
  sampled([
    ["claude-code", /\/login, or set ANTHROPIC_API_KEY, or .*`holdfast secret set ANTHROPIC_API_KEY`/],
    ["codex", /codex login/],
    ["pi", /pi/],
  ]),
)("a %s that nobody is signed in to is paused(auth_required), with the way to sign in", async (name, way) => {
  session = new ExternalSession(name);
  const { status, pauseReason, error } = await session.converse("logged-out");
  expect({ status, pauseReason }).toEqual({ status: "paused", pauseReason: "auth_required" });
  expect(error?.fix).toMatch(way);
  expect((await session.unpause()).status).toBe("waiting");
});
