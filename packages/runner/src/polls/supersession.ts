// `Supersession`: what a runner knows about newer code that replaces its own.
//
// *Current*: nothing has replaced it. *Announced*: the polls say that it is superseded, and no answer has
// come yet. *Superseded*: the coordinator knows. It gives the runner no session but those that come back
// (`earlier-code.ts` there).

import { KeptSessions } from "./kept-sessions.ts";

/** How long a poll of a superseded runner waits. Its answer says which kept sessions have left. */
const KEPT_LOOK_MS = 1_000;

export class Supersession {
  readonly kept = new KeptSessions();
  readonly #known = Promise.withResolvers<void>();
  #state: "current" | "announced" | "superseded" = "current";

  /** Resolves when the coordinator knows that the runner is superseded, or when the runner stops. */
  get known(): Promise<void> {
    return this.#known.promise;
  }

  /** @returns whether the next poll says something else than the last one. */
  announce(): boolean {
    if (this.#state !== "current") return false;
    this.#state = "announced";
    return true;
  }

  /** How long the next poll waits. The first one of a superseded runner is answered at once. */
  waitMs(pollTimeoutMs: number): number {
    switch (this.#state) {
      case "current":
        return pollTimeoutMs;
      case "announced":
        return 0;
      case "superseded":
        return Math.min(pollTimeoutMs, KEPT_LOOK_MS);
    }
  }

  /** The field of the next poll that says so. */
  get pollPart(): { readonly superseded?: { readonly kept: KeptSessions["all"] } } {
    return this.#state === "current" ? {} : { superseded: { kept: this.kept.all } };
  }

  /** Notes the answer to a poll. @returns whether it is the first one to a superseded runner. */
  answered(left: readonly string[]): boolean {
    this.kept.left(left);
    if (this.#state !== "announced") return false;
    this.#state = "superseded";
    this.#known.resolve();
    return true;
  }

  stopped(): void {
    this.#known.resolve();
  }
}
