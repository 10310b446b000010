// Runs commands of a workspace in a container of Docker or Podman (`containerCommands`).
//
//   - A session has one container. Its name is made of the session, the folder, the image and the guarded
//     places, so that every process finds it. It is made before the first command that needs it, and two
//     processes that make it at once get one.
//   - A container sees the folder and the files of its image. It has no network and no capability, and its
//     memory and processes are limited. `.git` and the places that give rights are read-only in it, and
//     `.holdfast` is hidden. A folder without them gets empty ones, and a command is refused where one of
//     them is a link (`guardPlaces`). Places below any folder are guarded too, and databases hidden. A place
//     that a command makes is renamed after it (`nested-places.ts`).
//   - Commands of a container run one after the other. After each one, every process but the first is ended,
//     also one that left its group or session.
//   - The first process ends after a day, and the engine then removes the container. A later command makes a
//     new one.
//   - Values of variables reach the engine in its environment and not in its arguments. Only those of
//     variables that the engine itself reads are arguments.

import { createHash } from "node:crypto";
import { basename } from "node:path";
import { MIB } from "@holdfast/core";

import { ISOLATED_CAPABILITIES, type WorkspaceCapabilities } from "../workspace/capabilities.ts";
import { hostCommands, type CommandRunner } from "../workspace/command-runner.ts";
import type { Execution, Launch } from "../workspace/execute.ts";
import { guardPlaces, refusedExecution, type GuardedPlaces } from "../workspace/guarded-places.ts";
import { findMasked } from "./mounts/masked-places.ts";
import { mountsOf, type Mount } from "./mounts/mount-list.ts";
import { findNested, withoutNewPlaces } from "./mounts/nested-places.ts";
import type { SandboxPlace } from "./sandbox-backend.ts";

/** The label of all containers of Holdfast. Its value names the place. */
export const PLACE_LABEL = "dev.holdfast.place";

export interface ContainerOptions {
  /** The program of the engine, as an absolute path. */
  readonly engine: string;
  /** The variables that the engine itself needs, such as PATH, HOME and DOCKER_HOST. */
  readonly engineEnvironment: Readonly<Record<string, string>>;
  readonly image: string;
  readonly place: SandboxPlace;
  /** The folder, without symbolic links. */
  readonly root: string;
  readonly fileBytes: number;
  /** The memory of the container and of each of its processes. */
  readonly memoryBytes?: number;
  /** The ids of the user whose files the folder holds; those of the image by default. */
  readonly user?: { readonly uid: number; readonly gid: number };
}

/** The engine counts the processes of a container, also those of root. */
export const CONTAINER_CAPABILITIES: WorkspaceCapabilities = {
  ...ISOLATED_CAPABILITIES,
  exec: "image",
  limits: [...ISOLATED_CAPABILITIES.limits, "processes"],
};

const TTL_SECONDS = 24 * 3_600;
const MEMORY_BYTES = 4_096 * MIB;
const PROCESSES = 1_024;
const ENGINE_MS = 60_000;

/** The hash that names the containers of one place. */
export function placeHash({ session, root }: SandboxPlace): string {
  return createHash("sha256").update(`${session}\0${root}`).digest("hex").slice(0, 32);
}

export function containerCommands(options: ContainerOptions): CommandRunner {
  const host = hostCommands();
  let last: Promise<unknown> = Promise.resolve();
  const engine = (args: readonly string[]) =>
    host.run({ ...quiet(options), argv: [options.engine, ...args] }, false);
  const endAll = (name: string) => engine(["exec", name, "/bin/sh", "-c", "kill -9 -1"]);

  /** The container that the last command found or made. */
  let found: string | undefined;
  /** @returns the call of the engine that failed. */
  const findOrMake = async (name: string, mounts: readonly Mount[]): Promise<Execution | undefined> => {
    const state = await engine(["inspect", "--format", "{{.State.Running}}", name]);
    if (state.stdout.trim() === "true") return undefined;
    const made = await engine(createArguments(name, mounts, options));
    return isSuccess(made) || /already in use|Conflict/i.test(made.stderr) ? undefined : made;
  };
  const runInside = async (request: Launch): Promise<Execution> => {
    const places = guardPlaces(options.root);
    if (typeof places === "string") return refusedExecution(request, places);
    const masked = findMasked(options.root, request.mask);
    if (typeof masked === "string") return refusedExecution(request, masked);
    const mounts = mountsOf(options.root, places, findNested(options.root), masked);
    const name = containerName(places, mounts, options);
    const problem = found === name ? undefined : await findOrMake(name, mounts);
    if (problem !== undefined) return { ...problem, command: request.command };
    found = name;
    const { args, env } = executeArguments(name, request, options);
    return withoutNewPlaces(options.root, masked, async () => {
      const ran = await host.run(
        { ...request, argv: [options.engine, ...args], env, cwd: options.root },
        false,
      );
      const ended = await endAll(name); // The next command must not meet processes of this one.
      if (!isSuccess(ended)) found = undefined; // It is gone, and the next command makes another one.
      return ran;
    });
  };

  return {
    sandbox: "docker",
    capabilities: CONTAINER_CAPABILITIES,
    containment:
      "commands run in a container without network; they see the files of its image and can change the files of this folder alone",
    run: (request, isOwn) => {
      if (isOwn) return host.run(request, true);
      const running = last.then(() => runInside(request));
      last = running.catch(() => {});
      return running;
    },
    endTagged: async (tag) => {
      await host.endTagged(tag);
      const label = `label=${PLACE_LABEL}=${placeHash(options.place)}`;
      const { stdout } = await engine(["ps", "--quiet", "--filter", label]);
      for (const id of stdout.split("\n").filter((line) => line !== "")) await endAll(id);
    },
    close: () => host.close(),
  };
}

