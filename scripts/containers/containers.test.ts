// The campaign `containers`: the image and the fleet of `examples/30-fleet-in-containers`, as its README says, and the pods of
// `examples/31-fleet-in-kubernetes`. Processes are killed and stopped, the image is replaced with sessions at work, and
// each effect happens once.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { afterAll, beforeAll, expect, test } from "vitest";
import { freePort } from "../release/verdaccio.ts";
import { ComposePlayer } from "./compose-player.ts";
import { ComposeProgram } from "./compose-program.ts";
import { KubernetesPlayer } from "./kubernetes-player.ts";
import * as images from "./local-images.ts";
import { RELEASE_AGENT, until } from "./release-agent.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const EXAMPLE = join(ROOT, "examples", "30-fleet-in-containers");
const KUBERNETES = join(ROOT, "examples", "31-fleet-in-kubernetes");
const AGENTS_IMAGE = "holdfast-test-agents";
const BUILT_IMAGE = "holdfast-test-fleet";
/** An image that is there may be named, instead of one that is built of this checkout. */
const IMAGE = process.env["HOLDFAST_TEST_IMAGE"] ?? BUILT_IMAGE;
/** A program that reads compose files, such as `podman-compose`. Without it they are played. */
const COMPOSE = process.env["HOLDFAST_TEST_COMPOSE"];
const NEXT_IMAGE = "holdfast-test-fleet:next";
const SIZE_GOAL_MB = 250;
const TIMEOUT_MS = 60 * 60_000;
const options = { ...ofCampaign, timeout: TIMEOUT_MS };

let folder: string;
/** Why nothing runs here; `undefined` where it does. */
let missing: string | undefined;
let env: NodeJS.ProcessEnv;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-containers-"));
  try {
    images.baseImage(folder);
    env = images.withSettings(images.podmanSettings(folder));
    images.postgresImage(folder);
    images.nginxImage(folder);
    images.pauseImage(folder);
  } catch (error) {
    missing = `podman runs no container here: ${String(error)}`;
    return;
  }
  cpSync(EXAMPLE, join(folder, "fleet"), { recursive: true });
  if (IMAGE !== BUILT_IMAGE) return;
  execFileSync(process.execPath, [join(ROOT, "scripts", "pack.ts")], { stdio: "pipe" });
  cpSync(join(ROOT, "dist", "packages"), join(folder, "fleet", "packages"), { recursive: true });
  images.build(
    IMAGE,
    join(folder, "fleet"),
    undefined,
    `--build-arg=BASE=${images.BASE_IMAGE}`,
    "--build-arg=HOLDFAST=./packages/*.tgz",
  );
}, TIMEOUT_MS);
afterAll(() => rmSync(folder, { recursive: true, force: true }), TIMEOUT_MS);

const podman = (...args: readonly string[]): string =>
  execFileSync("podman", args, { env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });

interface Refused {
  readonly status: number;
  readonly stderr: string;
}

/** A container that is expected to end with an error. */
function refused(...args: readonly string[]): Refused {
  try {
    podman("run", "--rm", ...args);
  } catch (error) {
    return error as Refused;
  }
  throw new Error(`it was not refused: ${args.join(" ")}`);
}

test("the image is small, has git, and runs as a user who is not root", options, ({ skip }) => {
  skip(missing !== undefined, missing);
  const archive = join(folder, "image.tar");
  podman("save", "--output", archive, IMAGE);
  execFileSync("gzip", [archive]);
  const mb = statSync(`${archive}.gz`).size / 1e6;
  console.log(`the image has ${mb.toFixed(0)} MB compressed`);
  rmSync(`${archive}.gz`);
  expect(mb).toBeLessThan(SIZE_GOAL_MB);
  const inside = podman(
    "run",
    "--rm",
    "--entrypoint",
    "sh",
    IMAGE,
    "-c",
    "id -u; git --version; holdfast --version",
  );
  expect(inside).toMatch(/^10001\ngit version [\d.]+\n0\.1\.0\n$/);
});

