// The keys of an external agent's program: which of them the gateway of a turn holds in place of the program
// (`ProgramKeys`).
//
//   - A program whose requests can go by the gateway gets the address of the gateway and a token of its turn.
//     The gateway adds the key.
//   - Every other program gets its keys. The commands of its model can then read them, and `holdfast doctor`
//     and `show` say so.
//   program-keys-3. Only files of the user decide about that, and no file of the project: an agent could
//       write one to get the key.
//   - An address of the user's own is the one that the gateway forwards to, where it can be used.

import { existsSync, readFileSync } from "node:fs";
import type { Environment } from "@holdfast/system";

/** The way to sign in, for a person. The environment goes before a stored key. */
export function signInBy(way: string, key: string): string {
  return `${way}, or set ${key}, or replace a stored one by \`holdfast secret set ${key}\``;
}

/** The APIs of model providers that the gateway of a turn knows. */
export type ModelApi = "anthropic" | "openai" | "google";

/** A key that the gateway of a turn holds. */
export interface HeldKey {
  readonly api: ModelApi;
  /** The variable whose value is the key. */
  readonly variable: string;
  readonly key: string;
  /** Other variables with keys that the program does not need then. */
  readonly unneeded?: readonly string[];
  /** The user's own address of the API, without the version. Absent for that of the vendor. */
  readonly upstream?: string;
  /** Headers of the user's own that the address needs. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether the API takes the key in the header `Authorization`, and not in a header of its own. */
  readonly isBearer?: boolean;
}

/** The gateway of a turn, as its program is told of it. */
export interface ModelGateway {
  readonly held: readonly HeldKey[];
  readonly token: string;
  /**
   * The base URL and the token by the variables of the APIs: `ANTHROPIC_BASE_URL`, `OPENAI_BASE_URL` (with
   * `/v1`), `GOOGLE_GEMINI_BASE_URL`, and their keys.
   */
  readonly env: Readonly<Record<string, string>>;
}

/** The names of the variables that a profile adds. */
export interface ChosenVariables {
  readonly variables?: readonly string[];
  readonly keys?: readonly string[];
}

/** How a program reaches its models by a gateway. A program without it gets its keys. */
export interface ProgramKeys {
  /** The keys that the gateway can hold. @param environment of the user, with the keys. */
  held(environment: Environment, chosen: ChosenVariables | undefined): readonly HeldKey[];
  /** The settings of the program besides the variables of the gateway. */
  settings?(
    gateway: ModelGateway,
    environment: Environment,
  ): { readonly env?: Readonly<Record<string, string>>; readonly args?: readonly string[] };
}

/** Which of a program's keys its own commands can read. */
export interface KeyReach {
  /** The variables whose values only the gateway has. */
  readonly held: readonly string[];
  /** The variables whose values the program has. */
  readonly readable: readonly string[];
}

/** The keys of a program, as its turn uses them. */
export interface KeyAccess extends KeyReach {
  readonly byGateway: readonly HeldKey[];
  /** The environment whose proxies the requests of the gateway take. */
  readonly proxies: Environment;
}

/** @param names the variables with keys of the program. */
export function keyAccess(
  { keys: names, programKeys }: { readonly keys: readonly string[]; readonly programKeys?: ProgramKeys },
  environment: Environment,
  chosen: ChosenVariables | undefined,
): KeyAccess {
  const byGateway = programKeys?.held(environment, chosen) ?? [];
  const hidden = new Set(byGateway.flatMap(({ variable, unneeded = [] }) => [variable, ...unneeded]));
  const set = [...new Set([...names, ...(chosen?.keys ?? [])])].filter((name) => isSet(environment[name]));
  return {
    byGateway,
    proxies: environment,
    held: set.filter((name) => hidden.has(name)),
    readable: set.filter((name) => !hidden.has(name)),
  };
}

/** @param env of the program, with its keys. */
export function withGateway(
  env: Readonly<Record<string, string>>,
  gateway: ModelGateway | undefined,
  more: Readonly<Record<string, string>> = {},
): Record<string, string> {
  if (gateway === undefined) return { ...env };
  const hidden = new Set(gateway.held.flatMap(({ variable, unneeded = [] }) => [variable, ...unneeded]));
  const kept = Object.fromEntries(Object.entries(env).filter(([name]) => !hidden.has(name)));
  return { ...kept, ...gateway.env, ...more, ...besideProxies(env) };
}

/** A proxy of the user's network does not reach this machine. */
function besideProxies(env: Readonly<Record<string, string>>): Record<string, string> {
  if (!isSet(env["HTTP_PROXY"]) && !isSet(env["HTTPS_PROXY"])) return {};
  return {
    NO_PROXY: [env["NO_PROXY"] ?? "", "127.0.0.1", "localhost"].filter((one) => one !== "").join(","),
  };
}

/** The APIs that are asked at an address of the user's own, where the name of a model says nothing of its price. */
export function unpricedApis(held: readonly HeldKey[]): readonly ModelApi[] {
  return held.flatMap(({ api, upstream }) =>
    upstream === undefined || VENDORS.includes(URL.parse(upstream)?.hostname ?? "") ? [] : [api],
  );
}

const VENDORS: readonly string[] = [
  "api.anthropic.com",
  "api.openai.com",
  "generativelanguage.googleapis.com",
];

/** The environment of a program that is only asked for its version. */
export function withoutKeysOf(
  env: Readonly<Record<string, string>>,
  names: readonly string[],
): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !names.includes(name)));
}

/**
 * The address that the gateway forwards to: an `https` address, or one of this machine.
 *
 * @param given with the version at its end or without it; empty for the address of the vendor.
 * @returns `null` for an address to which the gateway cannot send a key.
 */
function upstreamOf(given: string | undefined): { readonly upstream?: string } | null {
  const text = given?.trim() ?? "";
  if (text === "") return {};
  const url = URL.parse(text);
  if (url === null || url.username !== "" || url.search !== "" || url.hash !== "") return null;
  const isLocal = ["127.0.0.1", "[::1]", "localhost"].includes(url.hostname);
  if (url.protocol !== "https:" && !(url.protocol === "http:" && isLocal)) return null;
  return { upstream: text.replace(/\/+$/, "").replace(/\/v1(beta)?$/, "") };
}

/** A key of the user's environment that the gateway can hold. */
export function heldKey(
  api: ModelApi,
  variable: string,
  environment: Environment,
  baseUrl?: string,
): readonly HeldKey[] {
  const key = environment[variable]?.trim() ?? "";
  const address = upstreamOf(baseUrl);
  return key === "" || address === null ? [] : [{ api, variable, key, ...address }];
}

export function isSet(value: string | undefined): boolean {
  return value !== undefined && value.trim() !== "";
}

/** The text of a file of the user; empty for one that is not there or cannot be read. */
export function userText(path: string): string {
  try {
    return existsSync(path) ? readFileSync(path, "utf8") : "";
  } catch {
    return "";
  }
}
