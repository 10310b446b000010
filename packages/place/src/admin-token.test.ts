// The file of the admin's token: made exclusively, and the token is revoked when it cannot be.

import { chmodSync, lstatSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createCoordinator, type Coordinator } from "@holdfast/coordinator";
import { clockFor, firingName, MemoryStorage, readCron, systemRandom } from "@holdfast/runtime";
import { keepAdminToken } from "./admin-token.ts";
import { checkTrusted } from "@holdfast/terminal/frame/given-file";

let folder: string;
let coordinator: Coordinator;
let made: string[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-admin-"));
  const storage = new MemoryStorage();
  coordinator = createCoordinator({
    storage,
    clock: clockFor(storage),
    random: systemRandom(),
    schedules: { readCron, firingName },
    config: {},
  });
  made = [];
});
afterEach(async () => {
  await coordinator.close();
  rmSync(folder, { recursive: true, force: true });
});

/** The coordinator, and every token it makes noted. */
function watched(): Parameters<typeof keepAdminToken>[0] {
  return {
    createToken: async (token) => {
      const text = await coordinator.createToken(token);
      made.push(text);
      return text;
    },
    isAdminToken: (text) => coordinator.isAdminToken(text),
    revokeToken: (text) => coordinator.revokeToken(text),
  };
}

test("a file without a token of a coordinator is not changed, and no token is made", async () => {
  const [path, other] = [join(folder, "admin-token"), join(folder, "other")];
  writeFileSync(other, "of somebody");
  for (const plant of [
    () => writeFileSync(path, "a list of things to do"),
    () => symlinkSync(other, path),
    () => symlinkSync(join(folder, "missing"), path),
  ]) {
    plant();
    await expect(keepAdminToken(watched(), folder)).rejects.toMatchObject({
      code: "config_invalid",
      at: path,
    });
    rmSync(path);
  }
  expect(made).toEqual([]);
  expect(readFileSync(other, "utf8")).toBe("of somebody");
});

test("a token of an earlier database is replaced by a new file", async () => {
  const path = join(folder, "admin-token");
  writeFileSync(path, "hf_adm_of_another\n", { mode: 0o644 });
  expect(await keepAdminToken(watched(), folder)).toEqual({ path, isNew: true });
  expect(lstatSync(path).mode & 0o777).toBe(0o600);
  expect(await coordinator.isAdminToken(readFileSync(path, "utf8").trim())).toBe(true);
});

test("a token whose file cannot be written is good for nothing", async () => {
  chmodSync(folder, 0o777);
  await expect(keepAdminToken(watched(), folder)).rejects.toMatchObject({ code: "config_invalid" });
  expect(made).toHaveLength(1);
  expect(await coordinator.isAdminToken(made[0]!)).toBe(false);
});

test("a file to read a token from is refused when others may write it, and warned of when they may read it", () => {
  const [file, link] = [join(folder, "token"), join(folder, "link")];
  writeFileSync(file, "hf_usr_1", { mode: 0o600 });
  symlinkSync(file, link); // As the secrets of containers are.
  const warnings: string[] = [];
  const check = () => checkTrusted(link, (warning) => warnings.push(warning));
  check();
  expect(warnings).toEqual([]);
  chmodSync(file, 0o644);
  check();
  expect(warnings).toEqual([expect.stringContaining("chmod 600")]);
  chmodSync(file, 0o666);
  expect(check).toThrow(expect.objectContaining({ code: "config_invalid", at: link }));
});
