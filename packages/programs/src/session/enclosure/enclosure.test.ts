// Sessions of external agents in the sandbox `bubblewrap`, over the fake programs.

import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";

import type { IncludedName } from "../../included-programs.ts";
import { ExternalSession } from "../../testing/external-session.ts";
import { ClaudeCode } from "../../adapters/claude-code/claude-code.ts";
import { customAgent } from "../../adapters/custom/custom-agent.ts";
import type { ExternalAgentProtocol, OwnFolders } from "../external-agent-protocol.ts";
import { knownAgent } from "../../external.ts";
import { harnessAgent } from "../../adapters/harness/harness-agent.ts";
import { openEnclosure } from "./enclosure.ts";

let session: ExternalSession;
afterEach(() => session?.dispose());
const SANDBOX = { sandbox: "bubblewrap" };
const IN_PROFILE = { ...SANDBOX, profile: "p" };
const OTHER = process.platform === "darwin" ? "bubblewrap" : "seatbelt";

/** Puts the fake beside the program, because the folder of this test is not seen in a sandbox. */
function open(name: IncludedName, program: string, source: string, folders?: OwnFolders): void {
  const places = { written: [] as string[], read: [] as string[] };
  session = new ExternalSession(name, folders && { rules: [], folders: places });
  for (const kind of ["written", "read"] as const)
    places[kind].push(...(folders?.[kind] ?? []).map((one) => join(session.home, one)));
  const bin = join(session.home, "bin");
  for (const file of [source, "fake-acts.mjs", "fake-session-tools.mjs"])
    copyFileSync(fileURLToPath(new URL(`../../testing/${file}`, import.meta.url)), join(bin, file));
  writeFileSync(join(bin, program), `#!/bin/sh\nexec "${process.execPath}" "${bin}/${source}" "$@"\n`);
}

// Without bubblewrap there is no sandbox.
describe.skipIf(!existsSync("/usr/bin/bwrap"))("a program in the sandbox", () => {
  test(
    "it changes its folder and keeps its sessions, and what it does elsewhere does not reach this machine",
    ofCampaign,
    async () => {
      open("claude-code", "claude", "fake-claude-code.mjs");
      writeFileSync(join(session.home, "secret"), "");
      await session.converse("write:a.txt write:../outside.txt env", SANDBOX);
      expect(readFileSync(join(session.folder, "a.txt"), "utf8")).toBe("x\n");
      expect(existsSync(join(session.home, "outside.txt"))).toBe(false);
      expect(session.files()).toHaveLength(1);
      expect((await session.say("write:b.txt session:report_progress:half")).status).toBe("waiting");
      expect(existsSync(join(session.folder, "b.txt"))).toBe(true);
      expect(JSON.stringify(await session.entries())).toContain("Done: write:b.txt");
    },
  );

  test("it is stopped with all that it started, and goes on after that", ofCampaign, async () => {
    open("claude-code", "claude", "fake-claude-code.mjs");
    await session.begin("write:a.txt stubborn", SANDBOX);
    while (!JSON.stringify(await session.entries().catch(() => [])).includes("sleep 1000")) await delay(20);
    await delay(300);
    await session.handle.signal("interrupt");
    await session.rest();
    await session.processesEnded();
    expect(JSON.stringify(await session.entries())).toContain("The user interrupted the turn.");
  });

  test.each<[IncludedName, string, string]>([
    ["codex", "codex", "fake-codex.mjs"],
    ["pi", "pi", "fake-pi.mjs"],
  ])("%s keeps its session, and resumes it", ofCampaign, async (name, program, source) => {
    open(name, program, source);
    await session.converse("write:a.txt", SANDBOX);
    expect(session.files()).toHaveLength(1);
    expect((await session.say("write:b.txt")).status).toBe("waiting");
    expect(session.files()).toHaveLength(1);
    expect(existsSync(join(session.folder, "b.txt"))).toBe(true);
  });

  test(
    "an agent of the Agent Client Protocol keeps its session in the folders of its profile",
    ofCampaign,
    async () => {
      open("opencode", "opencode", "fake-acp.mjs", { written: [".acp"], read: ["read-only"] });
      writeFileSync(join(session.home, "read-only"), "");
      await session.converse("write:a.txt write:../outside.txt write:../read-only", IN_PROFILE);
      expect(JSON.stringify(await session.entries())).toContain("EROFS");
      await session.say("write:b.txt session:report_progress:half");
      expect(JSON.stringify(await session.entries())).toContain("Done: write:b.txt");
      expect(readFileSync(join(session.folder, "b.txt"), "utf8")).toBe("x\n");
      expect(existsSync(join(session.home, "outside.txt"))).toBe(false);
      expect(readdirSync(join(session.home, ".acp"))).toHaveLength(1);
    },
  );
});

