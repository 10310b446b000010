// The sandboxes of a process (`Sandboxes`): finds the workspace of an address, and says whether a sandbox can
// run here.
//
//   - A sandbox is used only after its check. A machine that cannot run it refuses the session before it
//     starts.
//   - One process opens one workspace for an address.

import { didYouMean, HoldfastError } from "@holdfast/core";

import type { Workspace } from "../workspace/workspace.ts";
import { bubblewrapSandbox } from "./bubblewrap-sandbox.ts";
import { containerSandbox } from "./container-sandbox.ts";
import { FILESYSTEM, filesystemSandbox } from "./filesystem-sandbox.ts";
import {
  readAddress,
  writeAddress,
  type SandboxAddress,
  type SandboxBackend,
  type SandboxCheck,
  type SandboxOptions,
  type SandboxPlace,
} from "./sandbox-backend.ts";
import { remoteSandboxes, type SandboxKeys } from "./remote/remote-sandbox.ts";
import { seatbeltSandbox } from "./seatbelt/seatbelt-sandbox.ts";
import { virtualSandbox } from "./virtual-sandbox.ts";

/** Open workspaces of one process. A workspace that was forgotten is opened again. */
const OPEN_MAX = 1_000;

/** Options of `ownSandboxes`. */
export interface OwnSandboxesOptions {
  /** Reads the keys of remote services; from the environment by default. */
  readonly keys?: SandboxKeys;
  /** Remembers tests of sandboxes that are not repeated in each process. */
  readonly testedFile?: string;
  /**
   * Whether each command of `filesystem` has a user namespace of its own, where the system allows one; `true`
   * by default.
   */
  readonly commandNamespaces?: boolean;
}

/** The backends of Holdfast. */
export function ownSandboxes({
  keys,
  testedFile,
  commandNamespaces = true,
}: OwnSandboxesOptions = {}): readonly SandboxBackend[] {
  return [
    filesystemSandbox(commandNamespaces),
    virtualSandbox(testedFile),
    bubblewrapSandbox,
    seatbeltSandbox,
    containerSandbox,
    ...remoteSandboxes(keys),
  ];
}

/** The backend of Holdfast that has this name, or this other name. */
export function ownSandbox(name: string): SandboxBackend | undefined {
  return ownSandboxes().find(isNamed(name));
}

function isNamed(wanted: string): (backend: SandboxBackend) => boolean {
  return ({ name, aliases = [] }) => name === wanted || aliases.includes(wanted);
}

/** The sandboxes of this process by their names. `open` finds the workspace of an address. */
export class Sandboxes {
  readonly #backends: readonly SandboxBackend[];
  readonly #options: SandboxOptions;
  readonly #checks = new Map<string, Promise<SandboxCheck>>();
  readonly #open = new Map<string, Promise<Workspace>>();

  constructor(backends: readonly SandboxBackend[] = ownSandboxes(), options: SandboxOptions = {}) {
    this.#backends = backends;
    this.#options = options;
  }

  get names(): readonly string[] {
    return this.#backends.map(({ name }) => name);
  }

  /** The text that names the sandbox in inputs of tasks. A folder without isolation is named by its path. */
  addressOf(name: string, place: SandboxPlace): string {
    const { name: backend } = this.#find(name);
    return backend === FILESYSTEM ? place.root : writeAddress({ ...place, backend });
  }

  /**
   * Checks that a sandbox can run on this machine.
   *
   * @throws HoldfastError `policy_denied` with the reason, `agent_invalid` for a name that no sandbox has.
   */
  async require(name: string): Promise<void> {
    const backend = this.#find(name);
    const check = await this.check(backend.name);
    if (check.status === "ready") return;
    throw new HoldfastError(
      "policy_denied",
      `the sandbox "${backend.name}" cannot run on this machine: ${check.reason}`,
      { expected: `a machine that can run the sandbox "${backend.name}"`, fix: check.fix },
    );
  }

  /** @throws HoldfastError `agent_invalid` for a name that no sandbox has. */
  check(name: string): Promise<SandboxCheck> {
    const backend = this.#find(name);
    const known = this.#checks.get(backend.name);
    if (known !== undefined) return known;
    const check = backend.check();
    this.#checks.set(backend.name, check);
    // A missing program may be installed while this process runs.
    void check.then(
      ({ status }) => status === "ready" || this.#checks.delete(backend.name),
      () => this.#checks.delete(backend.name),
    );
    return check;
  }

  /** The workspace of an address, or of the path of a folder. As a `WorkspaceSource`. */
  readonly open = (text: string): Promise<Workspace> => {
    const known = this.#open.get(text);
    if (known !== undefined) return known;
    const address = readAddress(text) ?? { backend: FILESYSTEM, session: "", root: text };
    const opening = this.#openAt(address);
    this.#open.set(text, opening);
    opening.catch(() => this.#open.delete(text)); // It may be there the next time.
    const [oldest] = this.#open.keys();
    if (this.#open.size > OPEN_MAX && oldest !== undefined) this.#open.delete(oldest);
    return opening;
  };

  /** Removes the sandbox of an address. Files of this machine's folder stay. */
  async destroy(text: string): Promise<void> {
    const address = readAddress(text);
    const opened = this.#open.get(text);
    this.#open.delete(text);
    await opened?.then((workspace) => workspace.dispose()).catch(() => {});
    if (address !== undefined) await this.#find(address.backend).destroy(address);
  }

  /**
   * Removes the sandboxes of a session that are open here. A service that is away, or that another process has
   * used for the session, removes its sandbox after its TTL.
   */
  async destroyOf(sessionId: string): Promise<void> {
    const texts = [...this.#open.keys()].filter((text) => readAddress(text)?.session === sessionId);
    await Promise.allSettled(texts.map((text) => this.destroy(text)));
  }

  async #openAt({ backend, ...place }: SandboxAddress): Promise<Workspace> {
    await this.require(backend);
    return this.#find(backend).open(place, this.#options);
  }

  #find(name: string): SandboxBackend {
    const backend = this.#backends.find(isNamed(name));
    if (backend !== undefined) return backend;
    throw new HoldfastError("agent_invalid", `there is no sandbox "${name}"${didYouMean(name, this.names)}`, {
      got: name,
      expected: this.names.join(", "),
      fix: "name one of these in the agent's file, or leave `sandbox` out for the default",
    });
  }
}