/**
 * A folder that gets another `.git`, also below it, or other files that rules deny, gets another container
 * with the right mounts.
 */
function containerName(
  { identity }: GuardedPlaces,
  mounts: readonly Mount[],
  { place, image }: ContainerOptions,
): string {
  const hash = createHash("sha256")
    .update(`${image}\0${identity}\0${JSON.stringify(mounts)}`)
    .digest("hex");
  return `holdfast-${placeHash(place)}-${hash.slice(0, 8)}`;
}

/** The arguments that make a container. */
export function createArguments(
  name: string,
  mounts: readonly Mount[],
  options: ContainerOptions,
): readonly string[] {
  const { image, place, root, user, memoryBytes = MEMORY_BYTES } = options;
  // Podman otherwise copies the files of the hidden folder into the one that hides it.
  const hidden = basename(options.engine) === "podman" ? "ro,notmpcopyup" : "ro";
  const stays = `end=$(($(date +%s) + ${TTL_SECONDS})); while [ $(date +%s) -lt $end ]; do sleep 60; done`;
  const life = "run --detach --rm --pull never --stop-timeout 0".split(" ");
  const isolation = "--network none --cap-drop ALL --security-opt no-new-privileges".split(" ");
  const limits =
    `--memory ${Math.floor(memoryBytes / MIB)}m --pids-limit ${PROCESSES} --read-only --tmpfs /tmp`.split(
      " ",
    );
  const owner = user === undefined ? [] : ["--user", `${user.uid}:${user.gid}`];
  const isMounted = mounts.some(({ path }) => path === root);
  const folder = [...(isMounted ? [] : ["--volume", `${root}:${root}`]), "--workdir", root];
  const guard = mounts.flatMap(({ path, kind }) => {
    switch (kind) {
      case "hidden folder":
        return ["--tmpfs", `${path}:${hidden}`];
      case "hidden file":
        return ["--volume", `/dev/null:${path}:ro`];
      case "read-only":
        return ["--volume", `${path}:${path}:ro`];
      case "writable":
        return ["--volume", `${path}:${path}`];
    }
  });
  const names = ["--name", name, "--label", `${PLACE_LABEL}=${placeHash(place)}`];
  const first = ["--entrypoint", "/bin/sh", image, "-c", stays];
  return [...life, ...names, ...isolation, ...limits, ...owner, ...folder, ...guard, ...first];
}

/** The arguments and the environment of the call that runs a command in a container. */
export function executeArguments(
  name: string,
  { argv, cwd, env }: Pick<Launch, "argv" | "cwd" | "env">,
  {
    engineEnvironment,
    fileBytes,
    memoryBytes = MEMORY_BYTES,
  }: Pick<ContainerOptions, "engineEnvironment" | "fileBytes" | "memoryBytes">,
): { readonly args: readonly string[]; readonly env: Readonly<Record<string, string>> } {
  const given = { ...env, TMPDIR: "/tmp" };
  const variables = Object.entries(given).flatMap(([variable, value]) => [
    "--env",
    Object.hasOwn(engineEnvironment, variable) ? `${variable}=${value}` : variable,
  ]);
  // Blocks have 512 bytes, and the memory is that of each process, in KiB.
  const limits = `ulimit -f ${Math.floor(fileBytes / 512)}; ulimit -d ${Math.floor(memoryBytes / 1_024)}; ulimit -c 0`;
  // The shell reports a program that does not exist by the exit code 127.
  const command = ["/bin/sh", "-c", `${limits}; exec "$@"`, "sh", ...argv];
  return {
    args: ["exec", "--interactive", "--workdir", cwd, ...variables, name, ...command],
    env: { ...given, ...engineEnvironment },
  };
}

/** A call of the engine without a person who waits for its output. */
function quiet({ engineEnvironment, root }: ContainerOptions): Launch {
  return {
    argv: ["true"],
    command: "",
    cwd: root,
    env: engineEnvironment,
    timeoutMs: ENGINE_MS,
    killGraceMs: 1_000,
    outputBytes: 10_000,
    input: undefined,
    signal: undefined,
    onOutput: undefined,
    tag: undefined,
    mask: undefined,
  };
}

function isSuccess({ end }: Execution): boolean {
  return end.type === "exit" && end.exitCode === 0;
}
