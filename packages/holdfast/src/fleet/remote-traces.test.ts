// Traces that leave the machine. Processes of `holdfast run` and `holdfast runner` send them by
// `--trace otlp` to working and failing collectors. A runner's events also appear in the coordinator's
// stream.

import { writeFileSync } from "node:fs";
import { createServer as createHttpServer, type IncomingHttpHeaders } from "node:http";
import { createServer, type AddressInfo, type Server } from "node:net";
import { gunzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign, sampled } from "@holdfast/testkit/campaign";
import { startSession } from "../testing/coordinator-client.ts";
import { openFleet, type Fleet } from "../testing/fleet.ts";
import { ended, sessionBecomes } from "../testing/fleet-sessions.ts";
import { Project } from "../testing/holdfast-process.ts";

interface WireValue {
  readonly stringValue?: string;
}
interface WireAttribute {
  readonly key: string;
  readonly value: WireValue;
}
interface Export {
  readonly path: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: {
    readonly resourceSpans: readonly {
      readonly resource: { readonly attributes: readonly WireAttribute[] };
      readonly scopeSpans: readonly { readonly spans: readonly WireSpan[] }[];
    }[];
  };
}
interface WireSpan {
  readonly name: string;
  readonly traceId: string;
  readonly attributes: readonly WireAttribute[];
}

interface WatchedRecord {
  readonly seq: number;
  readonly record: { readonly type: string };
}

const TIMEOUT = { timeout: 60_000 };

let project: Project;
const servers: Server[] = [];
beforeEach(() => {
  project = new Project({ eachAsProcess: true });
  writeFileSync(
    project.path("agents.ts"),
    `import { defineAgent } from "holdfast";
     export const works = defineAgent({ name: "works", run: (ctx) => ctx.run("look-up", () => "found") });
     export const waits = defineAgent({ name: "waits", run: (ctx) => ctx.waitForSignal("go") });`,
  );
  writeFileSync(project.path("works.ts"), `export { works as default } from "./agents.ts";`);
});
afterEach(async () => {
  await project.dispose();
  for (const server of servers.splice(0)) server.close();
});

/** @returns where it listens. */
async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  servers.push(server);
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A collector that takes every export. */
async function collector(): Promise<{ readonly url: string; readonly exports: readonly Export[] }> {
  const exports: Export[] = [];
  const server = createHttpServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      const bytes = Buffer.concat(parts);
      const text = request.headers["content-encoding"] === "gzip" ? gunzipSync(bytes) : bytes;
      const body = JSON.parse(text.toString()) as Export["body"];
      exports.push({ path: request.url, headers: request.headers, body });
      response.writeHead(200, { "content-type": "application/json" }).end("{}");
    });
  });
  return { url: await listening(server), exports };
}

/** Collectors that take nothing. */
const USELESS: Readonly<Record<string, () => Promise<string>>> = {
  "is away": async () => "http://127.0.0.1:9",
  "never answers": () => listening(createHttpServer((request) => void request.resume())),
  "answers 200 with garbage": () =>
    listening(createHttpServer((_request, response) => void response.end("\u0000<html>not OTLP"))),
  "answers 503 for ever": () =>
    listening(createHttpServer((_request, response) => void response.writeHead(503).end("no"))),
  "does not speak HTTP": () =>
    listening(createServer((socket) => void socket.on("error", () => {}).end("220 smtp ready\r\n"))),
};

function spansOf(exports: readonly Export[]): readonly WireSpan[] {
  return exports
    .flatMap(({ body }) => body.resourceSpans)
    .flatMap(({ scopeSpans }) => scopeSpans)
    .flatMap(({ spans }) => spans);
}

function attributesOf(attributes: readonly WireAttribute[]): Record<string, string | undefined> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue]));
}

function named(exports: readonly Export[], name: string): Record<string, string | undefined>[] {
  const spans = spansOf(exports).filter((span) => span.name === name);
  return spans.map(({ attributes }) => attributesOf(attributes));
}

/** At most one warning, as a readable sentence. */
function expectOneWarning(stderr: string): void {
  expect(stderr.split("traces are not delivered").length - 1).toBeLessThanOrEqual(1);
  expect(stderr).not.toContain("[{");
}

