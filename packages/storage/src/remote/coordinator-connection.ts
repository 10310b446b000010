// CoordinatorConnection: one HTTP/2 connection of a process to its coordinator. It puts the token on every
// call and turns errors into ours. For proxies that know no other protocol it uses HTTP/1.1 with keep-alive.
//
//   - It may know several coordinators that share a storage. It asks one of them until that one is away, and
//     then the next. A call that fails is not sent again here, as it may have been done.
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

import { ErrorDetailSchema, type ErrorDetail } from "@holdfast/proto";
import type { DescService } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, type Client, type Transport } from "@connectrpc/connect";
import {
  type Clock,
  defined,
  fromWireError,
  HoldfastError,
  UnavailableError,
  UsageError,
} from "@holdfast/core";
import { openAddress, type CoordinatorAddress } from "./coordinator-address.ts";
import type { ThreadCoordinator } from "./renew-in-thread.ts";
import type { DeploymentOfAll } from "./seen-deployment.ts";
import { CoordinatorTime } from "./coordinator-time.ts";
import { isPlainThere, plainThere, otherServerThere, tlsThere } from "./coordinator-probe.ts";
import { checkUrl } from "./coordinator-url.ts";

/** How long a call may take that says nothing else. */
const TIMEOUT_MS = 30_000;

/** Options of `new CoordinatorConnection`. */
export interface ConnectionOptions {
  /**
   * The coordinator's URL: `http://127.0.0.1:8765`. For several coordinators that share a
   * storage, a list of their URLs, in the order in which they are tried.
   */
  readonly url: string | readonly string[];
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
  /** The first URL of the options. */
  readonly url: string;
  /** How long a call may take that says nothing else. */
  readonly timeoutMs: number;
  /** As it says with some of its answers. */
  readonly time: CoordinatorTime;
  readonly #addresses: readonly CoordinatorAddress[];
  /** The one that is asked. */
  #address: CoordinatorAddress;
  /** The address that was asked, for each error, where there are several. */
  readonly #failedAt = new WeakMap<Error, CoordinatorAddress>();
  readonly #transport: Transport;
  readonly #clients = new Map<DescService, Client<DescService>>();
  #token: string;
  #isClosed = false;
  readonly #seen: DeploymentOfAll = {};

