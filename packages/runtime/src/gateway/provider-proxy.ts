// `ProviderProxy`: requests of an executor, or of the program of an external agent, to model providers. The
// gateway adds the key, so that the program never has it.
//
//   - A request goes to the address that this machine configured. It is one of the calls of its provider, by
//     method and path. A path is compared as it was sent, and a part of it with an encoded character matches
//     nothing.
//   - Only headers of the list pass, so a caller sends no key, no cookie and no account. Key, organization
//     and project are set here, from the environment of this machine.
//   - Bodies pass as they come, in both directions: an event of a stream is not held back.
//   - A secret in a body or in a header of an answer is replaced, in both directions. No body is therefore
//     compressed.
//   provider-proxy-5. A call of a model that its caller does not admit is answered with the reason, and
//       nothing is sent.

import { HoldfastError, MIB, UsageError } from "@holdfast/core";
import type { Environment, Redactor } from "@holdfast/system";
import {
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";

export interface Provider {
  /** A segment of the path: `/providers/{name}/…`. */
  readonly name: string;
  /** The base URL of the provider, without the paths below. */
  readonly upstream: string;
  /**
   * The method and path of each call that may be made, such as `POST /v1/messages`. `*` stands for one part
   * of a path, or for its beginning.
   */
  readonly calls: readonly `${"GET" | "POST"} /${string}`[];
  /** Headers that are set in each request, beside the key. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly keyHeader: "authorization" | "x-api-key" | "x-goog-api-key";
  /** The key, read for each request. Must not throw. */
  readonly key: () => string;
  /** Variables for the executor: the base URL, which is the gateway's, and the key, which is the run's token. */
  readonly variables: { readonly baseUrl: string; readonly key: string };
  /** The part of the base URL in the variable that follows the provider's name, such as `/v1`. */
  readonly basePath?: string;
}

type Known = Pick<Provider, "key" | "headers"> & { readonly upstream?: string };

/** Anthropic's API, for its own clients. */
export function anthropicProvider({
  key,
  upstream = "https://api.anthropic.com",
  headers = {},
}: Known): Provider {
  return {
    name: "anthropic",
    upstream,
    key,
    headers,
    // Batches, files and stored messages belong to the whole account.
    calls: ["POST /v1/messages", "POST /v1/messages/count_tokens", "GET /v1/models", "GET /v1/models/*"],
    keyHeader: "x-api-key",
    variables: { baseUrl: "ANTHROPIC_BASE_URL", key: "ANTHROPIC_API_KEY" },
  };
}

/** OpenAI's API, and others of its form, for OpenAI's clients. */
export function openaiProvider({ key, upstream = "https://api.openai.com", headers = {} }: Known): Provider {
  return {
    name: "openai",
    upstream,
    key,
    headers,
    // Stored completions and responses are read by GET, and belong to the whole account.
    calls: [
      "POST /v1/chat/completions",
      "POST /v1/responses",
      "POST /v1/responses/compact",
      "POST /v1/responses/input_tokens",
      "POST /v1/embeddings",
      "GET /v1/models",
      "GET /v1/models/*",
    ],
    keyHeader: "authorization",
    variables: { baseUrl: "OPENAI_BASE_URL", key: "OPENAI_API_KEY" },
    basePath: "/v1",
  };
}

/** Google's API of Gemini, for its own clients. */
export function googleProvider({
  key,
  upstream = "https://generativelanguage.googleapis.com",
  headers = {},
}: Known): Provider {
  return {
    name: "google",
    upstream,
    key,
    headers,
    // Files, caches and batches belong to the whole account.
    calls: [
      "POST /v1beta/models/*:generateContent",
      "POST /v1beta/models/*:streamGenerateContent",
      "POST /v1beta/models/*:countTokens",
      "POST /v1beta/models/*:embedContent",
      "GET /v1beta/models",
      "GET /v1beta/models/*",
    ],
    keyHeader: "x-goog-api-key",
    variables: { baseUrl: "GOOGLE_GEMINI_BASE_URL", key: "GEMINI_API_KEY" },
  };
}

/** The providers that a profile of an executor may name. */
const PROVIDERS = { anthropic: anthropicProvider, openai: openaiProvider };
/** The account that the operator of a runner means: headers of a provider, each with the variable of its value. */
const ACCOUNT: Readonly<Partial<Record<string, Readonly<Record<string, string>>>>> = {
  openai: { "openai-organization": "OPENAI_ORG_ID", "openai-project": "OPENAI_PROJECT_ID" },
};
type ProviderName = keyof typeof PROVIDERS;
export const PROVIDER_NAMES = Object.keys(PROVIDERS) as readonly ProviderName[];

/** Names of providers, each with the name of the secret that is its key. */
export type ProviderKeys = Readonly<Partial<Record<ProviderName, string>>>;

/**
 * Providers by their names. The variable of a base URL, such as `ANTHROPIC_BASE_URL`, gives another address
 * than the provider's own.
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
    const headers = Object.entries(ACCOUNT[name] ?? {}).flatMap(([header, variable]) => {
      const value = environment[variable]?.trim() ?? "";
      return value === "" ? [] : [[header, value] as const];
    });
    const provider = PROVIDERS[name]({ key: () => key, headers: Object.fromEntries(headers) });
    const address = environment[provider.variables.baseUrl]?.trim() ?? "";
    // OpenAI's clients have the version in the base URL.
    const upstream = address === "" ? provider.upstream : address.replace(/\/+$/, "").replace(/\/v1$/, "");
    checkProvider({ ...provider, upstream });
    return [{ ...provider, upstream }];
  });
}

/** The first segment of the paths of providers. */
const PATH = "/providers/";
const BODY_BYTES_MAX = 32 * MIB;
/** Headers of a request that pass. */
const SENT = /^(accept|content-type|user-agent|anthropic-(version|beta)|openai-beta|x-stainless-.+)$/;
/**
 * Headers of an answer that do not pass: those of one connection (RFC 9110, 7.6.1), and those that change
 * with a redacted body.
 */
const DROPPED =
  /^(connection|keep-alive|te|trailer|transfer-encoding|upgrade|content-length|proxy-.+|set-cookie|via)$/;

export class ProviderProxy {
  readonly #providers: readonly Provider[];
  readonly #redactor: Redactor;
  readonly #admit: (() => Promise<void>) | undefined;
  readonly #agents: { readonly "http:": HttpAgent; readonly "https:": HttpsAgent };

  /**
   * @param proxies an environment whose `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` count for the requests.
   * @param admit rejects with a HoldfastError for a call of a model that may not be made (provider-proxy-5).
   *   May be called for several calls at a time.
   * @throws UsageError for an upstream to which a key cannot be sent safely.
   */
  constructor(
    providers: readonly Provider[],
    redactor: Redactor,
    { proxies = {}, admit }: { readonly proxies?: Environment; readonly admit?: () => Promise<void> } = {},
  ) {
    for (const provider of providers) checkProvider(provider);
    this.#providers = providers;
    this.#redactor = redactor;
    this.#admit = admit;
    const agent = { keepAlive: true, proxyEnv: proxiesOf(proxies) };
    this.#agents = { "http:": new HttpAgent(agent), "https:": new HttpsAgent(agent) };
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
    const call = `${request.method} ${rest}`;
    // mutant: provider-call-unchecked
    if (provider === undefined || !provider.calls.some((allowed) => isCall(call, allowed)))
      throw new HoldfastError("not_found", "the gateway has no such call of a provider", {
        got: call.slice(0, 100),
        ...(provider === undefined ? {} : { expected: provider.calls.join(", ") }),
      });
    if (isCompressed(request))
      throw new HoldfastError(
        "unsupported_media_type",
        "the body is compressed, so no secret is found in it",
        {
          expected: "a request without Content-Encoding",
        },
      );
    // mutant: call-not-admitted
    if (request.method === "POST") await this.#admit?.();
    const answer = await this.#ask(provider, `${rest}${search}`, request, response);
    if (isCompressed(answer)) {
      answer.destroy();
      throw new HoldfastError("unavailable", `the provider ${provider.name} compressed its answer`);
    }
    const headers = kept(answer.headers, (header) => !DROPPED.test(header));
    response.writeHead(answer.statusCode ?? 502, this.#redactor.value(headers) as typeof headers);
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
            ...kept(request.headers, (name) => SENT.test(name)),
            ...provider.headers,
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

/** A part that `*` stands for has nothing that a server could decode or resolve to another path. */
function isCall(call: string, allowed: string): boolean {
  const [parts, expected] = [call.split("/"), allowed.split("/")];
  return parts.length === expected.length && expected.every((part, at) => isPart(parts[at] ?? "", part));
}

function isPart(part: string, expected: string): boolean {
  if (!expected.startsWith("*")) return part === expected;
  return /^\w[\w.:@-]*$/.test(part) && part.endsWith(expected.slice(1));
}

/** The variables of proxies in both spellings; those of this machine are never used for an address of this machine. */
function proxiesOf(environment: Environment): Record<string, string> {
  const named = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"].flatMap((name) => {
    const value = environment[name];
    return value === undefined || value === "" ? [] : [[name, value] as const];
  });
  const none = [environment["NO_PROXY"] ?? environment["no_proxy"] ?? "", "127.0.0.1", "localhost", "::1"];
  return { ...Object.fromEntries(named), NO_PROXY: none.filter((one) => one !== "").join(",") };
}

function isCompressed({ headers }: Pick<IncomingMessage, "headers">): boolean {
  return (headers["content-encoding"] ?? "identity").toLowerCase() !== "identity";
}

function kept(
  headers: IncomingMessage["headers"],
  passes: (name: string) => boolean,
): Record<string, string | string[]> {
  const entries = Object.entries(headers).filter(([name, value]) => value !== undefined && passes(name));
  return Object.fromEntries(entries as [string, string | string[]][]);
}

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
