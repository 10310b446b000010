import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { startCoordinator, startRunnerProcess } from "../../packages/holdfast/src/testing/fleet-processes.ts";
import { Project } from "../../packages/holdfast/src/testing/holdfast-process.ts";

const AGENTS = new URL("./release.ts", import.meta.url).pathname;

let project: Project;
beforeEach(() => void (project = new Project({ fromSources: true })));
afterEach(() => project.dispose());

test(
  "each part is done where its labels say, also when its runner comes later",
  { ...ofCampaign, timeout: 60_000 },
  async () => {
    const coordinator = await startCoordinator(project);
    const run = (name: string, label: string) =>
      startRunnerProcess(project, coordinator, name, ["--agents", AGENTS, "--label", label]);
    const ask = async (path: string, body?: object) => {
      const response = await fetch(`${coordinator.url}/v1/${path}`, {
        headers: { authorization: `Bearer ${coordinator.adminToken}`, "content-type": "application/json" },
        ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
      });
      return (await response.json()) as Record<string, unknown>;
    };
    const builder = await run("builder", "processors=many");
    const { sessionId } = await ask("sessions", { agent: "release", input: "1.2.0" });
    await builder.says(/Received run .*compile/);
    const signer = await run("signer", "key=release");
    expect(await ask(`sessions/${String(sessionId)}/result?waitMs=30000`)).toMatchObject({
      status: "completed",
      output: { archive: "release-1.2.0.tar", by: builder.child.pid, signedBy: signer.child.pid },
    });
  },
);
