// SeenDeployment: the deployment that a connection belongs to. Another coordinator may get the address of one
// that is away, such as the port of a stopped one. It would refuse the tokens as unknown.
//
//   - The addresses of one connection lead to one deployment.
//   - The id is that of the first call that succeeded. Until then every coordinator may be the one that is
//     meant.
//   - An answer without an id is that of a proxy or of a server without deployments. It proves nothing.

import { UnavailableError } from "@holdfast/core";

/** The deployment, as all addresses of a connection know it. */
export interface DeploymentOfAll {
  id?: string;
}

export class SeenDeployment {
  readonly #url: string;
  readonly #seen: DeploymentOfAll;

  constructor(url: string, seen: DeploymentOfAll) {
    this.#url = url;
    this.#seen = seen;
  }

  isMeant(id: string | undefined): boolean {
    return id === undefined || this.#seen.id === undefined || id === this.#seen.id;
  }

  /** @throws UnavailableError when the answer is that of another deployment: the one that is meant may come back. */
  check(id: string | undefined, isDone: boolean): void {
    if (id === undefined) return;
    if (!this.isMeant(id))
      throw new UnavailableError("storage_unavailable", `another coordinator answers at ${this.#url}`, {
        at: this.#url,
        got: `the deployment ${id}`,
        expected: `the deployment ${this.#seen.id}, which answered before`,
        fix: "start the coordinator of that deployment at this address again; or, if its storage was replaced on purpose, start this process again",
      });
    if (isDone) this.#seen.id = id;
  }
}