  /** Nothing is sent yet. @throws UsageError when a URL cannot be used. */
  constructor({
    url,
    token,
    httpVersion = "2",
    insecure = false,
    timeoutMs = TIMEOUT_MS,
    clock = { now: () => Date.now(), monotonic: () => performance.now() },
  }: ConnectionOptions) {
    this.time = new CoordinatorTime(clock);
    this.timeoutMs = timeoutMs;
    this.#token = token;
    const authorization = (): string => `Bearer ${this.#token}`;
    const options = { httpVersion, timeoutMs, authorization, seen: this.#seen };
    this.#addresses = urlsOf(url).map((each) => openAddress(checkUrl(each, insecure), options));
    this.#address = this.#addresses[0]!;
    this.url = this.#address.url;
    this.#transport =
      this.#addresses.length === 1
        ? this.#address.transport
        : {
            unary: (...asked) => this.#atAddress((transport) => transport.unary(...asked)),
            stream: async (...asked) => {
              const address = this.#address;
              const response = await this.#atAddress((transport) => transport.stream(...asked), address);
              return { ...response, message: this.#notingErrors(response.message, address) };
            },
          };
  }

  client<Service extends DescService>(service: Service): Client<Service> {
    let client = this.#clients.get(service);
    if (client === undefined) this.#clients.set(service, (client = createClient(service, this.#transport)));
    return client as Client<Service>;
  }

  /** Use another token from now on: a runner that registers gets a token of its own. */
  useToken(token: string): void {
    this.#token = token;
  }

  /** The addresses, the one that is asked first, for a thread of this process. */
  get forThread(): ThreadCoordinator {
    const others = this.#addresses.filter((address) => address !== this.#address);
    const urls = [this.#address, ...others].map(({ url }) => url);
    return { urls, token: this.#token, ...defined({ deployment: this.#seen.id }) };
  }

  /** @throws HoldfastError whatever goes wrong. */
  async ask<T>(call: () => Promise<T>): Promise<T> {
    if (this.#isClosed) throw closed(this.url); // Once closed, nothing that is asked opens it again.
    try {
      const answer = await call();
      if (this.#addresses.length === 1) this.#address.speaks = true;
      return answer;
    } catch (thrown) {
      throw await this.explained(thrown);
    }
  }

  /** A thrown error as ours; for a call that was cut off, with the reason (coordinator-connection-3). */
  async explained(thrown: unknown): Promise<HoldfastError> {
    const asked = this.#failedAt.get(thrown as Error);
    const address = asked ?? this.#address;
    const error = await this.#reasonOf(thrown, address);
    if (this.#addresses.length === 1) return error;
    const isProblem = error.code !== "storage_unavailable" && detailOf(thrown) === undefined;
    if (isProblem) address.problem = error;
    if (asked !== undefined && (isProblem || isAway(thrown, error))) this.#leave(address);
    // A wrong address is no refusal as long as another one may be right.
    if (!isProblem || this.#addresses.every(({ problem }) => problem !== undefined)) return error;
    const { message, at, got, fix } = error;
    return new UnavailableError("storage_unavailable", message, {
      ...defined({ at, got, fix }),
      cause: error,
    });
  }

  async #reasonOf(thrown: unknown, address: CoordinatorAddress): Promise<HoldfastError> {
    const error = this.#toOurs(thrown, address);
    if (address.speaks) return error;
    const { url } = address;
    if (error.code === "storage_unavailable")
      return (await tlsThere(url)) ?? (await otherServerThere(url)) ?? error;
    return error.code === "version_unsupported" ? ((await otherServerThere(url)) ?? error) : error;
  }

  async #atAddress<T>(
    call: (transport: Transport) => Promise<T>,
    address: CoordinatorAddress = this.#address,
  ): Promise<T> {
    try {
      const answer = await call(address.transport);
      address.speaks = true;
      address.problem = undefined;
      return answer;
    } catch (thrown) {
      this.#note(thrown, address);
      throw thrown;
    }
  }

  /** A stream that breaks later has been asked of the same address. */
  async *#notingErrors<T>(messages: AsyncIterable<T>, address: CoordinatorAddress): AsyncGenerator<T> {
    try {
      yield* messages;
    } catch (thrown) {
      this.#note(thrown, address);
      throw thrown;
    }
  }

  #note(thrown: unknown, address: CoordinatorAddress): void {
    if (thrown instanceof Error) this.#failedAt.set(thrown, address);
  }

  /** Several calls may fail at one address. The first of them moves on. */
  #leave(address: CoordinatorAddress): void {
    if (address !== this.#address) return;
    const next = (this.#addresses.indexOf(address) + 1) % this.#addresses.length;
    this.#address = this.#addresses[next]!;
  }

  #toOurs(thrown: unknown, address: CoordinatorAddress): HoldfastError {
    const { url } = address;
    const error = ConnectError.from(thrown);
    const ours = [thrown, error.cause].find(isUnavailable);
    if (ours !== undefined) return ours;
    const detail = detailOf(error);
    const isKnown = address.speaks;
    if (detail !== undefined) {
      address.speaks = true;
      if (detail.code !== "not_implemented") return answered(error, detail);
    }
    if (!isKnown && isPlainThere(url, error.rawMessage)) return plainThere(url);
    const details = {
      at: url,
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
        return new UnavailableError("storage_unavailable", `the coordinator cannot be reached: ${url}`, {
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
    for (const address of this.#addresses) address.close();
  }
}

function urlsOf(url: string | readonly string[]): readonly string[] {
  const urls: readonly string[] = Array.isArray(url) ? url : [url];
  if (urls.length > 0) return urls;
  throw new UsageError("a coordinator's URL is missing", {
    at: "url",
    got: "an empty list",
    expected: "one URL, or those of several coordinators that share a storage",
  });
}

/** Whether it makes sense to ask another coordinator. This one may be asked too much, or the caller gave up. */
function isAway(thrown: unknown, { code }: HoldfastError): boolean {
  if (code !== "storage_unavailable") return false;
  const error = ConnectError.from(thrown);
  const detail = detailOf(error);
  if (detail !== undefined) return detail.code === "unavailable";
  return error.code !== Code.Canceled && error.code !== Code.ResourceExhausted;
}

function detailOf(thrown: unknown): ErrorDetail | undefined {
  return ConnectError.from(thrown).findDetails(ErrorDetailSchema)[0];
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
