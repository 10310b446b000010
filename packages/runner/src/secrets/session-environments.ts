// `SessionEnvironments`: the environments that the coordinator has released for sessions of this runner, and the
// source of their secrets.
//
//   - Values are in memory alone. A task gets them while the runner holds the session by the claim of their
//     release. A further claim asks again, so that it has the values of then. Redactors keep them longer.
//   - They are asked for before the first task of a claim, and only for agents of the catalogue that may have them.
//   - A secret belongs to one session. No other session gets it, also not one of the same person.
//   - A coordinator that is away is asked again. A coordinator without the right key pauses the session.

import { defined, type Environments, HoldfastError, PauseError } from "@holdfast/core";
import { isStoredSecret, storedSecret, type SecretSource } from "@holdfast/system";

/** The claims of a runner, by which it asks its coordinator. */
export interface ReleasingClaims {
  /** The token of the claim by which the runner holds a session. */
  tokenOf(sessionId: string): number | undefined;
  /** Environments with the values of their secrets. It waits for a coordinator that is away. */
  release(sessionId: string, token: number): Promise<Environments>;
}

interface Known {
  readonly token: number;
  readonly asked: Promise<Released>;
  /** Set when the coordinator has answered. */
  released?: Released;
}

interface Released {
  /** Without the values of secrets. */
  readonly environments: Environments;
  /** By the names of `storedSecret`. */
  readonly secrets: ReadonlyMap<string, string>;
}

export class SessionEnvironments implements SecretSource {
  readonly #onSecrets: (values: readonly string[]) => void;
  /** The agents that may have environments of the coordinator, by name and version. */
  readonly #agents = new Set<string>();
  /** The sessions of these agents that the runner was given. */
  readonly #expected = new Set<string>();
  readonly #known = new Map<string, Known>();
  #claims: ReleasingClaims | undefined;
  #own: SecretSource = new Map();

  /** @param onSecrets called with values that the process holds from then on. Must not throw. */
  constructor(onSecrets: (values: readonly string[]) => void) {
    this.#onSecrets = onSecrets;
  }

  /** Called once, by the runner. @param own the secrets of this machine. */
  connect(claims: ReleasingClaims, own: SecretSource | undefined): void {
    this.#claims = claims;
    if (own !== undefined) this.#own = own;
  }

  /** The agent may have environments of the coordinator. */
  allow(agent: { readonly name: string; readonly version: string }): void {
    this.#agents.add(keyOf(agent));
  }

  /** The runner was given a session. */
  given(sessionId: string, agent: { readonly name: string; readonly version: string }): void {
    if (this.#agents.has(keyOf(agent))) this.#expected.add(sessionId);
  }

  /** Forgets the sessions that the runner does not hold any more. */
  prune(): void {
    for (const sessionId of this.#expected) {
      if (this.#claims?.tokenOf(sessionId) !== undefined) continue;
      this.#expected.delete(sessionId);
      this.#known.delete(sessionId);
    }
  }

  /** The environments of a session, without the values of secrets. @throws HoldfastError */
  async of(sessionId: string): Promise<Environments> {
    return (await this.#ask(sessionId))?.environments ?? {};
  }

  ready(sessionId: string): Promise<void> | undefined {
    if (!this.#expected.has(sessionId)) return undefined;
    const known = this.#known.get(sessionId);
    if (known?.released !== undefined && known.token === this.#claims?.tokenOf(sessionId)) return undefined;
    return this.#ask(sessionId).then(() => {});
  }

  get(name: string, sessionId?: string): string | undefined {
    if (!isStoredSecret(name)) return this.#own.get(name);
    // mutant: secret-of-another-session
    return this.#known.get(sessionId ?? "")?.released?.secrets.get(name);
  }

  #ask(sessionId: string): Promise<Released | undefined> {
    const token = this.#claims?.tokenOf(sessionId);
    if (token === undefined || !this.#expected.has(sessionId)) return Promise.resolve(undefined);
    const known = this.#known.get(sessionId);
    // mutant: release-of-an-earlier-claim
    if (known?.token === token) return known.asked;
    const asked: Known = { token, asked: this.#release(sessionId, token) };
    this.#known.set(sessionId, asked);
    asked.asked.then(
      (released) => (asked.released = released),
      () => {
        if (this.#known.get(sessionId) === asked) this.#known.delete(sessionId); // The next task asks again.
      },
    );
    return asked.asked;
  }

  async #release(sessionId: string, token: number): Promise<Released> {
    const released = releasedOf(await this.#claims!.release(sessionId, token).catch(asPause));
    if (released.secrets.size > 0) this.#onSecrets([...released.secrets.values()]);
    return released;
  }
}

function keyOf({ name, version }: { readonly name: string; readonly version: string }): string {
  return JSON.stringify([name, version]);
}

function releasedOf(answer: Environments): Released {
  const secrets = new Map<string, string>();
  const environments = Object.entries(answer).map(([name, keys]) => {
    const shown = Object.entries(keys).map(([key, { value, secret, required }]) => {
      if (secret !== true || value === undefined) return [key, { value, required }] as const;
      secrets.set(storedSecret(name, key), value);
      return [key, { secret, storedIn: name, required }] as const;
    });
    return [name, Object.fromEntries(shown)] as const;
  });
  return { environments: Object.fromEntries(environments), secrets };
}

/** The operator of the coordinator has to give it the key. The session then goes on. */
function asPause(error: unknown): never {
  if (!HoldfastError.is(error) || error.code !== "secret_key") throw error;
  const { message, got, expected, fix } = error;
  throw new PauseError("secret_key", message, {
    ...defined({ got, expected, fix }),
    pause: { reason: "auth_required" },
  });
}
