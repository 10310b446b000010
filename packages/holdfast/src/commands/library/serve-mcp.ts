// `serveMcp`: the orchestrator's tools over standard input and output, for a client that starts its MCP
// servers itself.
//
//   - Standard output carries the protocol and nothing else.
//   - The server ends with its client. Sessions that it has started continue.

import { createHash } from "node:crypto";
import { PassThrough } from "node:stream";
import { once } from "node:events";
import {
  orchestratorServer,
  OrchestratorMemory,
  splitTags,
  stateKeyOf,
  type Orchestrator,
} from "@holdfast/coordinator/mcp";
import { defined, UsageError } from "@holdfast/core";
import { RunnerService, SessionService } from "@holdfast/proto";
import { CoordinatorConnection } from "@holdfast/storage/remote";
import { serveStdio, StdioServerTransport } from "@modelcontextprotocol/server/stdio";

import { STOP_EXIT, type Arguments, type Io } from "@holdfast/terminal/frame/command";
import { findCoordinator } from "@holdfast/place/coordinator-access";
import { stopper } from "../../run/typing/stopper.ts";

/** @returns the exit code. */
export async function serveMcp(args: Arguments, io: Io): Promise<number> {
  const demands = readDemands(args.texts("demand"));
  const { url, token } = findCoordinator(args, io);
  const connection = new CoordinatorConnection({ url, token });
  const parentSessionId = args.text("parent");
  const orchestrator: Orchestrator = {
    sessions: connection.client(SessionService),
    runners: connection.client(RunnerService),
    explained: (thrown) => connection.explained(thrown),
    stateKey: stateKeyOf(token),
    caller: createHash("sha256").update(token).digest("hex"),
    demands,
    tags: splitTags(args.text("tag") ?? ""),
    settings: { mayDelete: args.has("allow-delete"), offersAgents: args.has("agent-tools") },
    memory: new OrchestratorMemory(),
    ...defined({ parentSessionId }),
  };
  const output = new PassThrough({ encoding: "utf8" });
  const written = io.stream(output);
  const transport = new StdioServerTransport(io.stdin, output);
  const stopped = Promise.withResolvers<number>();
  const release = io.onStop(
    stopper(io, "sessions that were started continue", (signal) => stopped.resolve(STOP_EXIT[signal])),
  );
  const server = serveStdio(() => orchestratorServer(orchestrator), {
    transport,
    onerror: (error) => io.note(error.message),
  });
  io.note(`tools for ${url} over standard input and output`);
  try {
    const gone = once(io.stdin, "close").then(() => 0);
    return await Promise.race([gone, written.then(() => 0), stopped.promise]);
  } finally {
    release();
    await server.close();
    output.end();
    connection.close();
    io.stdin.destroy();
  }
}

function readDemands(texts: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    texts.map((text) => {
      const at = text.indexOf("=");
      if (at > 0) return [text.slice(0, at), text.slice(at + 1)];
      throw new UsageError("a demand has no value", {
        at: "--demand",
        got: text,
        expected: "NAME=VALUE",
        fix: "name the label and its value, such as --demand gpu=yes",
      });
    }),
  );
}
