// A coordinator that is flooded keeps nothing of it: its resident memory is about what it was before.

import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { afterAll, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { startCoordinator } from "../testing/fleet-processes.ts";
import { Project } from "../testing/holdfast-process.ts";

const REQUESTS = 20_000;
const WARM_UP = 3_000;
const AT_ONCE = 100;
const GROWTH_MIB_MAX = 64;

const project = new Project({ eachAsProcess: true });
afterAll(() => project.dispose());

/** One request on a connection of its own, to the end of the answer. */
function ask(port: number, text: string): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => socket.write(text));
    socket.resume();
    socket.once("error", () => resolve()).once("close", () => resolve());
  });
}

async function flood(port: number, count: number): Promise<void> {
  let sent = 0;
  const worker = async (): Promise<void> => {
    while (sent++ < count)
      await ask(
        port,
        `GET /v1/sessions/${sent} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: close\r\nAuthorization: Bearer x${sent}\r\n\r\n`,
      );
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

function residentMib(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
}

// Skipped where there is no /proc: resident memory of another process is read there.
test.runIf(process.platform === "linux")(
  "a coordinator that answered 20,000 requests of unknown tokens has kept less than 64 MiB of them",
  { ...ofCampaign, timeout: 120_000 },
  async () => {
    const coordinator = await startCoordinator(project);
    const port = Number(new URL(coordinator.url).port);
    const pid = coordinator.process.child.pid!;
    await flood(port, WARM_UP);
    const before = residentMib(pid);
    await flood(port, REQUESTS);
    expect(residentMib(pid) - before).toBeLessThan(GROWTH_MIB_MAX);
  },
);
