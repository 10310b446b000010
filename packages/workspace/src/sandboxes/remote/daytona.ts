// `daytona`: a client of the REST API of Daytona, as small as a sandbox needs.
//
// A sandbox is labelled, has no network, stops when it is idle and is deleted after that. Files and commands
// go over the toolbox of the sandbox, whose address the API says.

import { setTimeout as wait } from "node:timers/promises";
import { defined, UnavailableError } from "@holdfast/core";
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

export function daytona(options: ServiceOptions): RemoteService {
  const api = new DaytonaApi(options);
  return {
    name: NAME,
    async find(label) {
      const found = await api.list({ [MACHINE_LABEL]: label });
      const sandbox = found.find(({ state }) => state !== "error");
      return sandbox === undefined ? undefined : machineOf(await api.running(sandbox), api);
    },
    async create(label) {
      return machineOf(await api.running(await api.create(label)), api);
    },
    async ids(which) {
      if (which !== "stopped") return (await api.list({ [MACHINE_LABEL]: which.label })).map(({ id }) => id);
      const all = await api.list({});
      return all
        .filter((sandbox) => sandbox.state === "stopped" && MACHINE_LABEL in (labelsOf(sandbox) ?? {}))
        .map(({ id }) => id);
    },
    async remove(id) {
      await api.call(`${api.url}/sandbox/${id}`, { method: "DELETE", also: [404] });
    },
  };
}

class DaytonaApi {
  readonly url: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #image: string | undefined;

  constructor({ url, key, image }: ServiceOptions) {
    this.url = url;
    this.#headers = { authorization: `Bearer ${key}` };
    this.#image = image;
  }

  async call(address: string, request: Omit<RemoteRequest, "headers"> = {}): Promise<Buffer> {
    return (await callService(NAME, address, { ...request, headers: this.#headers })).bytes;
  }

  async list(labels: Readonly<Record<string, string>>): Promise<readonly Sandbox[]> {
    const query =
      Object.keys(labels).length === 0 ? "" : `?labels=${encodeURIComponent(JSON.stringify(labels))}`;
    const found = await this.#ask<readonly Sandbox[] | { readonly items: readonly Sandbox[] }>(
      `/sandbox${query}`,
    );
    return "items" in found ? found.items : found;
  }

  create(label: string): Promise<Sandbox> {
    const minutes = TTL_SECONDS / 60;
    return this.#ask("/sandbox", {
      method: "POST",
      json: {
        ...defined({ snapshot: this.#image }),
        labels: { [MACHINE_LABEL]: label },
        public: false,
        networkBlockAll: true,
        autoStopInterval: minutes,
        autoDeleteInterval: minutes,
      },
    });
  }

  /** Waits until the sandbox runs, and starts one that has stopped. */
  async running({ id, state }: Sandbox): Promise<Sandbox> {
    if (state === "stopped" || state === "archived")
      await this.call(`${this.url}/sandbox/${id}/start`, { method: "POST" });
    const until = performance.now() + START_MS;
    for (;;) {
      const sandbox = await this.#ask<Sandbox>(`/sandbox/${id}`);
      if (sandbox.state === "started") return sandbox;
      if (sandbox.state === "error" || performance.now() > until)
        throw new UnavailableError(
          "unavailable",
          `daytona did not start the sandbox: it is ${sandbox.state}`,
        );
      await wait(LOOK_EVERY_MS);
    }
  }

  async #ask<Value>(path: string, request: Omit<RemoteRequest, "headers"> = {}): Promise<Value> {
    return readJson<Value>(NAME, await this.call(`${this.url}${path}`, request));
  }
}

/** The machine of a sandbox, over its toolbox. */
function machineOf({ id, toolboxProxyUrl }: Sandbox, api: DaytonaApi): RemoteMachine {
  const toolbox = `${(toolboxProxyUrl ?? `${api.url}/toolbox`).replace(/\/$/, "")}/${id}`;
  return {
    id,
    upload: async (path, bytes) => {
      const body = new FormData();
      body.append("file", new Blob([Uint8Array.from(bytes)]), "file");
      const at = `${toolbox}/files/upload?path=${encodeURIComponent(path)}`;
      await api.call(at, { method: "POST", body });
    },
    download: (path) => api.call(`${toolbox}/files/download?path=${encodeURIComponent(path)}`),
    run: async (line, timeoutMs) => {
      const seconds = Math.ceil(timeoutMs / 1_000);
      const bytes = await api.call(`${toolbox}/process/execute`, {
        method: "POST",
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
}

function labelsOf(sandbox: Sandbox & { readonly labels?: Readonly<Record<string, string>> }) {
  return sandbox.labels;
}
