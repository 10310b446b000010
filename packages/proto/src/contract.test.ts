// `buf` checks the rules of the contract without a network: imported files are vendored.

import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { getOption, hasOption } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import * as proto from "./index.ts";

const home = fileURLToPath(new URL("..", import.meta.url));
const METHODS = proto.SERVICES.flatMap((service) => service.methods);

describe("the contract", () => {
  it("the contract passes `buf lint`", () => expect(buf("lint")).toBe(""));

  it("the contract is formatted", () =>
    expect(buf("format", "--diff", "--exit-code", "--path", "proto/holdfast")).toBe(""));

  it("the contract breaks no client that was built against `baseline.binpb`", () => {
    expect(buf("breaking", "--against", "baseline.binpb")).toBe("");
  });

  it("the committed code is generated from the contract", () => {
    const folder = mkdtempSync(join(tmpdir(), "holdfast-proto-"));
    try {
      expect(buf("generate", "--output", folder)).toBe("");
      const [committed, generated] = [join(home, "src/gen"), join(folder, "src/gen")].map(filesBelow);
      const stale = Object.keys({ ...committed, ...generated }).filter(
        (file) => committed![file] !== generated![file],
      );
      expect(stale, "run `npm run generate -w packages/proto`, and commit all that it writes").toEqual([]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it("the package exports everything that is generated", () => {
    const generated = Object.entries(filesBelow(join(home, "src/gen/holdfast")))
      .filter(([file]) => file.endsWith(".js"))
      .flatMap(([, text]) => [...text.matchAll(/^export const (\w+(?:Schema|Service)) /gm)])
      .map(([, name]) => name ?? "");
    expect(generated.filter((name) => !(name in proto))).toEqual([]);
    expect(proto.SERVICES).toHaveLength(generated.filter((name) => name.endsWith("Service")).length);
  });

  it.each(METHODS.map((method) => [`${method.parent.name}.${method.name}`, method] as const))(
    "%s has roles, and a route under /v1",
    (_name, method) => {
      expect(hasOption(method, proto.httpOption)).toBe(true);
      expect(getOption(method, proto.rolesOption), "it needs `option (roles)`, as `Get` has it").not.toEqual(
        [],
      );
      expect(getOption(method, proto.httpOption).pattern.value).toMatch(/^\/(v1\/|healthz$)/);
    },
  );
});

/** The report of `buf` about the contract; empty if all is well. */
function buf(...args: string[]): string {
  const modules = join(home, "../../node_modules/.bin");
  const PATH = [dirname(process.execPath), modules, process.env["PATH"]].join(delimiter);
  const env = { ...process.env, PATH };
  const { status, stdout, stderr, error } = spawnSync(join(modules, "buf"), args, {
    cwd: home,
    env,
    encoding: "utf8",
  });
  if (error !== undefined) throw error;
  return status === 0 ? "" : `${stdout}${stderr}` || `exit ${status}`;
}

/** The text of each file, by its path from the folder. */
function filesBelow(folder: string): Record<string, string> {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  return Object.fromEntries(
    files
      .map((entry) => join(entry.parentPath, entry.name))
      .toSorted()
      .map((path) => [path.slice(folder.length + 1), readFileSync(path, "utf8")]),
  );
}
