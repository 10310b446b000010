// Machines of a sandbox service for tests: folders of this machine whose commands `bwrap` holds in.

import { spawn, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** Runs each line that it reads in the background, and says its id and its exit code. */
const LOOP =
  'while read -r id line; do { echo "$line" | base64 -d | sh > /dev/null 2>&1; echo "$id $?"; } & done';

export class FakeMachine {
  readonly id = `machine-${randomUUID()}`;
  readonly label: string;
  readonly folder = mkdtempSync(join(tmpdir(), "holdfast-machine-"));
  readonly #process: ChildProcess;
  readonly #waiting = new Map<string, (exitCode: number) => void>();

  constructor(label: string) {
    this.label = label;
    for (const name of ["tmp", "usr", "etc"]) mkdirSync(join(this.folder, name));
    for (const name of ["bin", "lib", "lib64", "sbin"])
      if (existsSync(`/${name}`)) symlinkSync(`usr/${name}`, join(this.folder, name));
    const mounts = ["--bind", this.folder, "/", "--ro-bind", "/usr", "/usr", "--ro-bind", "/etc", "/etc"];
    const own = [
      "--proc",
      "/proc",
      "--dev",
      "/dev",
      "--unshare-all",
      "--die-with-parent",
      "--new-session",
      "--chdir",
      "/tmp",
    ];
    this.#process = spawn("bwrap", [...mounts, ...own, "sh", "-c", LOOP], {
      env: { PATH: process.env["PATH"] },
      stdio: ["pipe", "pipe", "inherit"],
    });
    createInterface({ input: this.#process.stdout! }).on("line", (text) => {
      const [id = "", exitCode] = text.split(" ");
      this.#waiting.get(id)?.(Number(exitCode));
    });
  }

  run(line: string): Promise<number> {
    const id = randomUUID();
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve);
      this.#process.stdin!.write(`${id} ${Buffer.from(line).toString("base64")}\n`);
    });
  }

  /** A path of the machine, on this one. */
  at(path: string): string {
    return join(this.folder, path);
  }

  async remove(): Promise<void> {
    const closed = new Promise((resolve) => this.#process.once("close", resolve));
    this.#process.kill("SIGKILL");
    await closed;
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export interface FakeService {
  readonly url: string;
  readonly key: string;
  readonly machines: readonly FakeMachine[];
  /** The paths of all requests. */
  readonly requests: readonly string[];
  /** Whether a machine has a file at this path. */
  sees(path: string): boolean;
  close(): Promise<void>;
}

type Answer = { readonly status?: number; readonly json?: unknown; readonly bytes?: Uint8Array };
interface Call {
  readonly method: string;
  readonly url: URL;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
  readonly machines: Map<string, FakeMachine>;
  /** The address of the service. */
  readonly base: string;
}

async function startService(answer: (call: Call) => Promise<Answer>, key: string): Promise<FakeService> {
  const machines = new Map<string, FakeMachine>();
  const requests: string[] = [];
  let base = "";
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const url = new URL(request.url ?? "/", base);
    requests.push(`${request.method} ${url.pathname}`);
    const { method = "GET", headers } = request;
    const {
      status = 200,
      json,
      bytes,
    } = await answer({
      method,
      url,
      headers,
      body: Buffer.concat(chunks),
      machines,
      base,
    });
    response.writeHead(status).end(bytes ?? (json === undefined ? "" : JSON.stringify(json)));
  };
  const server: Server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) => response.writeHead(500).end(String(error)));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url: base,
    key,
    get machines() {
      return [...machines.values()];
    },
    requests,
    sees: (path) => [...machines.values()].some((machine) => existsSync(machine.at(path))),
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await Promise.all([...machines.values()].map((machine) => machine.remove()));
    },
  };
}

async function formFile({ body, headers }: Call): Promise<Buffer> {
  const type = String(headers["content-type"]);
  const form = await new Response(Uint8Array.from(body), { headers: { "content-type": type } }).formData();
  return Buffer.from(await (form.get("file") as File).arrayBuffer());
}

async function files(call: Call, machine: FakeMachine): Promise<Answer> {
  const path = machine.at(call.url.searchParams.get("path") ?? "");
  if (call.method === "POST") {
    writeFileSync(path, await formFile(call));
    return { json: [] };
  }
  return existsSync(path)
    ? { bytes: readFileSync(path) }
    : { status: 404, json: { message: "no such file" } };
}

async function removeMachine({ machines }: Call, id: string): Promise<Answer> {
  const machine = machines.get(id);
  if (machine === undefined) return { status: 404, json: { message: "no such sandbox" } };
  machines.delete(id);
  await machine.remove();
  return { status: 204 };
}

