// A registry of npm packages on this machine, for tests of a release (`startRegistry`). It is Verdaccio: it
// speaks npm's protocol by code that is not ours.

import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const PROGRAM = fileURLToPath(import.meta.resolve("verdaccio/package.json"));
const START_MS = 60_000;

export interface Registry {
  readonly url: string;
  /** npm's settings for this registry and for nothing else of this machine. */
  readonly env: NodeJS.ProcessEnv;
  stop(): Promise<void>;
}

/** @param uplink has the packages of other authors. Without it the registry has nothing but what is published to it. */
export async function startRegistry(uplink?: string): Promise<Registry> {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-registry-"));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}/`;
  const config = {
    storage: join(folder, "storage"),
    uplinks: uplink === undefined ? {} : { npm: { url: uplink } },
    packages: {
      // Ours are never asked for elsewhere, where somebody else may have the name.
      "@holdfast/*": { access: "$all", publish: "$all" },
      "{holdfast,create-holdfast,sample-*}": { access: "$all", publish: "$all" },
      "**": { access: "$all", ...(uplink === undefined ? {} : { proxy: "npm" }) },
    },
    max_body_size: "20mb",
    log: { type: "stdout", format: "pretty", level: "error" },
  };
  mkdirSync(join(folder, "cache"));
  writeFileSync(join(folder, "config.json"), JSON.stringify(config)); // YAML contains JSON.
  writeFileSync(join(folder, "npmrc"), `registry=${url}\n//127.0.0.1:${port}/:_authToken=anybody\n`);
  const args = [
    join(dirname(PROGRAM), "bin", "verdaccio"),
    "--config",
    join(folder, "config.json"),
    "--listen",
    `127.0.0.1:${port}`,
  ];
  const child = spawn(process.execPath, args, { cwd: folder, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (output += text));
  const stop = async (): Promise<void> => {
    const ended = child.exitCode === null && child.signalCode === null ? once(child, "exit") : undefined;
    child.kill("SIGKILL");
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  const until = performance.now() + START_MS;
  while (!(await answers(url))) {
    if (child.exitCode === null && performance.now() < until) continue;
    await stop();
    throw new Error(`the registry did not start: ${output}`);
  }
  const env = {
    ...npmFree(process.env),
    PATH: `${dirname(process.execPath)}:${process.env["PATH"] ?? ""}`,
    NPM_CONFIG_USERCONFIG: join(folder, "npmrc"),
    NPM_CONFIG_CACHE: join(folder, "cache"),
    NPM_CONFIG_UPDATE_NOTIFIER: "false",
    NPM_CONFIG_AUDIT: "false",
    NPM_CONFIG_FUND: "false",
  };
  return { url, env, stop };
}

/** `npm run` hands its settings down, and they would go before those of the file. */
function npmFree(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !/^npm_config_/i.test(name)));
}

async function answers(url: string): Promise<boolean> {
  try {
    return (await fetch(`${url}-/ping`, { signal: AbortSignal.timeout(2_000) })).ok;
  } catch {
    await new Promise((resolve) => setTimeout(resolve, 50));
    return false;
  }
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { readonly port: number };
  server.close();
  await once(server, "close");
  return port;
}
