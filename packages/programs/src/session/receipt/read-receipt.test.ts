// Receipts that name files of others: no copy is made of them, and none is put in their place.

import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createHash } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";

import { ClaudeCode } from "../../adapters/claude-code/claude-code.ts";
import type { ExternalIntent } from "../external-agent-protocol.ts";
import { checkReceipt, takeReceipt } from "./read-receipt.ts";
import { Workspaces } from "./read-workspace.ts";
import { SessionFiles } from "./session-files.ts";
import type { RestoreReceipt } from "./restore-receipt.ts";

const ID = "01a21d4a-0000-4000-8000-000000000000";
const CONTENT = "the session\n";
let home: string;
let mirrors: string;
let sessions: string;
beforeEach(() => {
  home = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-receipt-")));
  mirrors = join(home, "data/mirrors");
  sessions = join(home, ".claude/projects");
  for (const folder of [mirrors, sessions, join(home, "project"), join(home, "outside")])
    mkdirSync(folder, { recursive: true, mode: 0o700 });
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const place = () => ({
  protocol: new ClaudeCode({ environment: { HOME: home, PATH: "/usr/bin:/bin" }, folder: home }),
  mirrors,
  workspaces: new Workspaces(),
  sessionFiles: new SessionFiles(),
});
const intentOf = (agentSessionId: string): ExternalIntent => ({
  agentSessionId,
  folder: join(home, "project"),
  program: "/bin/true",
  version: "2.1.0",
  model: null,
  permissionMode: "default",
});
const receiptOf = (path: string): RestoreReceipt => ({
  version: 1,
  sandbox: "none",
  permissionMode: "default",
  model: null,
  program: null,
  mcpFiles: {},
  environment: {},
  workspace: null,
  sessionFile: {
    path,
    bytes: CONTENT.length,
    sha256: createHash("sha256").update(CONTENT).digest("hex"),
    isMirrored: true,
  },
});

/** Checks a receipt whose copy is there. @returns the file that was put back. */
async function putBack(path: string, copy = CONTENT): Promise<string | undefined> {
  writeFileSync(join(mirrors, ID), copy);
  const session = { intent: intentOf(ID), boundId: null };
  return (await checkReceipt(place(), session, receiptOf(path))).putBack;
}

test("a missing session file is put back", async () => {
  const path = join(sessions, "-p", `${ID}.jsonl`);
  expect(await putBack(path)).toBe(path);
});

test("session-files-2: bytes behind those of the receipt, as a crash leaves them, are no part of the copy", async () => {
  const path = join(sessions, "-p", `${ID}.jsonl`);
  expect(await putBack(path, `${CONTENT}more`)).toBe(path);
  expect(readFileSync(path, "utf8")).toBe(CONTENT);
});

test("read-receipt-3: no file is put back outside of the sessions of the program", async () => {
  for (const path of [
    join(home, "outside", `${ID}.jsonl`),
    `${sessions}/../../outside/${ID}.jsonl`,
    join(sessions, "-p/settings.json"),
    `${sessions}-other/${ID}.jsonl`,
  ])
    expect(await putBack(path), path).toBeUndefined();
  expect(readdirSync(join(home, "outside"))).toEqual([]);
});

test("read-receipt-3: a link among the folders leads no file out of them", async () => {
  symlinkSync(join(home, "outside"), join(sessions, "-p"));
  expect(await putBack(join(sessions, "-p", `${ID}.jsonl`))).toBeUndefined();
  expect(await putBack(join(sessions, "-p/deeper", `${ID}.jsonl`))).toBeUndefined();
  expect(readdirSync(join(home, "outside"))).toEqual([]);
});

test("read-receipt-3: the folder of the sessions may itself be a link", async () => {
  rmSync(sessions, { recursive: true });
  symlinkSync(join(home, "outside"), sessions);
  const path = join(sessions, "-p", `${ID}.jsonl`);
  expect(await putBack(path)).toBe(path);
});

test("read-receipt-3: no copy is made of another file, or under another name", async () => {
  const secret = join(home, "outside/secret");
  writeFileSync(secret, CONTENT);
  const last = receiptOf(secret);
  const taken = await takeReceipt(place(), { intent: intentOf(ID), boundId: null }, last);
  expect(taken.sessionFile).toBeNull();
  const path = `${sessions}/-p/../victim.jsonl`;
  writeFileSync(join(sessions, "victim.jsonl"), CONTENT);
  mkdirSync(join(sessions, "-p"));
  await takeReceipt(place(), { intent: intentOf("../victim"), boundId: null }, receiptOf(path));
  expect(existsSync(join(home, "data/victim"))).toBe(false);
  expect(readdirSync(mirrors)).toEqual([]);
});
