import { chmodSync, existsSync, mkdtempSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { TokenFile } from "./token-file.ts";

const IDENTITY = { url: "http://127.0.0.1:8765", project: "/p", name: "default" };

describe("a runner's token", () => {
  test("a token is kept for its coordinator, project and name, readable for this user alone", () => {
    const folder = newFolder();
    const file = new TokenFile(folder, IDENTITY);
    expect(file.read()).toBeUndefined();
    file.write("hf_rnr_1");
    chmodSync(file.path, 0o644);
    file.write("hf_rnr_2");
    expect(statSync(file.path).mode & 0o777).toBe(0o600);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    file.close();
    const again = new TokenFile(folder, IDENTITY);
    expect(again.read()).toBe("hf_rnr_2");
    for (const other of [{ url: "https://x" }, { project: "/q" }, { name: "b" }])
      expect(new TokenFile(folder, { ...IDENTITY, ...other }).read()).toBeUndefined();
    expect(readdirSync(folder).filter((name) => name.includes(String(process.pid)))).toEqual([]);
  });

  test("a token belongs to one process at a time, and to no process once that one is dead", () => {
    const folder = newFolder();
    const first = new TokenFile(folder, IDENTITY);
    expect(() => new TokenFile(folder, IDENTITY)).toThrow(/is this runner already/);
    first.close();
    expect(readdirSync(folder)).toEqual([]);
    const second = new TokenFile(folder, IDENTITY);
    const [lock] = readdirSync(folder).filter((name) => name.endsWith(".pid"));
    // A process that was killed, and a process with the same number in an earlier life of the container.
    for (const dead of ["4194304 x", `${process.pid} another-life`, "", "nonsense"]) {
      writeFileSync(join(folder, lock!), dead);
      expect(new TokenFile(folder, IDENTITY).read()).toBeUndefined();
    }
    writeFileSync(join(folder, lock!), "1 init");
    expect(() => new TokenFile(folder, IDENTITY)).toThrow(/process 1 is this runner already/);
    second.close(); // It is another's now.
    expect(existsSync(join(folder, lock!))).toBe(true);
  });

  test("that is damaged is named, not passed over", () => {
    const file = new TokenFile(newFolder(), IDENTITY);
    for (const text of ["", "{", "null", '{"token":7}', '{"token":""}']) {
      writeFileSync(file.path, text);
      expect(() => file.read()).toThrow(/holds no token/);
    }
  });
});

function newFolder(): string {
  return join(mkdtempSync(join(tmpdir(), "holdfast-token-")), "runners");
}