test(
  "a container without a volume, with one that it cannot write, or as root writes nothing",
  options,
  ({ skip }) => {
    skip(missing !== undefined, missing);
    expect(refused(IMAGE, "coordinator")).toMatchObject({
      status: 2,
      stderr: expect.stringContaining("/data is no volume"),
    });
    const asRoot = refused("--user", "0", "--tmpfs", "/data", IMAGE, "runner");
    expect(asRoot).toMatchObject({ status: 2, stderr: expect.stringContaining("runs as root") });
    const volume = join(folder, "volume");
    execFileSync("install", ["-d", "-m", "0755", volume]);
    const closed = refused("--volume", `${volume}:/data`, IMAGE, "coordinator");
    expect(closed).toMatchObject({
      status: 10,
      stderr: expect.stringContaining("cannot write to the volume"),
    });
    expect(readdirSync(volume)).toEqual([]);
  },
);

test("a volume of a newer version is refused, and stays as it is", options, async ({ skip }) => {
  skip(missing !== undefined, missing);
  const volume = join(folder, "newer");
  execFileSync("install", ["-d", "-m", "0700", "-o", "10001", volume]);
  const mounted = ["--volume", `${volume}:/data`];
  const id = podman("run", "--detach", ...mounted, IMAGE, "coordinator").trim();
  await until("the coordinator is healthy", () => podman("healthcheck", "run", id) !== undefined);
  podman("stop", id);
  expect(podman("inspect", "--format", "{{.State.ExitCode}}", id).trim()).toBe("143");
  podman("rm", id);
  const database = join(volume, "holdfast", "coordinator.db");
  const { DatabaseSync } = await import("node:sqlite");
  const newer = new DatabaseSync(database);
  newer.exec("PRAGMA user_version = 99");
  newer.close();
  const hash = (): string => createHash("sha256").update(readFileSync(database)).digest("hex");
  const before = hash();
  const again = refused(...mounted, IMAGE, "coordinator");
  expect(again).toMatchObject({ status: 11, stderr: expect.stringContaining("schema version 99") });
  expect(hash()).toBe(before);
});

test(
  "a fleet loses no session by a kill, a stop, a new image and an end of all, and each effect happens once",
  options,
  async ({ skip }) => {
    skip(missing !== undefined, missing);
    const at = join(folder, "fleet");
    const next = join(folder, "next");
    execFileSync("mkdir", [next]);
    const newNumber = `FROM ${IMAGE}\nUSER 0\nRUN grep -rl 'VERSION = "0.1.0"' /opt/holdfast/node_modules/@holdfast/core/dist | xargs sed -i 's/VERSION = "0.1.0"/VERSION = "0.2.0"/'\nUSER 10001:10001\n`;
    images.build(NEXT_IMAGE, next, newNumber);
    writeFileSync(join(at, "release.ts"), RELEASE_AGENT);
    certify(at);
    const port = await freePort();
    const project = `holdfast-test-${process.pid}`;
    const fleet =
      COMPOSE === undefined
        ? new ComposePlayer(at, project, env)
        : new ComposeProgram(COMPOSE, at, project, env);
    const variables = {
      DB_PASSWORD: "of-a-test",
      HTTPS_PORT: String(port),
      HOLDFAST_IMAGE: IMAGE,
      POSTGRES_IMAGE: images.POSTGRES_IMAGE,
      NGINX_IMAGE: images.NGINX_IMAGE,
    };
    try {
      const startedAt = performance.now();
      fleet.up(variables);
      const inCoordinator = (...args: readonly string[]): string =>
        fleet.podman("exec", fleet.nameOf("coordinator"), ...args);
      await until("the coordinator is healthy", () => inCoordinator("holdfast-entry", "healthy"));
      for (const name of ["one", "two"])
        inCoordinator("holdfast", "token", "create", name, "--kind", "registration", "-o", `/tokens/${name}`);
      const token = inCoordinator("cat", "/data/holdfast/admin-token").trim();
      const ask = askOver(port, readFileSync(join(at, "tls", "cert.pem"), "utf8"), token);
      await until("both runners are there", async () =>
        expect((await ask("runners")).runners).toHaveLength(2),
      );
      console.log(`the fleet stood after ${((performance.now() - startedAt) / 1_000).toFixed(1)} s`);
      const start = async (asks: boolean, slowMs: number): Promise<string> =>
        String((await ask("sessions", { agent: "release", input: { asks, slowMs } })).sessionId);
      const effects = (): readonly string[] =>
        ["runner-one", "runner-two"].flatMap((runner) =>
          fleet
            .podman("exec", fleet.nameOf(runner), "sh", "-c", "cat /data/effects 2>/dev/null || true")
            .split("\n")
            .filter(Boolean),
        );
      const begun = (ids: readonly string[]) => () =>
        expect(effects()).toEqual(expect.arrayContaining(ids.map((id) => `${id} before`)));
      const all: string[] = [];
      const startSome = async (slowMs: number): Promise<readonly string[]> => {
        const ids = await Promise.all([
          start(false, slowMs),
          start(true, slowMs),
          start(true, 0),
          start(false, slowMs),
        ]);
        all.push(...ids);
        await until("the sessions are at work", begun(ids));
        return ids;
      };

      await startSome(20_000);
      fleet.podman("kill", "--signal", "KILL", fleet.nameOf("runner-one"));
      await delay(1_000);
      fleet.podman("start", fleet.nameOf("runner-one")); // Podman starts no container again that a person has killed.
      fleet.podman("stop", fleet.nameOf("coordinator"));
      expect(
        fleet.podman("inspect", "--format", "{{.State.ExitCode}}", fleet.nameOf("coordinator")).trim(),
      ).toBe("143");
      fleet.podman("start", fleet.nameOf("coordinator"));
      await until("the coordinator is healthy again", () => inCoordinator("holdfast-entry", "healthy"));
      await startSome(20_000);
      fleet.up({ ...variables, HOLDFAST_IMAGE: NEXT_IMAGE });
      expect(inCoordinator("holdfast", "--version")).toBe("0.2.0\n");
      await startSome(20_000);
      fleet.down();
      fleet.up({ ...variables, HOLDFAST_IMAGE: NEXT_IMAGE });

      await until("all sessions have ended", async () => {
        for (const id of all) {
          const { status } = await ask(`sessions/${id}`);
          if (status === "input_required") await ask(`sessions/${id}/answer`, { answer: { approved: true } });
          expect([id, status]).toEqual([id, "completed"]);
        }
      });
      expect(effects().toSorted()).toEqual(all.flatMap((id) => [`${id} after`, `${id} before`]).toSorted());
    } finally {
      fleet.remove();
    }
  },
);

