// The sandbox `docker`: a container of Docker or Podman over the folder, without network.
//
//   - It is used after its canaries have tried to break out, once in each process.
//   - No image is downloaded: a missing one is a reason, and the fix names the command.
//   - The check removes containers of Holdfast whose process has ended.

import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { realpath } from "node:fs/promises";
import { promisify } from "node:util";

import { hostEnvironment } from "../workspace/host-environment.ts";
import { WORKSPACE_LIMITS } from "../workspace/limits.ts";
import { programOnPath } from "../workspace/program-on-path.ts";
import { openWorkspace, type Workspace } from "../workspace/workspace.ts";
import { CONTAINER_CAPABILITIES, containerCommands, placeHash, PLACE_LABEL } from "./container-commands.ts";
import { checkByCanaries, type TrialLimits } from "./canaries/sandbox-canaries.ts";
import type { SandboxBackend, SandboxCheck, SandboxOptions, SandboxPlace } from "./sandbox-backend.ts";

const DEFAULT_IMAGE = "debian:stable-slim";
const ENGINES = ["docker", "podman"];
/** The variables by which the engines find their server, their files and their settings. */
const ENGINE_VARIABLES =
  /^(PATH|HOME|TMPDIR|XDG_.+|DOCKER_.+|CONTAINER_.+|CONTAINERS_.+|DBUS_SESSION_BUS_ADDRESS)$/;
const CALL_MS = 60_000;
/** The engine does not run, or has no such image. */
const NOT_READY = /connect to|daemon running|no such image|image not known|cannot find image/i;
/** How the kernel refuses an engine, as in a container without rights. */
const ENGINE_REFUSED = /(runc|crun|OCI runtime|namespace|mount|cgroup).*(not permitted|denied|not allowed)/i;

const TRIAL = ["version", "--format", "{{.Server.Version}}"];

export const containerSandbox: SandboxBackend = {
  name: "docker",
  aliases: ["podman"],
  masksPaths: true,
  keepsFilesHere: true,
  programs: ENGINES.map((name) => ({ name, program: name, args: TRIAL, version: /^\S+$/ })),
  capabilities: CONTAINER_CAPABILITIES,

  async check(): Promise<SandboxCheck> {
    const found = await findEngine();
    if (typeof found === "object") return found;
    await sweep(found);
    const place = { session: `canary-${randomUUID()}`, root: "" };
    return checkByCanaries({
      capabilities: CONTAINER_CAPABILITIES,
      found,
      fix: `try ${found} run ${image()}`,
      refusal: ENGINE_REFUSED,
      open: (root, options, limits) => openAt(found, { ...place, root }, options, limits),
    });
  },

  async open(place, options) {
    const found = await findEngine();
    if (typeof found === "object") throw new Error(found.reason);
    return openAt(found, place, options);
  },

  async destroy(place) {
    const found = await findEngine();
    if (typeof found === "string") await removeAll(found, [`label=${PLACE_LABEL}=${placeHash(place)}`]);
  },
};

function image(): string {
  return hostEnvironment["HOLDFAST_SANDBOX_IMAGE"] ?? DEFAULT_IMAGE;
}

/** The engine that answers and has the image, or the reason why there is none. */
async function findEngine(): Promise<string | Exclude<SandboxCheck, { status: "ready" }>> {
  const reasons: string[] = [];
  for (const name of ENGINES) {
    const program = programOnPath(name, hostEnvironment["PATH"] ?? "");
    if (program === undefined) continue;
    const problem = await call(program, ["image", "inspect", "--format", "{{.Id}}", image()]);
    if (problem.isDone) return program;
    reasons.push(`${name}: ${problem.text.trim().slice(0, 200)}`);
  }
  return reasons.length === 0
    ? {
        status: "unavailable",
        reason: "neither docker nor podman is on the PATH",
        fix: "install one of them, or use the sandbox virtual",
        cause: "absent",
      }
    : {
        status: "unavailable",
        reason: reasons.join("; "),
        fix: `start the engine, and get the image once: docker pull ${image()}. HOLDFAST_SANDBOX_IMAGE names another image`,
        ...(reasons.every((reason) => NOT_READY.test(reason)) ? { cause: "absent" } : {}),
      };
}

async function openAt(
  engine: string,
  place: SandboxPlace,
  options: SandboxOptions,
  trial?: TrialLimits,
): Promise<Workspace> {
  const root = await realpath(place.root).catch(() => place.root);
  const ids = { uid: process.getuid?.(), gid: process.getgid?.() };
  const { uid, gid } = ids;
  const commands = containerCommands({
    engine,
    engineEnvironment: engineEnvironment(),
    image: image(),
    place,
    root,
    fileBytes: options.limits?.fileBytes ?? WORKSPACE_LIMITS.fileBytes,
    ...trial,
    ...(uid === undefined || gid === undefined ? {} : { user: { uid, gid } }),
  });
  const workspace = await openWorkspace({ ...options, root, commands });
  if (!place.session.startsWith("canary-")) return workspace;
  const dispose = workspace.dispose.bind(workspace);
  return Object.assign(workspace, {
    dispose: async () => {
      await dispose();
      await removeAll(engine, [`label=${PLACE_LABEL}=${placeHash(place)}`]);
    },
  });
}

async function sweep(engine: string): Promise<void> {
  await removeAll(engine, [`label=${PLACE_LABEL}`, "status=exited"]);
}

async function removeAll(engine: string, filters: readonly string[]): Promise<void> {
  const { text } = await call(engine, ["ps", "-aq", ...filters.flatMap((filter) => ["--filter", filter])]);
  const ids = text.split("\n").filter((id) => /^[0-9a-f]+$/.test(id));
  if (ids.length > 0) await call(engine, ["rm", "--force", ...ids]);
}

function engineEnvironment(): Record<string, string> {
  return Object.fromEntries(
    Object.entries(hostEnvironment).flatMap(([name, value]) =>
      value !== undefined && ENGINE_VARIABLES.test(name) ? [[name, value]] : [],
    ),
  );
}

async function call(
  program: string,
  args: readonly string[],
): Promise<{ readonly isDone: boolean; readonly text: string }> {
  try {
    const { stdout } = await promisify(execFile)(program, args, {
      env: engineEnvironment(),
      timeout: CALL_MS,
    });
    return { isDone: true, text: stdout };
  } catch (error) {
    const { stderr = "", message } = error as Error & { readonly stderr?: string };
    return { isDone: false, text: stderr || message };
  }
}
