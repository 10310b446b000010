import { NAME_ARGUMENT, type Command } from "@holdfast/terminal/frame/command";
import { createToken, listTokens, revokeToken } from "@holdfast/place/calls/token-calls";

export const token: Command = {
  name: "token",
  actions: {
    create: {
      does: "make a token, and write it once",
      takes: [NAME_ARGUMENT],
      options: ["kind", "owner", "project", "ttl", "output"],
    },
    list: { does: "all tokens, without their text" },
    revoke: { does: "revoke it at once", takes: [{ name: "ID", is: "the token's id" }] },
  },
  description:
    "A user's token is valid for that user's sessions, an admin's token for everything, a registration token for one runner, once, " +
    "within an hour, a metrics token for reading /metrics and nothing else. The token is written only once: to standard output, or with -o to a new file that only this user may read. The " +
    "coordinator keeps only its hash. Which coordinator: --url, HOLDFAST_URL, or http://127.0.0.1:8765. The caller's token: " +
    "HOLDFAST_TOKEN, or the file that the coordinator made when it first started. Exit codes: 4 no such token, 5 not an admin, 7 the " +
    "coordinator cannot be reached.",
  options: {
    output: {
      help: "write the token to this new file, readable by this user only",
      value: "FILE",
      short: "o",
    },
    kind: {
      help: "user (the default), admin, registration or metrics",
      value: "user|admin|registration|metrics",
    },
    owner: {
      help: "for a registration token: the only user whose sessions the runner may claim",
      value: "USER",
    },
    project: {
      help: "for a user's token: a project that its sessions may demand; it may be given more than once (default: any)",
      value: "NAME",
      repeats: true,
    },
    ttl: {
      help: "how long the token is valid, such as 30m, 12h or 90d; a registration token for an hour at most",
      value: "DURATION",
    },
  },
  examples: [
    ["token create ada", "a user's token, on standard output"],
    [
      "token create build-box --kind registration --ttl 10m -o build-box.token",
      "for `holdfast runner` on another machine",
    ],
    ["token list --json", "all tokens, without their text"],
    ["token revoke 3f9c0a1be24d7788", "revoke it at once"],
  ],

  async run(args, io) {
    const { action, positionals: rest } = args;
    switch (action) {
      case "create":
        return createToken(rest[0]!, args, io);
      case "list":
        return listTokens(args, io);
      default:
        return revokeToken(rest[0]!, args, io);
    }
  },
};