// A folder from an archive may hold such a file, which names any place of the machine.
test.skipIf(!existsSync("/usr/bin/bwrap"))("a file .git opens no folder that is no repository", async () => {
  const home = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-enclosure-")));
  try {
    const at = (...path: readonly string[]): string => join(home, ...path);
    for (const path of ["work", "private", "bare/objects", "bare/refs"])
      mkdirSync(at(path), { recursive: true });
    writeFileSync(at("bare/HEAD"), "ref: refs/heads/main\n");
    const seenFor = async (named: string): Promise<readonly string[]> => {
      writeFileSync(at("work/.git"), `gitdir: ${at(named)}\n`);
      const intent = { folder: at("work"), program: process.execPath, ...SANDBOX };
      const enclose = await openEnclosure(
        { name: "mine", ownFolders: () => ({ written: [], read: [] }) },
        intent,
      );
      return enclose!(["mine"], {});
    };
    expect(await seenFor("bare")).toContain(at("bare"));
    expect(await seenFor("private")).not.toContain(at("private"));
    writeFileSync(at("bare/commondir"), at("private"));
    expect(await seenFor("bare")).not.toContain(at("private"));
  } finally {
    rmSync(home, { recursive: true });
  }
});

test.each(["/", homedir(), join(homedir(), ".local"), join(homedir(), ".holdfast")])(
  "no program writes to %s, which holds what decides about rights",
  async (path) => {
    const intent = { folder: "/tmp", program: process.execPath, ...SANDBOX };
    const ownFolders = () => ({ written: [path], read: [] });
    await expect(openEnclosure({ name: "mine", ownFolders }, intent)).rejects.toThrow(
      `mine may not write to ${path} in a sandbox`,
    );
  },
);

const place = { folder: "/", program: process.execPath };
const command = ["mine"] as const;
const MINE = { name: "mine", protocol: "acp", command, resumes: true, folder: "/" } as const;

test.each<[string, ExternalAgentProtocol, string, string]>([
  ["a program whose folders are not known", customAgent(MINE), "bubblewrap", "own folders are not known"],
  ["a sandbox for commands", new ClaudeCode(MINE), "docker", 'cannot run in the sandbox "docker"'],
  ["a sandbox of another system", new ClaudeCode(MINE), OTHER, `the sandbox ${OTHER} cannot be used`],
])("%s is refused before a program starts", async (_what, protocol, sandbox, message) => {
  await expect(openEnclosure(protocol, { ...place, sandbox })).rejects.toThrow(message);
});

test("a program has the folders of its adapter and of its profile, and one of ours those that it needs", () => {
  const environment = { HOME: "/home/ada", XDG_DATA_HOME: "/data", OPENCODE_CONFIG: "/etc/oc.json" };
  const known = (name: string): ExternalAgentProtocol => knownAgent(name, { environment, folder: "/" })!;
  const folders = { written: ["/more"], read: ["/tools"] };
  expect(known("opencode").ownFolders?.({ folders })).toEqual({
    written: [
      "/home/ada/.config/opencode",
      "/data/opencode",
      "/home/ada/.cache/opencode",
      "/home/ada/.local/state/opencode",
      "/more",
    ],
    read: ["/etc/oc.json", "/tools"],
  });
  expect(known("gemini").ownFolders?.()?.written).toEqual(["/home/ada/.gemini"]);
  expect(known("claude-acp").ownFolders?.()).toEqual(known("claude-code").ownFolders?.());
  expect(known("codex-acp").ownFolders?.()).toEqual(known("codex").ownFolders?.());
  expect(customAgent({ ...MINE, folders }).ownFolders?.()).toEqual(folders);
  const harness = harnessAgent({ name: "h", module: "h.mjs", folder: "/work", environment, folders });
  expect(harness.ownFolders?.()?.written).toEqual([
    "/home/ada/.holdfast/harness-sessions",
    "/home/ada/.ai-sdk",
    "/more",
  ]);
  expect(harness.ownFolders?.()?.read).toEqual(expect.arrayContaining(["/work", "/tools"]));
});
