// CoordinatorConnection: one HTTP/2 connection of a process to its coordinator. It puts the token on every
// call and turns errors into ours. For proxies that know no other protocol it uses HTTP/1.1 with keep-alive.
//
//   - A token goes over plain HTTP to this machine only, unless the caller that opens the connection says
//     that the network is safe.
//   - An error that the coordinator answered keeps its code. Everything else (refused, cut off, too late) is
//     unavailable: the call may or may not have been done.
//   coordinator-connection-3. Until the first answer in our protocol, the reason for a cut-off call is looked
//       for. The server may speak TLS where none is expected, or none where it is, or be no coordinator at
//       all. A foreign refusal then means that the URL or the version is wrong. After the first answer, a
//       foreign refusal comes from something in between, as a proxy refuses for a while: unavailable.
//   - Once closed, nothing that is asked opens it again.
//   - An answer of another deployment is unavailable, whatever it says (`seen-deployment.ts`).
//
// It knows neither storage nor runners: it makes clients of the contract's services.

import { DEPLOYMENT_HEADER, ErrorDetailSchema, type ErrorDetail } from "@holdfast/proto";
import type { DescService } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  createClient,
  type Client,
  type Interceptor,
  type Transport,
} from "@connectrpc/connect";
import { createConnectTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { type Clock, fromWireError, HoldfastError, UnavailableError } from "@holdfast/core";
import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import { CoordinatorTime } from "./coordinator-time.ts";
import { isPlainThere, plainThere, otherServerThere, tlsThere } from "./coordinator-probe.ts";
import { checkUrl } from "./coordinator-url.ts";
import { SeenDeployment } from "./seen-deployment.ts";
import { unaryTransport } from "./unary-transport.ts";

/** How long a call may take that says nothing else. */
const TIMEOUT_MS = 30_000;
/**
 * The data that is under way on a connection at most, in megabytes. Above that Node breaks off any next
 * answer, also a refusal of too large a request. The limit must hold the largest requests that are made at
 * the same time.
 */
const MEMORY_MB = 1_000;
/** A connection that is cut without a word is noticed after the two of them. */
const PING_MS = 10_000;
const PING_TIMEOUT_MS = 5_000;

/** Options of `new CoordinatorConnection`. */
export interface ConnectionOptions {
  /** The coordinator's URL: `http://127.0.0.1:8765`. */
  readonly url: string;
  /** The token of a runner or of a user. */
  readonly token: string;
  /** HTTP/2 by default. */
  readonly httpVersion?: "1.1" | "2";
  /** Send the token over plain HTTP to another machine, too. */
  readonly insecure?: boolean;
  /** How long a call may take that has no limit of its own. */
  readonly timeoutMs?: number;
  /** This machine's clocks; the process's own by default. */
  readonly clock?: Pick<Clock, "now" | "monotonic">;
}

/** How Node says that it does not believe a certificate. */
const CERTIFICATE = /certificate|altname/i;

/** The connection of this process to a coordinator. */
export class CoordinatorConnection {
  readonly url: string;
  /** How long a call may take that says nothing else. */
  readonly timeoutMs: number;
  /** As it says with some of its answers. */
  readonly time: CoordinatorTime;
  readonly #transport: Transport;
  readonly #close: () => void;
  #token: string;
  #isClosed = false;
  /** Something answered, and so there is no doubt (coordinator-connection-3). */
  #speaksAsItSays = false;

  /** Nothing is sent yet. @throws UsageError when the URL cannot be used. */
  constructor({
    url,
    token,
    httpVersion = "2",
    insecure = false,
    timeoutMs = TIMEOUT_MS,
    clock = { now: () => Date.now(), monotonic: () => performance.now() },
  }: ConnectionOptions) {
    this.time = new CoordinatorTime(clock);
    const parsed = checkUrl(url, insecure);
    this.url = parsed.href.replace(/\/+$/, "");
    this.timeoutMs = timeoutMs;
    this.#token = token;
    const deployment = new SeenDeployment(this.url);
    const authorize: Interceptor = (next) => async (request) => {
      request.header.set("authorization", `Bearer ${this.#token}`);
      const idIn = (headers: Headers): string | undefined => headers.get(DEPLOYMENT_HEADER) ?? undefined;
      const response = await next(request).catch((thrown: unknown) => {
        deployment.check(idIn(ConnectError.from(thrown).metadata), false);
        throw thrown;
      });
      deployment.check(idIn(response.header), true);
      return response;
    };
    const common = {
      baseUrl: this.url,
      interceptors: [authorize],
      defaultTimeoutMs: timeoutMs,
      acceptCompression: [],
    };
    if (httpVersion === "2") {
      const pings = { pingIntervalMs: PING_MS, pingTimeoutMs: PING_TIMEOUT_MS };
      const sessions = new Http2SessionManager(this.url, pings, { maxSessionMemory: MEMORY_MB });
      this.#transport = unaryTransport({
        sessions,
        basePath: parsed.pathname.replace(/\/+$/, ""),
        timeoutMs,
        authorization: () => `Bearer ${this.#token}`,
        deployment,
        others: createConnectTransport({ ...common, httpVersion, sessionManager: sessions }),
      });
      this.#close = () => sessions.abort();
    } else {
      const agent = new (parsed.protocol === "https:" ? HttpsAgent : HttpAgent)({ keepAlive: true });
      this.#transport = createConnectTransport({ ...common, httpVersion, nodeOptions: { agent } });
      this.#close = () => agent.destroy();
    }
  }

  client<Service extends DescService>(service: Service): Client<Service> {
    return createClient(service, this.#transport);
  }

  /** Use another token from now on: a runner that registers gets a token of its own. */
  useToken(token: string): void {
    this.#token = token;
  }

  /** The address and the token, for a thread of this process. */
  get forThread(): { readonly url: string; readonly token: string } {
    return { url: this.url, token: this.#token };
  }

  /** @throws HoldfastError whatever goes wrong. */
  async ask<T>(call: () => Promise<T>): Promise<T> {
    if (this.#isClosed) throw closed(this.url); // Once closed, nothing that is asked opens it again.
    try {
      const answer = await call();
      this.#speaksAsItSays = true;
      return answer;
    } catch (thrown) {
      throw await this.explained(thrown);
    }
  }

  /** A thrown error as ours; for a call that was cut off, with the reason (coordinator-connection-3). */
  async explained(thrown: unknown): Promise<HoldfastError> {
    const error = this.#toOurs(thrown);
    if (this.#speaksAsItSays) return error;
    if (error.code === "storage_unavailable")
      return (await tlsThere(this.url)) ?? (await otherServerThere(this.url)) ?? error;
    return error.code === "version_unsupported" ? ((await otherServerThere(this.url)) ?? error) : error;
  }

  #toOurs(thrown: unknown): HoldfastError {
    const error = ConnectError.from(thrown);
    const ours = [thrown, error.cause].find(isUnavailable);
    if (ours !== undefined) return ours;
    const detail = error.findDetails(ErrorDetailSchema)[0];
    const isKnown = this.#speaksAsItSays;
    if (detail !== undefined) {
      this.#speaksAsItSays = true;
      if (detail.code !== "not_implemented") return answered(error, detail);
    }
    if (isPlainThere(this.url, error.rawMessage)) return plainThere(this.url);
    const details = {
      at: this.url,
      got: `${Code[error.code] ?? "an error"}: ${error.rawMessage}`,
      cause: thrown,
    };
    switch (isKnown && detail === undefined ? Code.Unavailable : error.code) {
      case Code.PermissionDenied:
      case Code.Unauthenticated:
        // Refused before it was looked at, by its gate or by something in front of it: waiting mends nothing.
        return new HoldfastError(
          "forbidden",
          `the coordinator refuses this connection: ${error.rawMessage}`,
          {
            ...details,
            fix: "call it by an address it knows as its own (`hosts` in its configuration), with a token that is good",
          },
        );
      case Code.Unimplemented:
      case Code.InvalidArgument:
        return new HoldfastError("version_unsupported", "the coordinator does not understand this version", {
          ...details,
          fix: "use the same version of Holdfast for both, and check the URL",
        });
      default:
        return new UnavailableError("storage_unavailable", `the coordinator cannot be reached: ${this.url}`, {
          ...details,
          fix: CERTIFICATE.test(error.rawMessage)
            ? "name the file of the authority that signed its certificate in NODE_EXTRA_CA_CERTS, and use a host name that the certificate contains"
            : "check that it runs, and its address; the same request may be sent again, with the same ids: nothing is done twice",
        });
    }
  }

  /** Close for good. Open calls reject as unavailable. */
  close(): void {
    this.#isClosed = true;
    this.#close();
  }
}

function isUnavailable(thrown: unknown): thrown is HoldfastError {
  return HoldfastError.is(thrown) && thrown.code === "storage_unavailable";
}

function closed(url: string): UnavailableError {
  return new UnavailableError("storage_unavailable", `the connection to the coordinator was closed: ${url}`, {
    at: url,
    fix: "open another one",
  });
}

const PASSING: ReadonlySet<string> = new Set(["unavailable", "rate_limited", "request_timeout"]);

/** An answered error as ours. An error of a passing condition is one that the caller waits out. */
function answered(error: ConnectError, detail: ErrorDetail): HoldfastError {
  const { at, got, expected, fix } = detail;
  const wire = {
    code: detail.code as HoldfastError["code"],
    message: error.rawMessage,
    ...(at === undefined ? {} : { at }),
    ...(got === undefined ? {} : { got }),
    ...(expected === undefined ? {} : { expected }),
    ...(fix === undefined ? {} : { fix }),
  };
  return PASSING.has(detail.code)
    ? new UnavailableError("storage_unavailable", wire.message, wire)
    : fromWireError(wire);
}
