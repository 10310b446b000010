// A turn whose record names a program, a mode or a profile of another machine.

import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HoldfastError } from "@holdfast/core";
import { afterEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";

import { ExternalSession } from "../../testing/external-session.ts";
import type { ChosenProgram, ExternalIntent } from "../external-agent-protocol.ts";
import { takeOwnIntent } from "./own-intent.ts";
import { takeProfile } from "./session-profile.ts";

describe("a session whose record was made elsewhere", () => {
  let session: ExternalSession;
  afterEach(() => session.dispose());

  test("the program of this machine runs, and not the one that the record names", ofCampaign, async () => {
    session = new ExternalSession("claude-code");
    await session.converse("hello");
    const { home, environment } = session;
    const ran = join(home, "ran");
    mkdirSync(join(home, "new"));
    const recorded = join(home, "bin", "claude");
    copyFileSync(recorded, join(home, "new", "claude"));
    writeFileSync(recorded, `#!/bin/sh\ntouch "${ran}"\n`);
    environment["PATH"] = `${join(home, "new")}:${environment["PATH"]}`;
    expect((await session.say("hello")).status).toBe("waiting");
    expect(session.lines("claude.log")).toHaveLength(2);
    expect(existsSync(ran)).toBe(false);
  });

  test(
    "settings and servers that this machine has not kept start no process, and a person decides",
    ofCampaign,
    async () => {
      session = new ExternalSession("claude-code", {
        rules: [],
        settings: { includeCoAuthoredBy: false },
        mcpServers: { notes: { command: "notes" } },
      });
      await session.converse("hello", { profile: "p" });
      expect(optionsOf(session)).toEqual(expect.arrayContaining(["--settings"]));
      const mirrors = join(session.home, "mirrors");
      for (const name of readdirSync(mirrors).filter((one) => one.startsWith("profile-")))
        rmSync(join(mirrors, name));
      expect((await session.say("hello")).status).toBe("input_required");
      expect(session.lines("claude.log")).toHaveLength(1);
      expect(await session.question()).toContain('the profile "p" was not taken on this machine');
      expect((await session.answer("continue")).status).toBe("waiting");
      expect(optionsOf(session)).not.toContain("--settings");
      expect((await session.say("hello")).status).toBe("waiting");
    },
  );
});

describe("the intent of a turn", () => {
  const intent: ExternalIntent = {
    agentSessionId: "s",
    folder: "/",
    program: "/elsewhere/claude",
    version: "1.0.0",
    model: null,
    permissionMode: "default",
  };
  const place = {
    protocol: { name: "claude-code", locate: () => "/here/claude" },
    permissionModes: ["default", "plan"] as const,
    mirrors: "/nowhere",
  };

  test("a permission mode that this machine does not offer is a loss, and its default takes the place", () => {
    const { losses, rights } = takeOwnIntent(place, { ...intent, permissionMode: "bypassPermissions" });
    expect(losses).toEqual([expect.stringContaining('"bypassPermissions" is not offered')]);
    expect(rights).toEqual({ permissionMode: "default" });
  });

  test.each([
    ["settings", { settings: '{"hooks":{}}', mcpFile: null }],
    ["a file with servers", { settings: null, mcpFile: "/project/servers.json" }],
    ["a program", { settings: null, mcpFile: null, program: "/elsewhere/claude" }],
    ["variables", { settings: null, mcpFile: null, variables: ["NODE_OPTIONS"] }],
  ])("a profile with %s from elsewhere is a loss, and is left out", (_what, fields) => {
    const { losses, rights } = takeOwnIntent(place, { ...intent, profile: { name: "p", ...fields } });
    expect(losses).toHaveLength(1);
    expect(rights).toEqual({ permissionMode: "default" });
  });

  test("the program of a profile that this machine has kept is located, and one of another machine is not", () => {
    const mirrors = mkdtempSync(join(tmpdir(), "holdfast-own-intent-"));
    try {
      const located: unknown[] = [];
      const protocol = {
        name: "claude-code",
        locate: (chosen?: ChosenProgram) => String(located.push(chosen?.program)),
        capabilities: () =>
          ({
            steer: "none",
            followUp: "none",
            resume: "id",
            usage: "none",
            model: true,
            profileFields: ["program"],
          }) as const,
      };
      const profile = { name: "p", agent: "claude-code", program: "/opt/claude", rules: [] };
      const { intended } = takeProfile(profile, protocol, ["default"], mirrors, []);
      takeOwnIntent({ ...place, protocol, mirrors }, { ...intent, profile: intended });
      const other = { ...intended, program: "/opt/other" };
      const { losses } = takeOwnIntent({ ...place, protocol, mirrors }, { ...intent, profile: other });
      expect(located).toEqual(["/opt/claude", undefined]);
      expect(losses).toHaveLength(1);
    } finally {
      rmSync(mirrors, { recursive: true });
    }
  });

  test("a program that is missing here is a loss, and the path of the record is not tried", () => {
    const locate = (): string => {
      throw new HoldfastError("program_missing", "there is no program");
    };
    const own = takeOwnIntent({ ...place, protocol: { name: "claude-code", locate } }, intent);
    expect(own.losses).toEqual(["there is no program"]);
  });

  test("nothing is lost where the record names what this machine has", () => {
    const own = takeOwnIntent(place, { ...intent, permissionMode: "plan" });
    expect(own).toEqual({
      intent: { ...intent, permissionMode: "plan", program: "/here/claude" },
      losses: [],
      rights: { permissionMode: "plan" },
    });
  });
});

function optionsOf(session: ExternalSession): readonly string[] {
  const { args } = JSON.parse(session.lines("claude.log").at(-1)!) as { readonly args: readonly string[] };
  return args;
}
