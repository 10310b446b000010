// `seatbeltProfile`: the rules by which macOS holds a command in, as a profile of `sandbox-exec`.
//
// Pure. It is the list of `bubblewrap`, in the words of Seatbelt. The last rule that fits an operation
// decides.
//
//   - Everything is denied that no rule allows: the network, the files of the user, and the services of the
//     system.
//   - `.git` of the folder cannot be changed or made, and `.holdfast` is out of reach. These rules stand
//     last.
//   - Paths are parameters of the command line, so no path can end a rule.
//   - A program that talks has the network, the services that networks need, and folders of its own
//     (`ProgramPlaces`).

export interface SeatbeltPlaces {
  /** The folder, without symbolic links. */
  readonly root: string;
  /** A folder for temporary files. */
  readonly scratch: string;
  /** Folders with programs of the user, which commands may read. */
  readonly programs: readonly string[];
  /** Absent for a command. */
  readonly program?: ProgramPlaces;
}

/** The places that a program writes, without symbolic links. */
export interface ProgramPlaces {
  readonly written: readonly string[];
}

export interface SeatbeltProfile {
  readonly text: string;
  /** The values of its parameters. */
  readonly parameters: Readonly<Record<string, string>>;
}

/** Folders of the system that programs need. They hold nothing of a user. */
const SYSTEM = [
  "/bin",
  "/sbin",
  "/usr",
  "/opt",
  "/System",
  "/Library/Apple",
  "/Library/Developer",
  "/Library/Frameworks",
  "/Library/Preferences",
  "/private/etc",
  "/private/var/db/dyld",
  "/private/var/db/timezone",
  "/private/var/select",
  "/nix/store",
];
const SECRETS = [
  "/private/etc/ssh",
  "/private/etc/master.passwd",
  "/private/etc/sudoers",
  "/private/etc/sudoers.d",
];
const DEVICES = [
  "/dev/null",
  "/dev/zero",
  "/dev/random",
  "/dev/urandom",
  "/dev/fd",
  "/dev/stdin",
  "/dev/stdout",
  "/dev/stderr",
];

/** The services that resolve names, know the proxies, and judge certificates. */
const NETWORK_SERVICES = [
  "com.apple.SystemConfiguration.configd",
  "com.apple.dnssd.service",
  "com.apple.trustd",
  "com.apple.trustd.agent",
];

export function seatbeltProfile({ root, scratch, programs, program }: SeatbeltPlaces): SeatbeltProfile {
  const folders = programs.map((_folder, at) => `(subpath (param "PROGRAMS_${at}"))`);
  const { written = [] } = program ?? {};
  const own = written.map((_folder, at) => ` (subpath (param "WRITTEN_${at}"))`).join("");
  const services = NETWORK_SERVICES.map((name) => `(global-name "${name}")`).join(" ");
  const network = program === undefined ? "" : `(allow network*)\n(allow mach-lookup ${services})\n`;
  const text = `(version 1)
(deny default)
(allow process-exec process-fork)
(allow signal process-info* (target same-sandbox))
(allow sysctl-read)
(allow file-read-metadata)
(allow file-read* (literal "/") ${[...subpaths(SYSTEM), ...subpaths(DEVICES), ...folders].join(" ")})
(deny file-read* ${subpaths(SECRETS).join(" ")})
(allow file-write* ${subpaths(DEVICES).join(" ")})
(allow file-read* file-write* (subpath (param "SCRATCH"))${own} (subpath (param "ROOT")))
${network}(deny file-write* (subpath (param "GIT")))
(deny file-read* file-write* (subpath (param "OWN")))
`;
  return {
    text,
    parameters: {
      ROOT: root,
      SCRATCH: scratch,
      GIT: `${root}/.git`,
      OWN: `${root}/.holdfast`,
      ...numbered("PROGRAMS", programs),
      ...numbered("WRITTEN", written),
    },
  };
}

function numbered(name: string, paths: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(paths.map((path, at) => [`${name}_${at}`, path]));
}

function subpaths(paths: readonly string[]): readonly string[] {
  return paths.map((path) => `(subpath "${path}")`);
}