describe("holdfast run", () => {
  test(
    "a session's spans go to the collector that --trace names",
    { ...ofCampaign, ...TIMEOUT },
    async () => {
      const { url, exports } = await collector();
      const { code, stdout } = await project.run(
        "run",
        "works.ts",
        "--session",
        "s1",
        "--trace",
        `otlp:${url}`,
      );
      expect({ code, stdout }).toEqual({ code: 0, stdout: "found\n" });
      expect(exports.map(({ path }) => path)).toEqual(["/v1/traces"]);
      expect(named(exports, "invoke_agent works")).toMatchObject([{ "gen_ai.conversation.id": "s1" }]);
      expect(named(exports, "execute_tool look-up")).toHaveLength(1);
      expect(new Set(spansOf(exports).map(({ traceId }) => traceId)).size).toBe(1);
      expect(JSON.stringify(exports)).not.toContain("found");
    },
  );

  test(
    "the collector, its headers and names come from the environment",
    { ...ofCampaign, ...TIMEOUT },
    async () => {
      const { url, exports } = await collector();
      const env = {
        OTEL_EXPORTER_OTLP_ENDPOINT: url,
        OTEL_EXPORTER_OTLP_HEADERS: "x-team=blue",
        OTEL_EXPORTER_OTLP_COMPRESSION: "gzip",
        OTEL_SERVICE_NAME: "shop",
        OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test",
      };
      const running = project.start(["run", "works.ts", "--trace", "otlp"], { env, stdin: "" });
      expect((await running.finished).code).toBe(0);
      expect(exports).toMatchObject([{ path: "/v1/traces", headers: { "x-team": "blue" } }]);
      const [resource] = exports[0]!.body.resourceSpans;
      expect(attributesOf(resource!.resource.attributes)).toMatchObject({
        "service.name": "shop",
        "deployment.environment.name": "test",
      });
    },
  );

  test.each(sampled(Object.entries(USELESS)))(
    "a session completes when the collector %s",
    TIMEOUT,
    async (_what, open) => {
      const args = ["run", "works.ts", "--session", "s1", "--trace", `otlp:${await open()}`];
      const { code, stdout, stderr } = await project.run(...args);
      expect({ code, stdout }).toEqual({ code: 0, stdout: "found\n" });
      expectOneWarning(stderr);
    },
  );
});

describe("holdfast runner", () => {
  let fleet: Fleet;
  beforeEach(async () => {
    fleet = await openFleet();
  });
  afterEach(() => fleet.close());

  async function startRunner(url: string) {
    const args = ["runner", "-c", fleet.url, "--agents", "agents.ts", "--trace", `otlp:${url}`];
    const runner = project.start(args, {
      env: { HOLDFAST_TOKEN: await fleet.token("registration", "r") },
      stdin: "",
    });
    await runner.says("Runner started");
    return runner;
  }

  const runners = async (): Promise<unknown> => {
    const headers = { authorization: `Bearer ${fleet.adminToken}` };
    return (await fetch(`${fleet.url}/v1/runners`, { headers })).json();
  };

  test("the spans of a runner's sessions go to its collector", { ...ofCampaign, ...TIMEOUT }, async () => {
    const { url, exports } = await collector();
    const runner = await startRunner(url);
    const sessionId = await startSession(fleet, { agent: "works" });
    await ended(fleet, sessionId);
    runner.kill("SIGINT");
    expect((await runner.finished).code).toBe(130);
    expect(named(exports, "invoke_agent works")).toMatchObject([{ "gen_ai.conversation.id": sessionId }]);
    expect(named(exports, "execute_tool look-up")).toHaveLength(1);
  });

  test.each(sampled(Object.entries(USELESS)))(
    "runs its sessions and leaves in order when the collector %s",
    TIMEOUT,
    async (_what, open) => {
      const runner = await startRunner(await open());
      const worked = await Promise.all([1, 2].map(() => startSession(fleet, { agent: "works" })));
      for (const sessionId of worked)
        expect(await ended(fleet, sessionId)).toMatchObject({ status: "completed", output: '"found"' });
      const waiting = await startSession(fleet, { agent: "waits" });
      await sessionBecomes(fleet, waiting, { status: "waiting" });
      runner.kill("SIGINT");
      const { code, stderr } = await runner.finished;
      expect(code).toBe(130);
      expectOneWarning(stderr);
      expect(await runners()).toEqual({ runners: [] });
      const claim = { sessionId: waiting, owner: "test", now: Date.now(), leaseMs: 1_000 };
      expect(await fleet.storage.claim(claim)).toMatchObject({ status: "claimed", losses: 0 });
    },
  );

  test(
    "events of a runner's sessions reach watchers at the coordinator in the order of the journal",
    { ...ofCampaign, ...TIMEOUT },
    async () => {
      const sessionId = await startSession(fleet, { agent: "works" });
      const headers = { authorization: `Bearer ${fleet.adminToken}` };
      const watched = await fetch(`${fleet.url}/v1/sessions/${sessionId}/watch`, { headers });
      const { url, exports } = await collector();
      const runner = await startRunner(url);
      const events = (await watched.text()).split("\n\n").filter((event) => event.includes("event: record"));
      const records = events.map((event) => JSON.parse(/^data: (.*)$/m.exec(event)![1]!) as WatchedRecord);
      const kinds = records.map(({ record }) => record.type);
      expect(records.map(({ seq }) => seq)).toEqual(records.map((_, seq) => seq));
      expect(kinds).toEqual(expect.arrayContaining(["schedule_task", "task_completed"]));
      runner.kill("SIGINT");
      expect((await runner.finished).code).toBe(130);
      expect(named(exports, "invoke_agent works")).toHaveLength(1);
    },
  );
});
