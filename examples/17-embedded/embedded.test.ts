import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { LAUNCHER, Project } from "../../packages/holdfast/src/testing/holdfast-process.ts";

const HOST = new URL("./host.py", import.meta.url).pathname;

describe("a program in Python that holds a runner", () => {
  let project: Project;
  beforeEach(() => void (project = new Project({ fromSources: true })));
  afterEach(() => project.dispose());

  // Its child is found in /proc.
  test.runIf(process.platform === "linux")(
    "the program asks its person, and starts a runner that was killed again",
    ofCampaign,
    async () => {
      const host = spawn("python3", [HOST, "greeting", "Ada"], {
        cwd: project.folder,
        env: {
          PATH: process.env["PATH"],
          HOME: project.folder,
          HOLDFAST: `'${process.execPath}' '${LAUNCHER}'`,
        },
      });
      let said = "";
      let isKilled = false;
      const ended = new Promise<number | null>((resolve) => host.on("close", resolve));
      for (const stream of [host.stdout, host.stderr])
        stream.setEncoding("utf8").on("data", (text: string) => {
          said += text;
          if (!isKilled && said.includes("schedule_task")) {
            isKilled = true;
            const [runner] = readFileSync(`/proc/${host.pid}/task/${host.pid}/children`, "utf8").split(" ");
            process.kill(Number(runner), "SIGKILL");
          }
        });
      host.stdin.end("y\n");
      expect(await ended, said).toBe(0);
      expect(said).toContain("the runner died; starting it again");
      expect(said).toContain("completed Hello, Ada!");
      const seqs = [...said.matchAll(/(\d+) [a-z_]+$/gm)].map(([, seq]) => Number(seq));
      expect(seqs).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    },
  );
});
