// The golden transcripts of `holdfast runner --ipc`: what is published in docs/ipc is what a real runner
// says.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { checkRequest, ipcSchema, isIpcMessage } from "../ipc/ipc-messages.ts";
import { Project } from "../testing/holdfast-process.ts";
import { IpcTestHost } from "../testing/ipc-host.ts";
import { playTranscript, type TranscriptLine } from "../testing/ipc-transcript.ts";

const FOLDER = fileURLToPath(new URL("../../../../docs/ipc", import.meta.url));
const NAMES = readdirSync(FOLDER).filter((name) => name.endsWith(".ndjson"));

let project: Project;
beforeEach(() => {
  project = new Project({ eachAsProcess: true });
  writeFileSync(project.path("agents.ts"), readFileSync(`${FOLDER}/agents.ts`));
});
afterEach(() => project.dispose());

function linesOf(name: string): TranscriptLine[] {
  const lines = readFileSync(`${FOLDER}/${name}`, "utf8").trim().split("\n");
  return lines.map((line) => JSON.parse(line) as TranscriptLine);
}

describe("the transcripts of docs/ipc", () => {
  test.each(NAMES)("%s is what a runner says to a host", ofCampaign, async (name) => {
    const host = new IpcTestHost(project.start(["runner", "--ipc", "--agents", "agents.ts"]));
    const transcript = linesOf(name);
    expect(await playTranscript(transcript, host)).toEqual(transcript);
  });

  test.each(NAMES)("%s has only messages that the schema defines", (name) => {
    for (const line of linesOf(name)) {
      if ("runner" in line) expect(isIpcMessage(line.runner), JSON.stringify(line)).toBe(true);
    }
  });

  test("docs/ipc/schema.json is what the code checks requests by", () => {
    expect(JSON.parse(readFileSync(`${FOLDER}/schema.json`, "utf8"))).toEqual(
      JSON.parse(JSON.stringify(ipcSchema())),
    );
  });

  test("requests are played in the transcripts, each type at least once", () => {
    const played = new Set<string>();
    for (const line of NAMES.flatMap(linesOf)) {
      if (!("host" in line)) continue;
      try {
        played.add(checkRequest(line.host).type);
      } catch {
        // Refusals are in the transcripts as well.
      }
    }
    const types = Object.keys((ipcSchema() as { $defs: { request: object } }).$defs.request);
    expect([...played].toSorted()).toEqual(types.toSorted());
  });
});
