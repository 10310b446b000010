// Guards of a runner against its executors, and of a process against itself, each taken out: a part of the list in `mutants.ts`.

const GATEWAY = "packages/runner/src/gateway/";
const WATCHDOG = "packages/runtime/src/isolation/watchdog.test.ts";
const FILES = "packages/runner/src/policy/executor-files.test.ts";

export const RUNNER_MUTANTS = [
  {
    name: "X12: only a holder of its token is served by a gateway",
    marker: "gateway-token-ignored",
    becomes: "",
    tests: [`${GATEWAY}run-gateway.test.ts`],
    test: "with the token of another run",
  },
  {
    name: "X12: only a holder of its token gets a tunnel",
    marker: "tunnel-token-ignored",
    becomes: "",
    tests: [`${GATEWAY}connect-proxy.test.ts`],
    test: "a caller without the token",
  },
  {
    name: "X16: a provider is asked on its own paths",
    marker: "provider-path-unchecked",
    part: "provider === undefined || !provider.paths.some((allowed) => rest === allowed || rest.startsWith(`${allowed}/`))",
    becomes: "provider === undefined",
    tests: [`${GATEWAY}provider-proxy.test.ts`],
    test: "a path that is not for models",
  },
  {
    name: "X16: an executor holds no key of a provider",
    marker: "provider-key-shown",
    part: "token",
    becomes: "this.#providers.map(({ key }) => key()).join()",
    tests: ["packages/runner/src/executors/executor-providers.test.ts"],
    test: "the gateway adds the key of a provider that the profile names",
  },
  {
    name: "X16: a tunnel goes to an allowed host",
    marker: "tunnel-to-any-host",
    becomes: "",
    tests: [`${GATEWAY}connect-proxy.test.ts`],
    test: "a host that may only be private is not allowed by that",
  },
  {
    name: "X16: a tunnel goes to a public address",
    marker: "private-address-dialled",
    part: "isAddressAllowed(candidate, target, this.#policy)",
    becomes: "candidate !== target.host",
    tests: [`${GATEWAY}connect-proxy.test.ts`],
    test: "an allowed name whose address is private is refused",
  },
  {
    name: "X15: a secret that two chunks share is replaced",
    marker: "secret-split-over-chunks",
    part: "forms.lastSafe(text)",
    becomes: "text.length",
    tests: ["packages/runtime/src/secrets/redactor.test.ts"],
    test: "a stream removes a random secret in a random encoding at random chunk borders",
  },
  {
    name: "X11: a file of secrets is for its user alone",
    marker: "private-file-readable",
    part: "0o600",
    becomes: "0o644",
    tests: ["packages/runtime/src/node/private-file.test.ts"],
    test: "a new file is for its user only, whatever the umask",
  },
  {
    name: "X17: a link leads no allowed executor into the project",
    marker: "executor-link-unfollowed",
    becomes: "",
    tests: [FILES],
    test: "a link outside leads into the project",
  },
  {
    name: "X17: a session cannot write another executor's program",
    marker: "other-executor-writable",
    becomes: "",
    tests: [FILES],
    test: "an executor is refused in a session whose folder has the program of another executor",
  },
  {
    name: "O5: a process that was stopped was not busy",
    marker: "stopped-process-ended",
    part: "> STOPPED_MS",
    becomes: "> STOPPED_MS ** 9",
    tests: [WATCHDOG],
    test: "watchdog-6: a process is not ended after it was suspended in the middle of a slice",
  },
  {
    name: "O5: a process without leases is not late",
    marker: "process-without-leases-ended",
    part: "due !== 0n &&",
    becomes: "",
    tests: [WATCHDOG],
    test: "watchdog-4: a process is not ended when it has let go of its leases, renews them, or holds none",
  },
  {
    name: "O4: the daemons of a process end with it",
    marker: "daemon-left",
    becomes: "",
    tests: [WATCHDOG],
    test: "watchdog-5: all processes that a process has started are ended, daemons too, but not the process itself",
    hangs: true,
  },
] as const;
