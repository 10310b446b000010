import { chmodSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { HoldfastError } from "@holdfast/core";
import { CONFIG_SCHEMA, readConfig, type Config } from "./config.ts";

test("docs/config.schema.json is what the code reads files by", () => {
  const published: unknown = JSON.parse(
    readFileSync(new URL("../../../../docs/config.schema.json", import.meta.url), "utf8"),
  );
  expect(published).toEqual(CONFIG_SCHEMA);
});

// Files are checked for exactly this; a setting of another type needs another check first.
test("every setting is a text that is not empty, a list of them or a truth value, and nothing else may stand in a file", () => {
  const { trace, strictBounds, commandNamespace, ...others } = CONFIG_SCHEMA.properties;
  for (const setting of [strictBounds, commandNamespace])
    expect(setting).toEqual({ type: "boolean", description: expect.any(String) });
  for (const setting of Object.values(others))
    expect(setting).toEqual({ type: "string", minLength: 1, description: expect.any(String) });
  expect(trace).toMatchObject({ type: ["string", "array"], items: { type: "string", minLength: 1 } });
  expect(CONFIG_SCHEMA.additionalProperties).toBe(false);
});

test("a file may be empty and begin with a byte-order mark; what is too large, or no file, is not read", () => {
  const path = join(mkdtempSync(join(tmpdir(), "holdfast-config-")), "config.json");
  const readAs = (text: string): Config => {
    writeFileSync(path, text);
    return readConfig(path);
  };
  expect(readAs("")).toEqual({});
  expect(readAs('\uFEFF{ "db": "x.db" }\r\n')).toEqual({ db: "x.db" });
  expect(() => readAs(" ".repeat(2_000_000))).toThrow("2000000 bytes");
  expect(() => readConfig("/dev/null")).toThrow("not a file");
  expect(readAs('{ "strictBounds": true }')).toEqual({ strictBounds: true });
  for (const wrong of ['"true"', "1", "null", "[true]"])
    expect(() => readAs(`{ "strictBounds": ${wrong} }`)).toThrow('"strictBounds" is not true or false');
  expect(() => readAs('"\ud800"')).toThrow("not a JSON object");
  writeFileSync(path, Buffer.from([0x22, 0xe9, 0x22]));
  expect(() => readConfig(path)).toThrow("not UTF-8");
  for (const text of ['{"db": {"password": "hunter2"}}', "hunter2", '{"db": hunter2}']) {
    const error = refusalOf(() => readAs(text));
    expect(error.code).toBe("config_invalid");
    expect(JSON.stringify([error.message, error.got])).not.toContain("unter2");
  }
});

test("a file that other users may write is refused with its mode and the command that helps, also through a link", () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast config-"));
  const [file, link] = [join(folder, "config.json"), join(folder, "link.json")];
  writeFileSync(file, '{ "db": "x.db" }');
  symlinkSync(file, link);
  chmodSync(file, 0o644);
  expect(readConfig(link)).toEqual({ db: "x.db" });
  chmodSync(file, 0o646);
  for (const path of [file, link])
    expect(refusalOf(() => readConfig(path))).toMatchObject({
      code: "config_invalid",
      message: `other users may write the file ${path}`,
      at: path,
      got: expect.stringContaining("mode 646"),
      fix: `run chmod go-w '${path}'`,
    });
});

function refusalOf(read: () => unknown): HoldfastError {
  try {
    read();
  } catch (error) {
    return error as HoldfastError;
  }
  throw new Error("it was taken");
}
