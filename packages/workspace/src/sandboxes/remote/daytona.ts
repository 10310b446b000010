// `daytona`: a client of the REST API of Daytona, as small as a sandbox needs.
//
// A sandbox is labelled, has no network, stops when it is idle and is deleted after that. Files and commands go over the toolbox of the
// sandbox, whose address the API says.

import { setTimeout as wait } from "node:timers/promises";
import { UnavailableError } from "@holdfast/core";
import {
  callService,
  MACHINE_LABEL,
  readJson,
  TTL_SECONDS,
  type RemoteMachine,
  type RemoteRequest,
  type RemoteService,
} from "./remote-service.ts";

export interface ServiceOptions {
  readonly url: string;
  readonly key: string;
  /** The snapshot or template that machines are made of; that of the service by default. */
  readonly image?: string | undefined;
}

interface Sandbox {
  readonly id: string;
  readonly state?: string;
  readonly toolboxProxyUrl?: string;
}

const NAME = "daytona";
const START_MS = 120_000;
const LOOK_EVERY_MS = 500;

export function daytona({ url, key, image }: ServiceOptions): RemoteService {
  const headers = { authorization: `Bearer ${key}` };
  const ask = async <Value>(path: string, request: Omit<RemoteRequest, "headers"> = {}): Promise<Value> => {
    const { bytes } = await callService(NAME, `${url}${path}`, { ...request, headers });
    return readJson<Value>(NAME, bytes);
  };
  const list = async (labels: Readonly<Record<string, string>>): Promise<readonly Sandbox[]> => {
    const query =
      Object.keys(labels).length === 0 ? "" : `?labels=${encodeURIComponent(JSON.stringify(labels))}`;
    const found = await ask<readonly Sandbox[] | { readonly items: readonly Sandbox[] }>(`/sandbox${query}`);
    return "items" in found ? found.items : found;
  };
  const running = async ({ id, state }: Sandbox): Promise<Sandbox> => {
    if (state === "stopped" || state === "archived")
      await callService(NAME, `${url}/sandbox/${id}/start`, { method: "POST", headers });
    const until = performance.now() + START_MS;
    for (;;) {
      const sandbox = await ask<Sandbox>(`/sandbox/${id}`);
      if (sandbox.state === "started") return sandbox;
      if (sandbox.state === "error" || performance.now() > until)
        throw new UnavailableError(
          "unavailable",
          `daytona did not start the sandbox: it is ${sandbox.state}`,
        );
      await wait(LOOK_EVERY_MS);
    }
  };
  const machine = ({ id, toolboxProxyUrl }: Sandbox): RemoteMachine => {
    const toolbox = `${(toolboxProxyUrl ?? `${url}/toolbox`).replace(/\/$/, "")}/${id}`;
    return {
      id,
      upload: async (path, bytes) => {
        const body = new FormData();
        body.append("file", new Blob([Uint8Array.from(bytes)]), "file");
        const at = `${toolbox}/files/upload?path=${encodeURIComponent(path)}`;
        await callService(NAME, at, { method: "POST", headers, body });
      },
      download: async (path) => {
        const at = `${toolbox}/files/download?path=${encodeURIComponent(path)}`;
        return (await callService(NAME, at, { headers })).bytes;
      },
      run: async (line, timeoutMs) => {
        const seconds = Math.ceil(timeoutMs / 1_000);
        const { bytes } = await callService(NAME, `${toolbox}/process/execute`, {
          method: "POST",
          headers,
          json: { command: line, timeout: seconds },
          timeoutMs: timeoutMs + 10_000,
        });
        const { exitCode, code } = readJson<{ readonly exitCode?: number; readonly code?: number }>(
          NAME,
          bytes,
        );
        return exitCode ?? code ?? -1;
      },
    };
  };

  return {
    name: NAME,
    async find(label) {
      const [sandbox] = (await list({ [MACHINE_LABEL]: label })).filter(({ state }) => state !== "error");
      return sandbox === undefined ? undefined : machine(await running(sandbox));
    },
    async create(label) {
      const minutes = TTL_SECONDS / 60;
      const sandbox = await ask<Sandbox>("/sandbox", {
        method: "POST",
        json: {
          ...(image === undefined ? {} : { snapshot: image }),
          labels: { [MACHINE_LABEL]: label },
          public: false,
          networkBlockAll: true,
          autoStopInterval: minutes,
          autoDeleteInterval: minutes,
        },
      });
      return machine(await running(sandbox));
    },
    async ids(which) {
      if (which !== "stopped") return (await list({ [MACHINE_LABEL]: which.label })).map(({ id }) => id);
      const all = await list({});
      return all
        .filter((sandbox) => sandbox.state === "stopped" && MACHINE_LABEL in (labelsOf(sandbox) ?? {}))
        .map(({ id }) => id);
    },
    async remove(id) {
      await callService(NAME, `${url}/sandbox/${id}`, { method: "DELETE", headers, also: [404] });
    },
  };
}

function labelsOf(sandbox: Sandbox & { readonly labels?: Readonly<Record<string, string>> }) {
  return sandbox.labels;
}
