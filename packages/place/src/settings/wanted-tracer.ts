// The tracer that a user asks for with `--trace` or in the configuration.
//
// Destinations are stdout, file:PATH, sqlite:PATH and otlp[:URL]; there may be several. A trace that cannot
// be written is reported once and costs the session nothing. A destination that cannot work is refused before
// anything starts.

import type { Origin } from "@holdfast/terminal/frame/origin";
import { isAbsolute, resolve } from "node:path";
import { defined, HoldfastError, traceJson, type AgentTracer } from "@holdfast/core";
import { compositeTracer, fileTracer, stdoutTracer, otlpTracer } from "@holdfast/runtime";
import type { Io } from "@holdfast/terminal/frame/command";
import { sqliteTracer } from "@holdfast/storage/sqlite-tracer";

export interface WantedTraces {
  readonly targets: readonly string[];
  /** The folder of relative paths. */
  readonly folder: string;
  readonly origin: Origin;
  /** The flag or the file; nothing for the default. */
  readonly from?: string;
}

/** @throws HoldfastError `config_invalid` for a target that is none or that cannot be opened. */
export async function wantedTracer(wanted: WantedTraces, io: Io): Promise<AgentTracer | undefined> {
  if (wanted.targets.length === 0) return undefined;
  const tracers: AgentTracer[] = [];
  for (const target of wanted.targets) tracers.push(await tracerOf(target, wanted.folder, io));
  return compositeTracer(tracers);
}

async function tracerOf(target: string, folder: string, io: Io): Promise<AgentTracer> {
  const colon = target.indexOf(":");
  const kind = colon === -1 ? target : target.slice(0, colon);
  const where = colon === -1 ? undefined : target.slice(colon + 1);
  const onProblem = (message: string): void => {
    io.note(io.notes.paint.yellow(`${io.notes.symbols.warn} ${message}`));
  };
  const path = where === undefined || where === "" || isAbsolute(where) ? where : resolve(folder, where);
  if (kind === "stdout" && where === undefined) return linesTo(io);
  if (kind === "otlp" && where !== "") {
    return otlpTracer({ onProblem, ...defined({ url: where }) });
  }
  if (path !== undefined && path !== "") {
    if (kind === "file") return fileTracer({ path, onProblem });
    if (kind === "sqlite") {
      return sqliteTracer({ path, onProblem });
    }
  }
  throw new HoldfastError("config_invalid", "the destination of traces is unknown", {
    at: "--trace",
    got: target,
    expected: "one of stdout, file:PATH, sqlite:PATH, otlp or otlp:URL",
    fix: 'correct --trace, or "trace" in .holdfast/config.json',
  });
}

/** Asked for on standard output, so there. With `--json` a line of JSON among the others. */
function linesTo(io: Io): AgentTracer {
  if (io.isJson)
    return { trace: (event) => io.result({ type: "trace", event: JSON.parse(traceJson(event)) }, "") };
  return stdoutTracer({ write: (line) => io.show(undefined, line.trimEnd()) });
}
