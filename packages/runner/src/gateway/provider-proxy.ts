// `ProviderProxy`: requests of an executor to model providers. The gateway adds the key, so that the executor never
// has it.
//
//   provider-proxy-1. A request goes to the address that this runner configured, and only to the paths of its provider.
//   provider-proxy-2. Headers in which a caller could send a key or a cookie are dropped, and the key is set here.
//   provider-proxy-3. Bodies pass as they come, in both directions: an event of a stream is not held back.
//   provider-proxy-4. A secret in a body is replaced, in both directions. An answer is therefore never compressed.

import { HoldfastError, UsageError } from "@holdfast/core";
import type { Environment, Redactor } from "@holdfast/runtime/internal";
import {
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { KEY_HEADERS } from "./gateway-guards.ts";

export interface Provider {
  /** A segment of the path: `/providers/{name}/…`. */
  readonly name: string;
  /** The base URL of the provider, without the paths below. */
  readonly upstream: string;
  /** The beginnings of the paths that may be called, such as `/v1/messages`. */
  readonly paths: readonly string[];
  readonly keyHeader: "authorization" | "x-api-key" | "x-goog-api-key";
  /** The key, read for each request. Must not throw. */
  readonly key: () => string;
  /** Variables for the executor: the base URL, which is the gateway's, and the key, which is the run's token. */
  readonly variables: { readonly baseUrl: string; readonly key: string };
  /** The part of the base URL in the variable that follows the provider's name, such as `/v1`. */
  readonly basePath?: string;
}

type Known = Pick<Provider, "key"> & { readonly upstream?: string };

/** Anthropic's API, for its own clients. */
export function anthropicProvider({ key, upstream = "https://api.anthropic.com" }: Known): Provider {
  return {
    name: "anthropic",
    upstream,
    key,
    paths: ["/v1/messages", "/v1/models"],
    keyHeader: "x-api-key",
    variables: { baseUrl: "ANTHROPIC_BASE_URL", key: "ANTHROPIC_API_KEY" },
  };
}

/** OpenAI's API, and others of its form, for OpenAI's clients. */
export function openaiProvider({ key, upstream = "https://api.openai.com" }: Known): Provider {
  return {
    name: "openai",
    upstream,
    key,
    paths: ["/v1/chat/completions", "/v1/responses", "/v1/embeddings", "/v1/models"],
    keyHeader: "authorization",
    variables: { baseUrl: "OPENAI_BASE_URL", key: "OPENAI_API_KEY" },
    basePath: "/v1",
  };
}

/** The providers that a profile of an executor may name. */
const PROVIDERS = { anthropic: anthropicProvider, openai: openaiProvider };
type ProviderName = keyof typeof PROVIDERS;
export const PROVIDER_NAMES = Object.keys(PROVIDERS) as readonly ProviderName[];

/** Names of providers, each with the name of the secret that is its key. */
export type ProviderKeys = Readonly<Partial<Record<ProviderName, string>>>;

/**
 * Providers by their names. The variable of a base URL, such as `ANTHROPIC_BASE_URL`, gives another address than the
 * provider's own.
 *
 * @param environment the environment of this process, never one of an executor.
 * @param secret the value of a secret. Its errors are thrown.
 * @throws UsageError for an address to which a key cannot be sent safely.
 */
export function namedProviders(
  keys: ProviderKeys,
  environment: Environment,
  secret: (name: string) => string,
): readonly Provider[] {
  return PROVIDER_NAMES.flatMap((name) => {
    const secretName = keys[name];
    if (secretName === undefined) return [];
    const key = secret(secretName);
    const provider = PROVIDERS[name]({ key: () => key });
    const address = environment[provider.variables.baseUrl]?.trim() ?? "";
    // OpenAI's clients have the version in the base URL.
    const upstream = address === "" ? provider.upstream : address.replace(/\/+$/, "").replace(/\/v1$/, "");
    checkProvider({ ...provider, upstream });
    return [{ ...provider, upstream }];
  });
}

/** The first segment of the paths of providers. */
const PATH = "/providers/";
const BODY_BYTES_MAX = 32 * 1024 * 1024;
/** Headers of one connection (RFC 9110, 7.6.1), and those that change with a body that is redacted. */
const DROPPED: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "content-length",
  "host",
  "proxy-authorization",
  "proxy-authenticate",
  "proxy-connection",
  "expect",
  "accept-encoding",
  "cookie",
  "set-cookie",
  "authorization",
  "forwarded",
  "via",
  "x-forwarded-for",
  "x-forwarded-host",
  ...KEY_HEADERS,
]);

