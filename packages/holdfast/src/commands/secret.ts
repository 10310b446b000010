import { refuse } from "@holdfast/terminal/frame/arguments";
import { CommandError } from "@holdfast/terminal/frame/command-error";
import { NAME_ARGUMENT, type Arguments, type Command, type Io } from "@holdfast/terminal/frame/command";
import {
  askFor,
  canAsk,
  checkSecretName,
  namedSecrets,
  openSecretPlaces,
  readSecretFromStdin,
} from "@holdfast/terminal/secrets/supplied-secrets";
import { localTime, table } from "@holdfast/terminal/frame/plain-text";

export const secret: Command = {
  name: "secret",
  actions: {
    set: {
      does: "store a value, from a prompt or from standard input",
      takes: [{ ...NAME_ARGUMENT, leavesRest: true }],
      options: ["to"],
    },
    list: { does: "names, and where their values come from" },
    delete: { does: "from the keychain and from the file", takes: [NAME_ARGUMENT] },
  },
  description:
    "Agents and tasks declare the secrets that they need by name. A value comes from the first of these that has it: --secret-stdin, the " +
    "environment, the keychain of this system, the encrypted file in your data folder; without any, `run` asks for it. `set` reads the " +
    "value from a prompt that does not show it, or from standard input, never from an argument, which others can see. The file is " +
    "encrypted by AES-256-GCM. Its key comes from the file that HOLDFAST_SECRET_KEY_FILE names, from the keychain, or from a " +
    "passphrase. No command shows a value. Exit codes: 2 the name or a value as an argument is wrong, 3 the file cannot be used, 4 " +
    "no such secret, 5 the key of the file is missing or wrong.",
  options: {
    to: {
      help: "where to store it: keychain or file (default: the keychain, where the system has one)",
      value: "keychain|file",
    },
  },
  examples: [
    ["secret set ANTHROPIC_API_KEY", "the value is asked for, and not shown"],
    ["secret set DEPLOY_TOKEN --to file < token.txt", "from a file, without its last line break"],
    ["secret list", "names, and where their values come from"],
    ["secret delete DEPLOY_TOKEN", "from the keychain and from the file"],
  ],

  async run(args, io) {
    const { action, positionals: rest } = args;
    switch (action) {
      case "set":
        return setSecret(args, io);
      case "list":
        return listSecrets(io);
      default:
        return deleteSecret(rest[0]!, io);
    }
  },
};

async function setSecret(args: Arguments, io: Io): Promise<number> {
  const { positionals } = args;
  // The value is not repeated in the error. It may stand in the place of the name, too.
  if (positionals.length > 1 || positionals[0]?.includes("=") === true)
    throw new CommandError("secret_arg", "a value is not given as an argument: others can see it", {
      expected: `holdfast ${args.usage}`,
      fix: "pipe it to standard input, or type it when the command asks; replace that value, because it may have been seen",
    });
  const [name = ""] = positionals;
  checkSecretName(name);
  const place = args.text("to");
  if (place !== undefined && place !== "keychain" && place !== "file")
    throw refuse("--to is neither keychain nor file", args.usage, { got: place });
  const places = await openSecretPlaces(io);
  const value = canAsk(io) ? await askFor(`Enter ${name}: `, io) : await readSecretFromStdin(name, io);
  const stored = await places.store(name, value, place);
  io.show({ name, place: stored }, `${name} is stored in the ${PLACE_WORDS[stored]}`);
  if (places.placeOf(name) === "environment")
    io.note(`${io.notes.symbols.warn} the environment variable ${name} is set too, and goes first`);
  return 0;
}

async function listSecrets(io: Io): Promise<number> {
  const found = await namedSecrets(io);
  const rows = found.map(({ name, place, used, supplier, usedAt }) => [
    name,
    PLACE_WORDS[place],
    usedAt === undefined ? "" : localTime(usedAt),
    used || supplier === undefined ? "" : `not used: the ${PLACE_WORDS[supplier]} has it`,
  ]);
  io.show(
    found,
    rows.length === 0
      ? "no secrets are stored"
      : table([["NAME", "FROM", "LAST USE", ""], ...rows]).join("\n"),
  );
  return 0;
}

async function deleteSecret(name: string, io: Io): Promise<number> {
  checkSecretName(name);
  const from = (await openSecretPlaces(io)).delete(name);
  if (from.length === 0)
    throw new CommandError("secret_not_found", `the secret ${name} is not stored`, {
      fix: "run `holdfast secret list` to see the stored names",
    });
  io.show(
    { name, from },
    `${name} is deleted from the ${from.map((place) => PLACE_WORDS[place]).join(" and the ")}`,
  );
  return 0;
}

const PLACE_WORDS = {
  given: "command line",
  environment: "environment",
  keychain: "keychain",
  file: "encrypted file",
} as const;
