import { refuse, refuseAction, takeNothing, takeOnly } from "@holdfast/terminal/frame/arguments";
import type { Arguments, Command } from "@holdfast/terminal/frame/command";
import { createToken, listTokens, revokeToken } from "../sessions/token-calls.ts";

export const token: Command = {
  name: "token",
  usage:
    "token create NAME [--kind user|admin|registration] [--owner USER] [--ttl DURATION] [-o FILE] | token list | token revoke ID",
  description:
    "A user's token is valid for that user's sessions, an admin's token for everything, a registration token for one runner, once, " +
    "within an hour. The token is written only once: to standard output, or with -o to a new file that only this user may read. The " +
    "coordinator keeps only its hash. Which coordinator: --url, HOLDFAST_URL, or http://127.0.0.1:8765. The caller's token: " +
    "HOLDFAST_TOKEN, or the file that the coordinator made when it first started. Exit codes: 4 no such token, 5 not an admin, 7 the " +
    "coordinator cannot be reached.",
  options: {
    output: {
      help: "write the token to this new file, readable by this user only",
      value: "FILE",
      short: "o",
    },
    kind: { help: "user (the default), admin or registration", value: "KIND" },
    owner: {
      help: "for a registration token: the only user whose sessions the runner may claim",
      value: "USER",
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
    const [action, ...rest] = args.positionals;
    refuseForeignOptions(action, args);
    switch (action) {
      case "create":
        return createToken(takeOnly(rest, "the name", token.usage), args, io);
      case "list":
        takeNothing(rest, token.usage);
        return listTokens(args, io);
      case "revoke":
        return revokeToken(takeOnly(rest, "the token's id", token.usage), args, io);
      default:
        throw refuseAction("token", action, ["create", "list", "revoke"], token.usage);
    }
  },
};

/** An option that is not looked at would be a wish that is not heard. */
function refuseForeignOptions(action: string | undefined, args: Arguments): void {
  const foreign = ["kind", "owner", "ttl", "output"].find((name) => args.has(name));
  if (action === "create" || foreign === undefined) return;
  throw refuse(`token ${action ?? ""} has no option --${foreign}`, token.usage, {
    got: `--${foreign}`,
    fix: "leave it out",
  });
}
