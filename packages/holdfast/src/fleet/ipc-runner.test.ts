// `holdfast runner --ipc` of a coordinator: a host uses it by the same requests as a runner over a database.

import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { openFleet, type Fleet } from "../testing/fleet.ts";
import { Project } from "../testing/holdfast-process.ts";
import { IpcTestHost } from "../testing/ipc-host.ts";
import { playTranscript, type TranscriptLine } from "../testing/ipc-transcript.ts";

const FOLDER = fileURLToPath(new URL("../../../../docs/ipc", import.meta.url));

let project: Project;
let fleet: Fleet;
beforeEach(async () => {
  project = new Project({ eachAsProcess: true });
  fleet = await openFleet();
  writeFileSync(project.path("agents.ts"), readFileSync(`${FOLDER}/agents.ts`));
  writeFileSync(project.path("runner.token"), await fleet.token("registration", "r"), { mode: 0o600 });
});
afterEach(async () => {
  await project.dispose();
  await fleet.close();
});

function start(): IpcTestHost {
  const args = ["runner", "--ipc", "-c", fleet.url, "--token-file", "runner.token", "--agents", "agents.ts"];
  return new IpcTestHost(project.start(args, { env: { HOLDFAST_TOKEN: fleet.adminToken } }));
}

describe("a runner of a coordinator that a program holds", () => {
  test("the transcript of a question is the same as over a database", ofCampaign, async () => {
    const lines = readFileSync(`${FOLDER}/question.ndjson`, "utf8").trim().split("\n");
    const transcript = lines.map((line) => JSON.parse(line) as TranscriptLine);
    const host = start();
    expect(await playTranscript(transcript, host)).toEqual(transcript);
    expect((await host.process.finished).code).toBe(0);
  });

  test(
    "a session that its process leaves by kill -9 goes on at the next one, and no event is missing",
    ofCampaign,
    async () => {
      const first = start();
      await first.meet();
      await first.ask("start", { sessionId: "g", agent: "greeter", input: { name: "Ada" } });
      await first.ask("subscribe", { sessionId: "g" });
      await first.becomes("g", "input_required");
      first.process.kill("SIGKILL");
      await first.process.finished;

      const second = start();
      await second.meet();
      await second.ask("subscribe", { sessionId: "g", afterSeq: 3 });
      await second.ask("answer", { sessionId: "g", answer: { approved: true } });
      expect(await second.becomes("g", "completed")).toMatchObject({ output: "Hello, Ada!" });
      const seqs = second.messages.filter(({ type }) => type === "event").map(({ event }) => event.seq);
      expect(seqs).toEqual([4, 5]);
    },
  );
});