/** A server that speaks the REST API of Daytona. */
export function startFakeDaytona(): Promise<FakeService> {
  const key = "dtn_test";
  const shown = ({ id, label }: FakeMachine, base: string) => ({
    id,
    state: "started",
    labels: { "holdfast-place": label },
    toolboxProxyUrl: `${base}/proxy/toolbox`,
  });
  return startService(async (call) => {
    const { method, url, machines, base, body } = call;
    if (call.headers.authorization !== `Bearer ${key}`)
      return { status: 401, json: { message: "unauthorized" } };
    const [, first, second, third = "", ...rest] = url.pathname.split("/");
    const machine = machines.get(first === "proxy" ? third : (second ?? ""));
    if (first === "sandbox" && second === undefined) {
      if (method === "POST") {
        const asked = JSON.parse(body.toString()) as {
          labels: Record<string, string>;
          networkBlockAll?: boolean;
        };
        if (asked.networkBlockAll !== true)
          return { status: 400, json: { message: "this machine has no network" } };
        const made = new FakeMachine(asked.labels["holdfast-place"] ?? "");
        machines.set(made.id, made);
        return { json: { ...shown(made, base), state: "creating" } };
      }
      const labels = JSON.parse(url.searchParams.get("labels") ?? "{}") as Record<string, string>;
      const wanted = labels["holdfast-place"];
      const found = [...machines.values()].filter(({ label }) => wanted === undefined || label === wanted);
      return { json: found.map((one) => shown(one, base)) };
    }
    if (method === "DELETE") return removeMachine(call, second ?? "");
    if (machine === undefined) return { status: 404, json: { message: "no such sandbox" } };
    if (first === "sandbox") return { json: shown(machine, base) };
    const action = rest.join("/");
    if (action === "process/execute") {
      const { command } = JSON.parse(body.toString()) as { command: string };
      return { json: { exitCode: await machine.run(command), result: "" } };
    }
    if (action === "files/upload" || action === "files/download") return files(call, machine);
    return { status: 404, json: { message: "no such route" } };
  }, key);
}

/** A server that speaks the API of E2B, and below `/daemon` that of the daemon of its sandboxes. */
export function startFakeE2b(): Promise<FakeService> {
  const key = "e2b_test";
  const shown = ({ id, label }: FakeMachine) => ({
    sandboxID: id,
    templateID: "base",
    envdAccessToken: `token-of-${id}`,
    metadata: { "holdfast-place": label },
  });
  return startService(async (call) => {
    const { method, url, machines, body, headers } = call;
    const [, first, second = "", third = ""] = url.pathname.split("/");
    if (first === "daemon") {
      const machine = machines.get(second);
      if (machine === undefined || headers["x-access-token"] !== `token-of-${second}`)
        return { status: 401, json: { message: "unauthorized" } };
      if (third === "files") return files(call, machine);
      const { process: asked } = JSON.parse(body.subarray(5).toString()) as { process: { args: string[] } };
      const exitCode = await machine.run(asked.args[1] ?? "");
      const end = {
        exited: true,
        status: `exit status ${exitCode}`,
        ...(exitCode === 0 ? {} : { exitCode }),
      };
      return {
        bytes: Buffer.concat([
          message(0, { event: { start: { pid: 7 } } }),
          message(0, { event: { keepalive: {} } }),
          message(0, { event: { end } }),
          message(2, {}),
        ]),
      };
    }
    if (headers["x-api-key"] !== key) return { status: 401, json: { message: "unauthorized" } };
    if (method === "DELETE") return removeMachine(call, second);
    if (method === "GET") {
      const wanted = new URLSearchParams(url.searchParams.get("metadata") ?? "").get("holdfast-place");
      return { json: [...machines.values()].filter(({ label }) => label === wanted).map(shown) };
    }
    if (third === "connect") {
      const machine = machines.get(second);
      return machine === undefined
        ? { status: 404, json: { message: "not found" } }
        : { json: shown(machine) };
    }
    const asked = JSON.parse(body.toString()) as {
      metadata: Record<string, string>;
      allow_internet_access?: boolean;
    };
    if (asked.allow_internet_access !== false)
      return { status: 400, json: { message: "this machine has no network" } };
    const made = new FakeMachine(asked.metadata["holdfast-place"] ?? "");
    machines.set(made.id, made);
    return { status: 201, json: shown(made) };
  }, key);
}

function message(flags: number, json: unknown): Buffer {
  const text = Buffer.from(JSON.stringify(json));
  const head = Buffer.alloc(5);
  head.writeUInt8(flags, 0);
  head.writeUInt32BE(text.length, 1);
  return Buffer.concat([head, text]);
}
