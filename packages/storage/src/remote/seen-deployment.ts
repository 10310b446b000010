// SeenDeployment: the deployment that a connection belongs to. Another coordinator may get the address of one
// that is away, such as the port of a stopped one. It would refuse the tokens as unknown.
//
//   - The id is that of the first call that succeeded. Until then every coordinator may be the one that is
//     meant.
//   - An answer without an id is that of a proxy or of a server without deployments. It proves nothing.

import { UnavailableError } from "@holdfast/core";

export class SeenDeployment {
  readonly #url: string;
  #id: string | undefined;

  constructor(url: string) {
    this.#url = url;
  }

  isMeant(id: string | undefined): boolean {
    return id === undefined || this.#id === undefined || id === this.#id;
  }

  /** @throws UnavailableError when the answer is that of another deployment: the one that is meant may come back. */
  check(id: string | undefined, isDone: boolean): void {
    if (id === undefined) return;
    if (!this.isMeant(id))
      throw new UnavailableError("storage_unavailable", `another coordinator answers at ${this.#url}`, {
        at: this.#url,
        got: `the deployment ${id}`,
        expected: `the deployment ${this.#id}, which answered here before`,
        fix: "start the coordinator of that deployment at this address again; or, if its storage was replaced on purpose, start this process again",
      });
    if (isDone) this.#id = id;
  }
}
