import { chmodSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { SecretFile } from "./secret-file.ts";

const CANARY = 'sk-CANARY-0123 "é" \n end';
const material = () => "correct horse";

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-secrets-"));
  path = join(folder, "new", "secrets.json");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function stored(): Promise<SecretFile> {
  const file = new SecretFile(path);
  await file.set("API_KEY", CANARY, "key_file", material);
  await file.set("OTHER", "another value", "key_file", material);
  return file;
}

type Content = { secrets: Record<string, { text: string; nonce: string }>; check: object; version: number };
function edit(change: (content: Content) => void): void {
  const content = JSON.parse(readFileSync(path, "utf8")) as Content;
  change(content);
  writeFileSync(path, JSON.stringify(content));
}

test("a value survives its process, and its file holds no part of it", async () => {
  await stored();
  const text = readFileSync(path, "utf8");
  expect(text).not.toContain("CANARY");
  expect(text).not.toContain(Buffer.from(CANARY).toString("base64").slice(0, 12));
  expect([statSync(path).mode & 0o777, readdirSync(join(folder, "new"))]).toEqual([0o600, ["secrets.json"]]);
  const again = new SecretFile(path);
  expect(again.names).toEqual(["API_KEY", "OTHER"]);
  expect(await again.get("API_KEY", material)).toBe(CANARY);
  expect(await again.get("NONE", () => expect.fail("no key is needed"))).toBeUndefined();
});

test("a passphrase opens the file that it made, in any form of Unicode, and another one does not", async () => {
  const [composed, decomposed] = ["caf\u00e9 horse", "cafe\u0301 horse"];
  await new SecretFile(path).set("API_KEY", CANARY, "passphrase", () => composed);
  expect(await new SecretFile(path).get("API_KEY", () => decomposed)).toBe(CANARY);
  const wrong = new SecretFile(path).get("API_KEY", () => "cafe horse");
  await expect(wrong).rejects.toMatchObject({ code: "secret_key" });
});

test("two values that are equal have different ciphertexts", async () => {
  const file = await stored();
  await file.set("COPY", CANARY, "key_file", material);
  const { secrets } = JSON.parse(readFileSync(path, "utf8")) as Content;
  expect(secrets["COPY"]!.text).not.toBe(secrets["API_KEY"]!.text);
  expect(secrets["COPY"]!.nonce).not.toBe(secrets["API_KEY"]!.nonce);
});

test("a name is deleted without the key", async () => {
  await stored();
  expect([new SecretFile(path).delete("API_KEY"), new SecretFile(path).delete("API_KEY")]).toEqual([
    true,
    false,
  ]);
  expect(new SecretFile(path).names).toEqual(["OTHER"]);
});

describe("a wrong key or a changed file gives no value", () => {
  test("another key is refused, also for a new value", async () => {
    await stored();
    const refused = expect.objectContaining({ code: "secret_key", at: path });
    await expect(new SecretFile(path).get("API_KEY", () => "wrong")).rejects.toEqual(refused);
    const before = readFileSync(path);
    await expect(new SecretFile(path).set("NEW", "value", "key_file", () => "wrong")).rejects.toEqual(
      refused,
    );
    expect(readFileSync(path)).toEqual(before);
  });

  test("a value that was moved to another name is refused", async () => {
    await stored();
    edit(({ secrets }) => (secrets["OTHER"] = secrets["API_KEY"]!));
    const moved = new SecretFile(path).get("OTHER", material);
    await expect(moved).rejects.toMatchObject({
      code: "config_invalid",
      message: expect.stringContaining("OTHER"),
    });
  });

  test("a changed byte is refused", async () => {
    await stored();
    edit(({ secrets }) => (secrets["OTHER"]!.text = Buffer.from("another vaiue").toString("base64")));
    await expect(new SecretFile(path).get("OTHER", material)).rejects.toMatchObject({
      code: "config_invalid",
    });
  });
});

describe("a file that cannot be used is named and not changed", () => {
  test.each([
    ["that is empty", ""],
    ["that is no JSON", "{"],
    ["without a version", '{"key":"passphrase","salt":"00","check":{},"secrets":{}}'],
    [
      "with a name that is none",
      '{"version":1,"key":"passphrase","salt":"00","check":{"nonce":"","tag":"","text":""},"secrets":{"a b":{}}}',
    ],
  ])("a file %s is refused", (_what, text) => {
    path = join(folder, "secrets.json");
    writeFileSync(path, text);
    expect(() => new SecretFile(path)).toThrow(expect.objectContaining({ code: "config_invalid", at: path }));
    expect(readFileSync(path, "utf8")).toBe(text);
  });

  test("a file that other users may write is refused", async () => {
    await stored();
    chmodSync(path, 0o602);
    expect(() => new SecretFile(path)).toThrow("other users may write it");
  });

  test("a folder at its path is refused", () => {
    expect(() => new SecretFile(folder)).toThrow("it is not a file");
  });
});