export class ProviderProxy {
  readonly #providers: readonly Provider[];
  readonly #redactor: Redactor;
  readonly #agents = {
    "http:": new HttpAgent({ keepAlive: true }),
    "https:": new HttpsAgent({ keepAlive: true }),
  };

  /** @throws UsageError for an upstream to which a key cannot be sent safely. */
  constructor(providers: readonly Provider[], redactor: Redactor) {
    for (const provider of providers) checkProvider(provider);
    this.#providers = providers;
    this.#redactor = redactor;
  }

  /** The variables of the executor. */
  environment(origin: string, token: string): Record<string, string> {
    return Object.fromEntries(
      this.#providers.flatMap(({ name, variables, basePath = "" }) => [
        [variables.baseUrl, `${origin}${PATH}${name}${basePath}`],
        // mutant: provider-key-shown
        [variables.key, token],
      ]),
    );
  }

  /** Whether a path is one of a provider. */
  has(path: string): boolean {
    return path.startsWith(PATH);
  }

  /** @throws HoldfastError before the answer begins. */
  async forward(
    path: string,
    search: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const [, name, rest = ""] = /^\/providers\/([^/]+)(\/.*)$/.exec(path) ?? [];
    const provider = this.#providers.find((candidate) => candidate.name === name);
    // provider-proxy-1.
    // mutant: provider-path-unchecked
    if (
      provider === undefined ||
      !provider.paths.some((allowed) => rest === allowed || rest.startsWith(`${allowed}/`))
    )
      throw new HoldfastError("not_found", "the gateway has no such route of a provider");
    const answer = await this.#ask(provider, `${rest}${search}`, request, response);
    const encoding = answer.headers["content-encoding"] ?? "identity";
    if (encoding !== "identity") {
      answer.destroy();
      throw new HoldfastError("unavailable", `the provider ${provider.name} compressed its answer`);
    }
    response.writeHead(answer.statusCode ?? 502, kept(answer.headers));
    response.flushHeaders();
    await pipeline(answer, redacting(this.#redactor), response);
  }

  close(): void {
    for (const agent of Object.values(this.#agents)) agent.destroy();
  }

  #ask(
    provider: Provider,
    path: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<IncomingMessage> {
    const url = new URL(provider.upstream);
    const protocol = url.protocol as "http:" | "https:"; // `checkProvider`.
    const key = provider.key();
    this.#redactor.add(key);
    return new Promise((resolve, reject) => {
      const sent = (protocol === "https:" ? httpsRequest : httpRequest)(
        {
          protocol,
          hostname: url.hostname.replace(/^\[(.*)\]$/, "$1"),
          port: url.port,
          path: `${url.pathname.replace(/\/$/, "")}${path}`,
          method: request.method,
          agent: this.#agents[protocol],
          headers: {
            ...kept(request.headers),
            host: url.host,
            "accept-encoding": "identity",
            [provider.keyHeader]: provider.keyHeader === "authorization" ? `Bearer ${key}` : key,
          },
        },
        resolve,
      );
      const gone = (): void => void sent.destroy();
      response.once("close", gone);
      sent.once("error", () =>
        reject(new HoldfastError("unavailable", `the provider ${provider.name} cannot be reached`)),
      );
      pipeline(request, limited(), redacting(this.#redactor), sent).catch((error: unknown) => {
        if (HoldfastError.is(error)) reject(error);
      });
    });
  }
}

function kept(headers: IncomingMessage["headers"]): Record<string, string | string[]> {
  const entries = Object.entries(headers).filter(
    ([name, value]) => value !== undefined && !DROPPED.has(name),
  );
  return Object.fromEntries(entries as [string, string | string[]][]);
}

/** provider-proxy-3, provider-proxy-4. */
function redacting(redactor: Redactor): Transform {
  const stream = redactor.stream();
  return new Transform({
    transform: (chunk: Buffer, _encoding, done) => done(null, stream.write(chunk)),
    flush: (done) => done(null, stream.end()),
  });
}

function limited(): Transform {
  let bytes = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      if (bytes <= BODY_BYTES_MAX) return done(null, chunk);
      done(new HoldfastError("too_large", `the body has more than ${BODY_BYTES_MAX} bytes`));
    },
  });
}

function checkProvider({ name, upstream }: Provider): void {
  const url = URL.canParse(upstream) ? new URL(upstream) : undefined;
  const isLocal = ["127.0.0.1", "[::1]", "localhost"].includes(url?.hostname ?? "");
  const isSafe = url?.protocol === "https:" || (url?.protocol === "http:" && isLocal);
  if (isSafe && url.username === "" && url.search === "" && url.hash === "") return;
  throw new UsageError(`the address of the provider ${name} cannot be used`, {
    expected: "an https address, or an http address of this machine, without a user and a query",
    fix: "correct the address: over plain HTTP the key would be sent in the clear",
  });
}
