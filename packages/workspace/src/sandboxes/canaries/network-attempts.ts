// Tries every way on which a command of a sandbox without network could reach something (`tryNetwork`).
//
//   - The targets are a server of this machine and the metadata address of a cloud. Then come a Unix socket
//     outside of the root, and one without a file.
//   - No program is on every machine and in every image, so several try each target. A way whose program is
//     missing is not tried, and the answer says which ones were.

import { randomUUID } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";

import type { Execution } from "../../workspace/execute.ts";
import { tryEach } from "./attempts.ts";

/** The answer of each server. */
const ANSWER = "holdfast-answered";
const METADATA = "http://169.254.169.254/";
const WAIT_S = 2;

type Target = "server" | "metadata" | "unix" | "abstract";

interface Addresses {
  readonly port: number;
  /** The path of a Unix socket, and the name of one without a file. */
  readonly unix: string;
  readonly abstract: string;
}

interface Way {
  readonly program: string;
  readonly target: Target;
  /** A command that prints `ANSWER` when it reached its target. */
  readonly line: (at: Addresses) => string;
}

const viaNode = (connect: string): string =>
  `node -e 'const s = require("net").connect(${connect}, () => s.end("GET / HTTP/1.0\\r\\n\\r\\n")); s.setTimeout(${WAIT_S * 1_000}, () => s.destroy()); s.on("error", () => {}); s.pipe(process.stdout)'`;
const viaPython = (family: string, address: string): string =>
  `python3 -c 'import socket; s = socket.socket(socket.${family}); s.settimeout(${WAIT_S}); s.connect(${address}); s.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n"); print(s.makefile().read())'`;
const viaPerl = (family: string, address: string): string =>
  `perl -MSocket -e 'alarm ${WAIT_S}; socket(my $s, ${family}, SOCK_STREAM, 0); connect($s, ${address}) or exit 1; syswrite $s, "GET / HTTP/1.0\\r\\n\\r\\n"; print <$s>'`;

/** Every way. A way over the metadata address answers by its connection, since no server of ours is there. */
export const WAYS: readonly Way[] = [
  { program: "curl", target: "server", line: ({ port }) => `curl -m ${WAIT_S} http://127.0.0.1:${port}/` },
  {
    program: "wget",
    target: "server",
    line: ({ port }) => `wget -T ${WAIT_S} -O - http://127.0.0.1:${port}/`,
  },
  {
    program: "bash",
    target: "server",
    line: ({ port }) =>
      `bash -c 'exec 3<>/dev/tcp/127.0.0.1/${port}; printf "GET / HTTP/1.0\\r\\n\\r\\n" >&3; cat <&3'`,
  },
  {
    program: "nc",
    target: "server",
    line: ({ port }) => `printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w ${WAIT_S} 127.0.0.1 ${port}`,
  },
  { program: "node", target: "server", line: ({ port }) => viaNode(`${port}, "127.0.0.1"`) },
  {
    program: "python3",
    target: "server",
    line: ({ port }) => viaPython("AF_INET", `("127.0.0.1", ${port})`),
  },
  {
    program: "perl",
    target: "server",
    line: ({ port }) => viaPerl("PF_INET", `pack_sockaddr_in(${port}, INADDR_LOOPBACK)`),
  },
  {
    program: "curl",
    target: "metadata",
    line: () => `curl -m ${WAIT_S} -o /dev/null ${METADATA} && echo ${ANSWER}`,
  },
  {
    program: "wget",
    target: "metadata",
    line: () => `wget -T ${WAIT_S} -O /dev/null ${METADATA} && echo ${ANSWER}`,
  },
  {
    program: "node",
    target: "metadata",
    line: () =>
      `node -e 'const s = require("net").connect(80, "169.254.169.254", () => { console.log("${ANSWER}"); s.destroy(); }); s.setTimeout(${WAIT_S * 1_000}, () => s.destroy()); s.on("error", () => {})'`,
  },
  {
    program: "curl",
    target: "unix",
    line: ({ unix }) => `curl -m ${WAIT_S} --unix-socket ${unix} http://socket/`,
  },
  { program: "node", target: "unix", line: ({ unix }) => viaNode(`"${unix}"`) },
  { program: "python3", target: "unix", line: ({ unix }) => viaPython("AF_UNIX", `"${unix}"`) },
  { program: "perl", target: "unix", line: ({ unix }) => viaPerl("PF_UNIX", `pack_sockaddr_un("${unix}")`) },
  {
    program: "curl",
    target: "abstract",
    line: ({ abstract }) => `curl -m ${WAIT_S} --abstract-unix-socket ${abstract} http://socket/`,
  },
  { program: "node", target: "abstract", line: ({ abstract }) => viaNode(`"\\0${abstract}"`) },
  {
    program: "python3",
    target: "abstract",
    line: ({ abstract }) => viaPython("AF_UNIX", `"\\0${abstract}"`),
  },
];

/** The ways that were tried and those that led out, as texts such as `unix by curl`. */
export interface NetworkTrial {
  readonly tried: readonly string[];
  readonly reached: readonly string[];
}

export function nameOfWay({ program, target }: Way): string {
  return `${target} by ${program}`;
}

/**
 * @param folder a folder outside of the root of the sandbox.
 * @throws Error when the sandbox ended the command before each way was tried.
 */
export async function tryNetwork(
  run: (line: string) => Promise<Execution>,
  folder: string,
  ways: readonly Way[] = WAYS,
): Promise<NetworkTrial> {
  const name = `holdfast-${randomUUID()}`;
  let visits = 0;
  const visited = (): void => void visits++;
  const servers = [
    await listening({ port: 0, host: "127.0.0.1" }, visited),
    await listening({ path: join(folder, "socket") }, visited),
    // Linux alone has sockets without a file.
    ...(process.platform === "linux" ? [await listening({ path: `\0${name}` }, visited)] : []),
  ];
  const { port } = servers[0]!.address() as AddressInfo;
  const at: Addresses = { port, unix: join(folder, "socket"), abstract: name };
  try {
    const { stdout } = await tryEach(
      run,
      ways.map((way) => attemptOf(way, at)),
    );
    const named = (sign: string): readonly string[] =>
      ways.map(nameOfWay).filter((way) => stdout.includes(`${sign} ${way}.`));
    const reached = named("reached");
    // A connection counts, also where the answer did not come back.
    return { tried: named("tried"), reached: visits > 0 && reached.length === 0 ? ["a server"] : reached };
  } finally {
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  }
}

function attemptOf(way: Way, at: Addresses): string {
  const name = nameOfWay(way);
  return (
    `command -v ${way.program} > /dev/null && { echo 'tried ${name}.'; ` +
    `{ ${way.line(at)}; } 2> /dev/null | grep ${ANSWER} > /dev/null && echo 'reached ${name}.'; }`
  );
}

async function listening(at: object, visited: () => void): Promise<Server> {
  const server = createServer((_request, response) => void response.end(ANSWER));
  server.on("connection", visited);
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(at, resolve));
  return server;
}
