// Agents of a registry in the format of the ACP registry: what is shown, the pinned hash, its check before
// each start, and refusals.

import { createHash } from "node:crypto";
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { Project } from "../testing/holdfast-process.ts";

const FAKE = fileURLToPath(new URL("../../../programs/src/testing/fake-acp.mjs", import.meta.url));
/** The program as a file that can lie anywhere: its imports are addresses. */
const fakeAnywhere = (): string =>
  readFileSync(FAKE, "utf8").replaceAll(/"\.\/(fake-[\w-]+\.mjs)"/g, (_, name: string) =>
    JSON.stringify(new URL(name, `file://${FAKE}`).href),
  );
const PROGRAM = `#!/bin/sh\nexec "${process.execPath}" "${FAKE}" "$@"\n`;
const PLATFORM = `${process.platform}-${process.arch === "arm64" ? "aarch64" : "x86_64"}`;
const STORE = ".local/share/holdfast/external-agents";

let project: Project;
let server: Server;
/** The answers of the file server by path. */
let files: Record<string, Buffer>;

beforeEach(async () => {
  project = new Project();
  files = {};
  server = createServer(({ url = "" }, response) => {
    const found = files[url];
    response.writeHead(found === undefined ? 404 : 200).end(found);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});
afterEach(async () => {
  await project.dispose();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const origin = (): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const run = (...args: string[]) =>
  project.finish(args, { stdin: "", env: { HOME: project.folder, XDG_DATA_HOME: undefined } });

/** A tar file with these files and folders, by paths. A value that starts with "-> " is a link, one with "size " a size. */
function tar(entries: Readonly<Record<string, string>>): Buffer {
  const blocks = Object.entries(entries).flatMap(([path, content]) => {
    const isLink = content.startsWith("-> ");
    const [, size] = /^size (.*)/.exec(content) ?? [];
    const bytes = Buffer.from(isLink || size !== undefined ? "" : content);
    const header = Buffer.alloc(512);
    header.write(path, 0);
    header.write("0000755\0", 100);
    header.write(`${size ?? bytes.length.toString(8).padStart(11, "0")}\0`, 124);
    header.write(isLink ? "2" : path.endsWith("/") ? "5" : "0", 156);
    header.write("        ", 148);
    const sum = header.reduce((total, byte) => total + byte, 0);
    header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
    const padding = Buffer.alloc((512 - (bytes.length % 512)) % 512);
    return [header, bytes, padding];
  });
  return gzipSync(Buffer.concat([...blocks, Buffer.alloc(1024)]));
}

function register(distribution: object, version = "1.2.3"): string {
  const entry = {
    id: "helper",
    name: "Helper",
    version,
    description: "Helps.",
    license: "MIT",
    distribution,
  };
  writeFileSync(
    project.path("registry.json"),
    JSON.stringify({ version: "1.0.0", agents: [{ id: 1 }, entry] }),
  );
  return "registry.json";
}
const binary = (name: string, more: object = {}) => ({
  binary: { [PLATFORM]: { archive: `${origin()}/${name}`, cmd: "./bin/helper", args: ["acp"], ...more } },
});

test(
  "an agent is shown with its hash, installed after a yes, run, and refused once its program has changed",
  ofCampaign,
  async () => {
    files["/a.tar.gz"] = tar({ "bin/helper": PROGRAM, LICENSE: "MIT" });
    const registry = register(binary("a.tar.gz", { env: { HELPER_MODE: "test" } }));
    const shown = await run("agents", "install", "helper", "--registry", registry);
    expect(shown.code).toBe(2);
    expect(shown.stderr).toMatch(/Helper 1\.2\.3 \(MIT\)/);
    expect(shown.stderr).toMatch(/bin\/helper acp/);
    const [, hash] = /sha256:([0-9a-f]{64})/.exec(shown.stderr) ?? [];
    expect(shown.stderr).toContain("nobody can be asked here");
    expect((await run("run", "helper", "greet")).code).not.toBe(0);

    const installed = await run("agents", "install", "helper", "--registry", registry, "--yes");
    expect(installed.code, installed.stderr).toBe(0);
    expect(installed.stderr).toContain(`sha256:${hash}`);
    const ran = await run("run", "helper", "greet", "--session", "h1");
    expect(ran.code, ran.stderr).toBe(0);
    expect((await run("doctor")).stdout).toContain("helper 1.2.3");

    appendFileSync(project.path(`${STORE}/helper/files/bin/helper`), "# changed\n");
    const refused = await run("run", "helper", "greet");
    expect(refused.stderr).toContain('the program of the agent "helper" was changed after it was installed');
    expect(refused.stderr).toContain("holdfast agents uninstall helper");
    expect((await run("doctor")).stdout).toContain("was changed after it was installed");
  },
);

test("the same version with another content is refused until the pinned hash is forgotten", async () => {
  files["/a.tar.gz"] = tar({ "bin/helper": PROGRAM });
  const registry = register(binary("a.tar.gz"));
  const install = () => run("agents", "install", "helper", "--registry", registry, "--yes");
  expect((await install()).code).toBe(0);
  expect((await install()).stderr).toContain("(as pinned)");
  files["/a.tar.gz"] = tar({ "bin/helper": `${PROGRAM}# other\n` });
  const other = await install();
  expect(other.code).not.toBe(0);
  expect(other.stderr).toContain("has another content than the one that was pinned");
  expect((await run("agents", "uninstall", "helper")).code).toBe(0);
  expect((await install()).code).toBe(0);
  files["/a.tar.gz"] = tar({ "bin/helper": PROGRAM });
  register(binary("a.tar.gz"), "1.3.0");
  expect((await install()).code).toBe(0);
});

test("an npm package with an exact version is installed without its scripts, and a registry may be at an address", async () => {
  const manifest = {
    name: "helper-acp",
    version: "2.0.0",
    bin: { "helper-acp": "cli.mjs" },
    scripts: { postinstall: "touch ../../../ran" },
  };
  const tarball = tar({
    "package/package.json": JSON.stringify(manifest),
    "package/cli.mjs": fakeAnywhere(),
  });
  const integrity = `sha512-${createHash("sha512").update(tarball).digest("base64")}`;
  const dist = { tarball: `${origin()}/helper-acp/-/helper-acp-2.0.0.tgz`, integrity };
  files["/helper-acp"] = Buffer.from(
    JSON.stringify({
      name: "helper-acp",
      "dist-tags": { latest: "2.0.0" },
      versions: { "2.0.0": { ...manifest, dist } },
    }),
  );
  files["/helper-acp/-/helper-acp-2.0.0.tgz"] = tarball;
  writeFileSync(project.path(".npmrc"), `registry=${origin()}/\ncache=${project.path("npm-cache")}\n`);
  files["/registry.json"] = readFileSync(project.path(register({ npx: { package: "helper-acp@2.0.0" } })));
  const installed = await run(
    "agents",
    "install",
    "helper",
    "--registry",
    `${origin()}/registry.json`,
    "--yes",
  );
  expect(installed.code, installed.stderr).toBe(0);
  expect(files).not.toHaveProperty("/ran");
  const ran = await run("run", "helper", "greet");
  expect(ran.code, ran.stderr).toBe(0);
  mkdirSync(project.path(`${STORE}/helper/files/node_modules/other`));
  writeFileSync(project.path(`${STORE}/helper/files/node_modules/other/index.js`), "");
  expect((await run("run", "helper", "greet")).stderr).toContain("was changed after it was installed");
});

test.each<readonly [string, () => object, string]>([
  ["a range of an npm package", () => ({ npx: { package: "helper@^1.0.0" } }), "has no exact version"],
  ["a Python package", () => ({ uvx: { package: "helper==1.0.0" } }), "Python package"],
  [
    "another machine",
    () => ({ binary: { "plan9-vax": { archive: "https://x.example/a", cmd: "a" } } }),
    "none for",
  ],
  ["a zip", () => binary("a.zip"), "archives of the kind .zip are not supported"],
  [
    "an archive with another hash",
    () => binary("ok.tgz", { sha256: "0".repeat(64) }),
    "not the one of the registry",
  ],
  ["an archive without the program", () => binary("empty.tgz"), 'no program "bin/helper"'],
  ["a path that leaves the folder", () => binary("up.tgz"), 'the path "../up" is refused'],
  ["a link", () => binary("link.tgz"), "is neither a file nor a folder"],
  ["a size below zero", () => binary("negative.tgz"), "has a number that is not octal"],
  [
    "an archive of folders alone",
    () => {
      files["/folders.tgz"] = tar(
        Object.fromEntries(Array.from({ length: 20_001 }, (_, n) => [`${n}/`, ""])),
      );
      return binary("folders.tgz");
    },
    "more than 20000 files, folders and headers",
  ],
  ["an archive that is none", () => binary("raw.tgz"), "cannot be unpacked"],
  ["an address that does not answer", () => binary("none.tgz"), "HTTP 404"],
  [
    "an address without encryption",
    () => ({ binary: { [PLATFORM]: { archive: "http://example.com/a.tgz", cmd: "a" } } }),
    "https, or http to this machine",
  ],
  ["a damaged entry", () => ({ npx: { package: 1 } }), "the registry has another form"],
])("%s is refused, and nothing is installed", async (_what, distribution, message) => {
  files = {
    "/a.zip": Buffer.from("PK"),
    "/ok.tgz": tar({ "bin/helper": PROGRAM }),
    "/empty.tgz": tar({ other: "x" }),
    "/up.tgz": tar({ "../up": "x", "bin/helper": PROGRAM }),
    "/negative.tgz": tar({ "bin/": "size -1000" }), // It leads back to its own header.
    "/link.tgz": tar({ "bin/helper": "-> /etc/passwd" }),
    "/raw.tgz": Buffer.from("no archive"),
  };
  const { code, stderr } = await run(
    "agents",
    "install",
    "helper",
    "--registry",
    register(distribution()),
    "--yes",
  );
  expect(code).not.toBe(0);
  expect(stderr).toContain(message);
  expect((await run("agents", "uninstall", "helper")).stderr).toContain("is not installed");
});

test("a name that the registry does not have, and one that Holdfast has itself, are refused", async () => {
  const registry = register({ uvx: { package: "x" } });
  const unknown = await run("agents", "install", "other", "--registry", registry);
  expect(unknown.stderr).toContain('the registry has no agent "other"');
  const own = await run("agents", "install", "codex", "--registry", registry);
  expect(own.stderr).toContain("an agent that Holdfast knows itself");
  expect((await run("agents", "install", "helper")).stderr).toContain("no registry is named");
});