test(
  "pods lose no session by a stop, and only a step that outlasts it is begun again",
  options,
  async ({ skip }) => {
    skip(missing !== undefined, missing);
    const agents = join(folder, "agents");
    mkdirSync(agents);
    writeFileSync(join(agents, "release.ts"), RELEASE_AGENT);
    const containerfile = readFileSync(join(KUBERNETES, "Containerfile"), "utf8");
    images.build(AGENTS_IMAGE, agents, containerfile, `--build-arg=HOLDFAST=${IMAGE}`);
    const cluster = new KubernetesPlayer(KUBERNETES, folder, `holdfast-pods-${process.pid}`, env);
    try {
      const variables = {
        POSTGRES_USER: "holdfast",
        POSTGRES_DB: "holdfast",
        POSTGRES_PASSWORD: "of-a-test",
      };
      const settings = Object.entries(variables).flatMap((pair) => ["--env", pair.join("=")]);
      const db = cluster.run("db", ...settings, images.POSTGRES_IMAGE);
      // The database of the test has no certificate.
      const { "coordinator.json": text = "" } = cluster.configMap("coordinator");
      const coordinators = ["coordinator-a", "coordinator-b"];
      for (const pod of coordinators) {
        cluster.play("coordinator", pod, {
          images: { holdfast: IMAGE },
          secrets: { database: { password: variables.POSTGRES_PASSWORD } },
          hosts: { "db.example": [db] },
          files: { "coordinator.json": text.replace("?sslmode=verify-full", "") },
        });
        await until(`${pod} has started`, () => cluster.probe(pod, "startupProbe"));
        await until(`${pod} is ready`, () => cluster.probe(pod, "readinessProbe"));
      }
      expect(await cluster.ask("coordinator-a", "/livez", {})).toMatchObject({ status: 403 });

      const create = (name: string): string =>
        cluster.exec("coordinator-a", "holdfast", "token", "create", name, "--kind", "registration");
      const registration = { "runner-0": create("runner-0"), "runner-1": create("runner-1") };
      const playRunner = async (pod: string): Promise<void> => {
        cluster.play("runner", pod, {
          images: { "holdfast-agents": AGENTS_IMAGE },
          secrets: { registration },
          hosts: { coordinator: coordinators.map((name) => cluster.addressOf(name)) },
        });
        await until(`${pod} is registered`, () => cluster.probe(pod, "startupProbe"));
      };
      const linesOf = (pod: string, file: string): readonly string[] => {
        const path = join(cluster.claim(pod, "data"), file);
        return existsSync(path) ? readFileSync(path, "utf8").trim().split("\n") : [];
      };
      const token = cluster.exec("coordinator-b", "cat", "/data/holdfast/admin-token").trim();
      const headers = {
        host: "coordinator:8765",
        authorization: `Bearer ${token}`,
        "content-type": "application/json",
      };
      const ask = async (path: string, body?: object): Promise<Answer> => {
        const asked = body && JSON.stringify(body);
        const answer = await cluster.ask("coordinator-b", `/v1/${path}`, headers, asked);
        return JSON.parse(answer.text) as Answer;
      };
      const start = async (slowMs: number): Promise<string> =>
        String((await ask("sessions", { agent: "release", input: { asks: true, slowMs } })).sessionId);

      await playRunner("runner-0");
      const [short, long] = [await start(30_000), await start(75_000)];
      await until("both are at work", () =>
        expect(linesOf("runner-0", "begun")).toEqual(expect.arrayContaining([short, long])),
      );
      await playRunner("runner-1");
      const runnerIds = async (): Promise<readonly string[]> => {
        const { runners } = (await ask("runners")) as {
          readonly runners: readonly { readonly runnerId: string }[];
        };
        return runners.map(({ runnerId }) => runnerId).toSorted();
      };
      const before = await runnerIds();
      expect(before).toHaveLength(2);
      expect(cluster.stop("runner-0")).toBe(143);
      await until("the other one has begun it", () => expect(linesOf("runner-1", "begun")).toContain(long));
      await playRunner("runner-0"); // Its registration token is spent.
      expect(await runnerIds()).toEqual(before);
      expect(cluster.stop("coordinator-a")).toBe(143);
      for (const pod of ["runner-0", "runner-1"]) await cluster.probe(pod, "livenessProbe");

      await until("both have ended", async () => {
        for (const id of [short, long]) {
          const { status } = await ask(`sessions/${id}`);
          if (status === "input_required") await ask(`sessions/${id}/answer`, { answer: { approved: true } });
          expect([id, status]).toEqual([id, "completed"]);
        }
      });
      const all = (file: string): readonly string[] =>
        ["runner-0", "runner-1"].flatMap((pod) => linesOf(pod, file)).toSorted();
      expect(all("effects")).toEqual(
        [short, long].flatMap((id) => [`${id} after`, `${id} before`]).toSorted(),
      );
      expect(all("begun")).toEqual([short, long, long].toSorted());
    } finally {
      cluster.remove();
    }
  },
);

