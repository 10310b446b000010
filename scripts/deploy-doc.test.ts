// A user can follow docs/deploy.md, and the pages that begin with a process. Their configurations are those that a
// coordinator reads. Their command lines are in `command-lines-doc.test.ts`.

import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { STOP_GRACE_MS } from "../packages/core/src/limits.ts";
import { readCoordinatorFile } from "../packages/place/src/settings/coordinator-config.ts";
import { checkRunnerPolicy } from "../packages/runner/src/policy/runner-policy.ts";

const PAGES = [
  "docs/deploy.md",
  "docs/guide.md",
  "docs/local.md",
  "README.md",
  "examples/15-fleet/README.md",
];
const read = (page: string): string => readFileSync(new URL(`../${page}`, import.meta.url), "utf8");

const blocks = (page: string, language: string): string[] =>
  [...read(page).matchAll(new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, "gs"))].map(([, text]) => text!);

test("every unit that runs steps, and every other setting of a stop, waits longer than the grace", () => {
  const page = read("docs/deploy.md");
  const waits = [
    ...page.matchAll(/(?:TimeoutStopSec=|stop_grace_period: |stop-timeout |PeriodSeconds: )(\d+)/g),
  ];
  expect(waits.length).toBeGreaterThan(4);
  for (const [setting, seconds] of waits)
    expect(Number(seconds) * 1_000, setting).toBeGreaterThan(STOP_GRACE_MS + 2_000);
  expect(page).toContain(`graceMs: 25_000`);
});

// systemd would start it again every few seconds.
test("a unit of the page stays ended after an exit that would come again", () => {
  const units = blocks("docs/deploy.md", "ini").filter((text) => text.includes("ExecStart="));
  const exits = units.map((text) => /^RestartPreventExitStatus=(.*)$/m.exec(text)?.[1]);
  const service = new URL("../packages/holdfast/src/run/runner/runner-service.ts", import.meta.url);
  const ofRunner = /finalExits = "([\d ]+)"/.exec(readFileSync(service, "utf8"))?.[1];
  // Wrong words, settings that are wrong, a database of a newer version.
  expect(exits).toEqual(["2 3 11", ofRunner]);
});

test("every configuration in docs/deploy.md is one that a coordinator reads, or the policy of a runner", () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-deploy-doc-"));
  try {
    const all = blocks("docs/deploy.md", "json");
    const policies = all.filter((text) => text.includes('"executors"'));
    for (const text of policies)
      expect(checkRunnerPolicy(JSON.parse(text), "docs/deploy.md")).toHaveProperty("executors");
    const found = all.filter((text) => !policies.includes(text));
    expect([found.length, policies.length]).toEqual([3, 1]);
    for (const text of found) {
      writeFileSync(join(folder, "coordinator.json"), text);
      expect(readCoordinatorFile(join(folder, "coordinator.json"))).toHaveProperty("storage");
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

// The program that npx or npm starts is a process below theirs, and it continues when theirs is killed.
test("nobody is told to kill the process that npx is", () => {
  const pages = [
    ...PAGES,
    ...readdirSync(new URL("../examples", import.meta.url)).flatMap((name) => {
      const page = `examples/${name}/README.md`;
      return existsSync(new URL(`../${page}`, import.meta.url)) ? [page] : [];
    }),
  ];
  const documented = pages.flatMap((page) =>
    read(page)
      .split("\n")
      .filter((line) => line.includes("kill -9"))
      .map((line) => `${page}: ${line}`),
  );
  expect(documented.length).toBeGreaterThan(1);
  expect(documented.filter((line) => !/np[xm] (has|only) started/.test(line))).toEqual([]);
});
