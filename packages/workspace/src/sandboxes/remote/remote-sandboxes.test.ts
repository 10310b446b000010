// The sandboxes `daytona` and `e2b` over servers that speak the published APIs. Their machines are folders of
// this machine, held in by `bwrap`.
//
// Both share everything but the client of the service. The whole suite runs over one of them, and over the
// other in the campaign `sandboxes`.

import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "vitest";
import { isCampaign } from "@holdfast/testkit/campaign";

import { bubblewrapSandbox } from "../bubblewrap-sandbox.ts";
import type { SandboxBackend } from "../sandbox-backend.ts";
import { startFakeDaytona, startFakeE2b, type FakeService } from "../../testing/fake-machines.ts";
import { sandboxConformance } from "../../testing/sandbox-conformance.ts";
import { daytona } from "./daytona.ts";
import { e2b } from "./e2b.ts";
import { FolderMirror } from "./folder-mirror.ts";
import { remoteSandbox } from "./remote-sandbox.ts";

const machines = await bubblewrapSandbox.check();
const isUnavailable = machines.status !== "ready";
const [ofDaytona, ofE2b] = await Promise.all([startFakeDaytona(), startFakeE2b()]);
afterAll(() => Promise.all([ofDaytona.close(), ofE2b.close()]));

const daytonaAt = ({ url }: Pick<FakeService, "url">, key = ofDaytona.key): SandboxBackend =>
  remoteSandbox({
    name: "daytona",
    keyName: "DAYTONA_API_KEY",
    key: async () => key,
    service: (given) => daytona({ url, key: given }),
  });
const e2bAt = ({ url }: Pick<FakeService, "url">, key = ofE2b.key): SandboxBackend =>
  remoteSandbox({
    name: "e2b",
    keyName: "E2B_API_KEY",
    key: async () => key,
    service: (given) => e2b({ url, key: given, daemonUrl: (id) => `${url}/daemon/${id}` }),
  });

sandboxConformance({ check: machines, sees: ofDaytona.sees, backend: daytonaAt(ofDaytona) });
if (isCampaign) sandboxConformance({ check: machines, sees: ofE2b.sees, backend: e2bAt(ofE2b) });

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "holdfast-remote-"));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

// Machines for tests need `bwrap`. The names of the suite above say why there are none.
describe.skipIf(isUnavailable).each([
  { name: "daytona", service: ofDaytona, backendAt: daytonaAt },
  { name: "e2b", service: ofE2b, backendAt: e2bAt },
])("a service: $name", { timeout: 60_000 }, ({ service, backendAt }) => {
  test("a machine is found again by another process, and one that is gone loses no file", async () => {
    const place = { session: "ses_1", root };
    const of = async () => backendAt(service).open(place, {});
    const first = await of();
    expect((await first.execute("echo one > made.txt")).end).toEqual({ type: "exit", exitCode: 0 });
    const [machine] = service.machines;
    expect((await (await of()).execute("cat made.txt")).stdout).toBe("one\n");
    expect(service.machines).toEqual([machine]);
    await backendAt(service).destroy(place);
    expect(service.machines).toEqual([]);
    expect((await first.execute("cat made.txt")).stdout).toBe("one\n");
    expect(service.machines).toHaveLength(1);
    await backendAt(service).destroy(place);
  });

  test("a key that the service refuses is a reason that does not show the key", async () => {
    const check = await backendAt(service, "wrong-key-4711").check();
    expect(check).toMatchObject({ status: "unavailable", reason: expect.stringMatching(/answered 401/) });
    expect(JSON.stringify(check)).not.toContain("4711");
  });

  test("a service that does not answer is an end that says so", async () => {
    const away = await backendAt({ url: "http://127.0.0.1:1" }).open({ session: "ses_1", root }, {});
    expect((await away.execute("true")).end).toMatchObject({
      type: "spawn_error",
      message: expect.stringMatching(/did not answer .*; the command may have run/),
    });
  });
});

test("files of a hostile sandbox are written nowhere else than below the folder", async () => {
  const inside = join(root, "project");
  for (const folder of [inside, join(inside, ".git")]) mkdirSync(folder);
  symlinkSync(root, join(inside, "up"));
  writeFileSync(join(inside, ".git", "config"), "mine");
  const paths = [
    "../outside",
    "up/outside",
    "/tmp/holdfast-outside",
    ".git/config",
    ".holdfast/a.md",
    "fine.txt",
  ];
  const refused = await new FolderMirror(inside, 100).take({
    changed: paths.map((path) => ({ path, bytes: Buffer.from("evil"), mode: 0o644 })),
    names: new Set(paths),
  });
  expect(refused).toHaveLength(5);
  expect(
    [join(root, "outside"), "/tmp/holdfast-outside", join(inside, ".holdfast")].filter(existsSync),
  ).toEqual([]);
  expect(readFileSync(join(inside, ".git", "config"), "utf8")).toBe("mine");
  expect(readFileSync(join(inside, "fine.txt"), "utf8")).toBe("evil");
});