/** The line of the README that makes the certificate. */
function certify(at: string): void {
  const line = /^openssl req .*$/m.exec(readFileSync(join(EXAMPLE, "README.md"), "utf8"))?.[0] ?? "false";
  execFileSync("sh", ["-c", `mkdir -p tls && ${line}`], { cwd: at, stdio: "pipe" });
}

type Answer = Readonly<Record<string, unknown>>;

/** Asks the API through the proxy, by the name that the coordinator's configuration has. */
function askOver(port: number, ca: string, token: string): (path: string, body?: object) => Promise<Answer> {
  return (path, body) =>
    new Promise((resolve, reject) => {
      const headers = {
        host: "localhost:8443",
        authorization: `Bearer ${token}`,
        "content-type": "application/json",
      };
      const method = body === undefined ? "GET" : "POST";
      const where = {
        host: "127.0.0.1",
        servername: "localhost",
        port,
        path: `/v1/${path}`,
        method,
        headers,
        ca,
      };
      const asked = request(where, (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (part: string) => (text += part));
        response.on("end", () => {
          if ([200, 201].includes(response.statusCode!)) resolve(JSON.parse(text) as Answer);
          else reject(new Error(`${path}: ${response.statusCode} ${text}`));
        });
      });
      asked.on("error", reject).end(body === undefined ? undefined : JSON.stringify(body));
    });
}
