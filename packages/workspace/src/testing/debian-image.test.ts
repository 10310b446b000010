// The root file system of the image for tests of containers, tried in a namespace because an engine is rarely
// there.

import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { expect, test } from "vitest";

import { debianRoot } from "./debian-image.ts";

const MISSING = ["apt-get", "dpkg-deb", "bwrap"].filter(
  (name) => spawnSync(name, ["--version"]).status !== 0,
);

// The name says which programs are missing.
test.skipIf(MISSING.length > 0)(
  `Debian's BusyBox is a root file system in which a container's commands run${MISSING.length > 0 ? ` (skipped: no ${MISSING.join(", ")})` : ""}`,
  ofCampaign,
  () => {
    const folder = mkdtempSync(join(tmpdir(), "holdfast-image-"));
    try {
      const root = debianRoot(folder);
      const line = "date > /tmp/now && sleep 0 && kill -0 $$ && cat /tmp/now | wc -l";
      const inRoot = ["--unshare-all", "--bind", root, "/", "--proc", "/proc", "--dev", "/dev"];
      expect(execFileSync("bwrap", [...inRoot, "sh", "-c", line], { encoding: "utf8" })).toBe("1\n");
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
);
