// The sandboxes `daytona` and `e2b`: a machine of a service, over a copy of the folder.
//
//   - It is used after its canaries have tried to break out, once in each process.
//   - The key is the secret that `keyName` names. It is sent to the service, and to no sandbox and no
//     command.

import { randomUUID } from "node:crypto";
import { realpath } from "node:fs/promises";

import { hostEnvironment } from "../../workspace/host-environment.ts";
import { WORKSPACE_LIMITS } from "../../workspace/limits.ts";
import { openWorkspace, type Workspace } from "../../workspace/workspace.ts";
import type { SandboxBackend, SandboxCheck, SandboxOptions, SandboxPlace } from "../sandbox-backend.ts";
import { checkByCanaries } from "../canaries/sandbox-canaries.ts";
import { daytona } from "./daytona.ts";
import { e2b } from "./e2b.ts";
import { labelOf, REMOTE_CAPABILITIES, remoteCommands } from "./remote-commands.ts";
import type { RemoteService } from "./remote-service.ts";

export interface RemoteSandboxOptions {
  readonly name: string;
  /** The name of the secret with the key. */
  readonly keyName: string;
  /** @returns `undefined` when there is none. */
  readonly key: () => Promise<string | undefined>;
  readonly service: (key: string) => RemoteService;
}

export function remoteSandbox({ name, keyName, key, service }: RemoteSandboxOptions): SandboxBackend {
  const connect = async (): Promise<RemoteService> => {
    const value = await key();
    if (value === undefined) throw new Error(`there is no key: ${keyName} is not set`);
    return service(value);
  };
  const openAt = async (
    at: RemoteService,
    place: SandboxPlace,
    options: SandboxOptions,
  ): Promise<Workspace> => {
    const root = await realpath(place.root).catch(() => place.root);
    const fileBytes = options.limits?.fileBytes ?? WORKSPACE_LIMITS.fileBytes;
    return openWorkspace({
      ...options,
      root,
      commands: remoteCommands({ service: at, place, root, fileBytes }),
    });
  };
  const remove = async (place: SandboxPlace): Promise<void> => removeAll(await connect(), place);

  return {
    name,
    capabilities: REMOTE_CAPABILITIES,

    async check(): Promise<SandboxCheck> {
      const fix = `set ${keyName} to a key of ${name}, in the environment or by \`holdfast secret set ${keyName}\``;
      if ((await key()) === undefined)
        return {
          status: "unavailable",
          reason: `there is no key: ${keyName} is not set`,
          fix,
          cause: "absent",
        };
      const places: SandboxPlace[] = [];
      try {
        const at = await connect();
        for (const id of await at.ids("stopped")) await at.remove(id);
        return await checkByCanaries({
          capabilities: REMOTE_CAPABILITIES,
          found: at.name,
          fix,
          open: (root, options) => {
            const place = { session: `canary-${randomUUID()}`, root };
            places.push(place);
            return openAt(at, place, options);
          },
        });
      } catch (error) {
        return { status: "unavailable", reason: (error as Error).message, fix };
      } finally {
        for (const place of places) await remove(place).catch(() => {});
      }
    },

    open: async (place, options) => openAt(await connect(), place, options),

    destroy: remove,
  };
}

async function removeAll(service: RemoteService, place: SandboxPlace): Promise<void> {
  for (const id of await service.ids({ label: labelOf(place) })) await service.remove(id);
}

/** Reads a secret by its name. */
export type SandboxKeys = (name: string) => Promise<string | undefined>;

const ofEnvironment: SandboxKeys = async (name) => hostEnvironment[name] || undefined;

/** The remote sandboxes of Holdfast. The addresses of self-hosted services come from the environment. */
export function remoteSandboxes(keys: SandboxKeys = ofEnvironment): readonly SandboxBackend[] {
  const variable = (name: string): string | undefined => hostEnvironment[name] || undefined;
  return [
    remoteSandbox({
      name: "daytona",
      keyName: "DAYTONA_API_KEY",
      key: () => keys("DAYTONA_API_KEY"),
      service: (key) =>
        daytona({
          url: variable("DAYTONA_API_URL") ?? "https://app.daytona.io/api",
          key,
          image: variable("DAYTONA_SNAPSHOT"),
        }),
    }),
    remoteSandbox({
      name: "e2b",
      keyName: "E2B_API_KEY",
      key: () => keys("E2B_API_KEY"),
      service: (key) =>
        e2b({ url: variable("E2B_API_URL") ?? "https://api.e2b.app", key, image: variable("E2B_TEMPLATE") }),
    }),
  ];
}
