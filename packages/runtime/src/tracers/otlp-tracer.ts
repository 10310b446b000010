// Traces for an OTLP/HTTP receiver, with the official OpenTelemetry SDK: loaded only when it is wanted.
//
// The packages are those beside this installation. The folder of a project may be a clone, and no code of it
// is loaded.
//
// The SDK reads its own variables from the environment: OTEL_EXPORTER_OTLP_* (endpoint, headers, time-out,
// compression, certificates), OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES.

import { HoldfastError, toHoldfastError, type AgentTracer } from "@holdfast/core";
import { isOlder, packageVersion } from "@holdfast/system";
import { openTelemetryTracer } from "./opentelemetry-tracer.ts";

const PACKAGES = [
  "@opentelemetry/api",
  "@opentelemetry/sdk-trace",
  "@opentelemetry/exporter-trace-otlp-http",
  "@opentelemetry/resources",
] as const;
/** The oldest versions that have what is used here. */
const LEAST = ["1.10.0", "3.1.0", "0.301.0", "3.1.0"] as const;

const FLUSH_MS = 3_000;

export interface OtlpTracerOptions {
  /** Where to send them; else what the environment says, else this machine, port 4318. */
  readonly url?: string;
  /** Told once that spans cannot be delivered. Must not throw. */
  readonly onProblem: (message: string) => void;
}

/** @throws HoldfastError `config_invalid` when OpenTelemetry is not installed, or the URL is none. */
export async function otlpTracer({ url, onProblem }: OtlpTracerOptions): Promise<AgentTracer> {
  const endpoint = url === undefined ? undefined : endpointOf(url);
  const [api, sdk, exporter, resources] = await loadAll();
  refuseOld((name) => packageVersion(name, import.meta.url));
  let hasWarned = false;
  const warnOnce = (message: string): void => {
    if (!hasWarned) onProblem(`traces are not delivered: ${message}`);
    hasWarned = true;
  };
  api.diag.setLogger({ error: warnOnce, warn: warnOnce, info() {}, debug() {}, verbose() {} });
  const provider = new sdk.TracerProvider({
    resource: resources
      .defaultResource()
      .merge(resources.resourceFromAttributes({ "service.name": "holdfast" }))
      .merge(
        resources.detectResources({
          detectors: [resources.resourceAttributesEnvDetector, resources.serviceNameEnvDetector],
        }),
      ),
    spanProcessors: [
      new sdk.BatchSpanProcessor({
        exporter: new exporter.OTLPTraceExporter(endpoint === undefined ? {} : { url: endpoint }),
      }),
    ],
  });
  return openTelemetryTracer({
    api,
    tracer: provider.getTracer("holdfast"),
    // The exporter tries again for longer than anybody wants to wait at the end of a command, and says
    // nothing meanwhile.
    flush: () =>
      provider.forceFlush({ timeoutMillis: FLUSH_MS }).catch((thrown: unknown) => {
        const [error] = Array.isArray(thrown) ? (thrown as unknown[]) : [thrown]; // One for each processor that failed.
        warnOnce(`the receiver did not answer in time: ${toHoldfastError(error).message}`);
      }),
  });
}

/** A receiver's address, or that of its traces. */
function endpointOf(url: string): string {
  const parsed = URL.parse(url);
  if (parsed === null || !/^https?:$/.test(parsed.protocol)) {
    throw new HoldfastError("config_invalid", `"${url}" is not the address of an OTLP/HTTP receiver`, {
      expected: "otlp:http://HOST:PORT",
      fix: "correct the address, or give only otlp and set OTEL_EXPORTER_OTLP_ENDPOINT",
    });
  }
  if (parsed.pathname === "/") parsed.pathname = "/v1/traces";
  return parsed.href;
}

async function loadAll() {
  try {
    return await Promise.all([
      load<typeof import("@opentelemetry/api")>(PACKAGES[0]),
      load<typeof import("@opentelemetry/sdk-trace")>(PACKAGES[1]),
      load<typeof import("@opentelemetry/exporter-trace-otlp-http")>(PACKAGES[2]),
      load<typeof import("@opentelemetry/resources")>(PACKAGES[3]),
    ]);
  } catch (cause) {
    throw new HoldfastError("config_invalid", "traces cannot be sent: OpenTelemetry is not installed", {
      got: (cause as Error).message.split("\n")[0] ?? "",
      expected: `the packages ${PACKAGES.join(", ")} beside this installation of Holdfast`,
      fix: `run \`npm install ${PACKAGES.join(" ")}\` where Holdfast is installed, with -g for a global one`,
      cause,
    });
  }
}

/** @throws HoldfastError `config_invalid` that names the packages that are too old, with their versions. */
export function refuseOld(versionOf: (name: string) => string | undefined): void {
  const old = PACKAGES.flatMap((name, i) =>
    isOlder(versionOf(name), LEAST[i]!) ? [[name, LEAST[i]!] as const] : [],
  );
  if (old.length === 0) return;
  throw new HoldfastError("config_invalid", "traces cannot be sent: OpenTelemetry is too old", {
    got: old.map(([name]) => `${name} ${versionOf(name)}`).join(", "),
    expected: old.map(([name, least]) => `${name} ${least} or newer`).join(", "),
    fix: `run \`npm install ${old.map(([name]) => `${name}@latest`).join(" ")}\` where Holdfast is installed, with -g for a global one`,
  });
}

/** No bundler sees the name, so the packages stay optional. */
async function load<T>(name: string): Promise<T> {
  return (await import(name)) as T;
}
