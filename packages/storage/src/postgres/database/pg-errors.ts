// toStorageError: PostgreSQL's errors as ours, with what happened, where, and what to do about it.
//
// No message has a password in it: addresses appear as `shownUrl` shows them.

import {
  CorruptRecordError,
  HoldfastError,
  InvariantError,
  toError,
  UnavailableError,
  UsageError,
  type ErrorDetails,
} from "@holdfast/core";

/** PostgreSQL's codes for the kinds of errors that are handled here. */
export const SQLSTATE = {
  uniqueViolation: "23505",
  /** `write-statement.ts` raises it when a row has another version than the one that was read. */
  divisionByZero: "22012",
  serializationFailure: "40001",
  deadlock: "40P01",
  undefinedTable: "42P01",
  unknownSchema: "3F000",
  unknownDatabase: "3D000",
  wrongPassword: "28P01",
  notAuthorized: "28000",
  readOnly: "25006",
  insufficientPrivilege: "42501",
  diskFull: "53100",
  noSuchCharacter: "22021",
} as const;

/**
 * The five characters of an error that the server raised; `undefined` for any other one, among them Node's
 * `EPIPE`.
 */
export function sqlState(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error) || !("severity" in thrown) || !("code" in thrown)) return undefined;
  return typeof thrown.code === "string" ? thrown.code : undefined;
}

/** Whether the server took a transaction back in favour of another one: it says nothing of the rows. */
export function hasLost(thrown: unknown): boolean {
  const state = sqlState(thrown);
  return state === SQLSTATE.serializationFailure || state === SQLSTATE.deadlock;
}

/**
 * Whether nothing was applied because another transaction was faster, so that a retry may succeed at once.
 */
export function isConflict(thrown: unknown): boolean {
  const state = sqlState(thrown);
  return state === SQLSTATE.uniqueViolation || state === SQLSTATE.divisionByZero || hasLost(thrown);
}

/**
 * Codes by which a statement is refused because of its values: bad data, too much of it, a broken
 * constraint.
 */
const OF_ONE_CHANGE = /^(22|23|54)/;

/**
 * Whether the environment is at fault, so that trying the changes of a group one by one would only fail
 * again.
 */
export function isEnvironmental(thrown: unknown): boolean {
  if (HoldfastError.is(thrown)) return thrown.code === "storage_unavailable";
  const state = sqlState(thrown);
  return state === undefined ? !(thrown instanceof InvariantError) : !OF_ONE_CHANGE.test(state);
}

/** The driver's error of a call that found no free connection in its pool in time. */
const BUSY_POOL = "timeout exceeded when trying to connect";

/** Whether the server is away, or admits or writes nothing for now, so that perhaps nobody can write to it. */
export function isOutage(thrown: unknown): boolean {
  if (HoldfastError.is(thrown)) return thrown.code === "storage_unavailable";
  const state = sqlState(thrown);
  if (state === undefined) return toError(thrown).message !== BUSY_POOL;
  return state === SQLSTATE.readOnly || /^(08|28|3D|53|57|58)/.test(state);
}

/** Why one change of a group was not applied, for people. */
export function describeRefusal(thrown: unknown): string {
  if (HoldfastError.is(thrown)) return thrown.message;
  return `the database refused it: ${toError(thrown).message}`;
}

/** A connection's address as people may see it: without its password. */
export function shownUrl(url: string): string {
  try {
    const shown = new URL(url);
    if (shown.password !== "") shown.password = "***";
    for (const name of shown.searchParams.keys())
      if (name.toLowerCase().includes("password")) shown.searchParams.set(name, "***");
    return shown.href;
  } catch {
    return "a text that is no URL";
  }
}

/**
 * Anything thrown while the database was used, as an error of ours.
 *
 * @param at the database, as `shownUrl` shows it.
 * @param doing completes "while …", for example `committing`.
 */
export function toStorageError(thrown: unknown, at: string, doing: string): HoldfastError {
  if (HoldfastError.is(thrown)) return thrown;
  const state = sqlState(thrown);
  const text = toError(thrown).message;
  const details = (expected: string, fix: string): ErrorDetails => ({
    at,
    got: state === undefined ? text : `${text} (SQLSTATE ${state})`,
    expected,
    fix,
    cause: thrown,
  });
  switch (state) {
    case SQLSTATE.wrongPassword:
      return new UnavailableError(
        "storage_unavailable",
        `PostgreSQL does not let us in, while ${doing}: ${at}`,
        details("a user that may connect, with its password", `check the user in the URL, and ${PASSWORD}`),
      );
    case SQLSTATE.notAuthorized:
      return new UnavailableError(
        "storage_unavailable",
        `PostgreSQL does not let us in, while ${doing}: ${at}`,
        details(
          "a user, a machine and a way to connect that the server's pg_hba.conf allows",
          "have it allow them; where it wants encryption, end the URL with ?sslmode=verify-full",
        ),
      );
    case SQLSTATE.unknownDatabase:
      return new UnavailableError(
        "storage_unavailable",
        `there is no such database, while ${doing}: ${at}`,
        details("a database that exists", "make it (CREATE DATABASE …), or correct the URL"),
      );
    case SQLSTATE.undefinedTable:
    case SQLSTATE.unknownSchema:
      return new UnavailableError(
        "storage_unavailable",
        `tables of this storage are missing, while ${doing}: ${at}`,
        details("the tables that it had when it was opened", "restore the database, or open it again"),
      );
    case SQLSTATE.readOnly:
      return new UnavailableError(
        "storage_unavailable",
        `PostgreSQL takes no writes now, while ${doing}: ${at}`,
        details(
          "a primary server without `default_transaction_read_only`",
          "have it take writes again; sending the same again is safe",
        ),
      );
    case SQLSTATE.insufficientPrivilege:
      return new HoldfastError(
        "storage_readonly",
        `the database may not be written, while ${doing}: ${at}`,
        details("a user that may write to the schema", "GRANT the user what it needs"),
      );
    case SQLSTATE.noSuchCharacter: // In what was asked for: what is stored has none.
      return new UsageError(
        `a text holds a character that PostgreSQL does not store, while ${doing}`,
        details("an id or a name without NUL", "correct the id or the name"),
      );
    case SQLSTATE.diskFull:
      return new HoldfastError(
        "storage_full",
        `the database server's disk is full, while ${doing}: ${at}`,
        details("free space on the server", "make room there; nothing of this was applied"),
      );
    default:
      return unforeseen(thrown, state, text, { at, doing, details });
  }
}

function unforeseen(
  thrown: unknown,
  state: string | undefined,
  text: string,
  {
    at,
    doing,
    details,
  }: { at: string; doing: string; details: (expected: string, fix: string) => ErrorDetails },
): HoldfastError {
  if (state?.startsWith("XX") === true && state !== "XX000")
    return new CorruptRecordError(
      at,
      "the database is damaged",
      details("an intact database", "restore it from a backup"),
    );
  // The statement itself is wrong. Errors about the state of the server (08, 53, 55, 57, 58) may pass.
  if (state !== undefined && !/^(08|40|53|55|57|58)/.test(state))
    return new InvariantError(`${text} (SQLSTATE ${state}), while ${doing} in ${at}`);
  const setup = state === undefined ? SETUP.find(({ says }) => says.test(text)) : undefined;
  if (setup !== undefined)
    return new UnavailableError(
      "storage_unavailable",
      `${setup.what}, while ${doing}: ${at}`,
      details(setup.expected, setup.fix),
    );
  if (state === undefined && !isAboutTheConnection(thrown, text))
    return new InvariantError(`${text}, while ${doing} in ${at}`);
  return new UnavailableError(
    "storage_unavailable",
    `PostgreSQL cannot be reached, while ${doing}: ${at}`,
    details("a server that answers", "check that it runs and can be reached; sending the same again is safe"),
  );
}

const PASSWORD =
  "the password: in PGPASSWORD, or in ~/.pgpass (or the file that PGPASSFILE names) with mode 0600 and a line for this host, port, database and user";

/** Errors that a person must fix and that have no code, only a message of the driver or of Node's TLS. */
const SETUP = [
  {
    says: /^SASL: .*client password must be/,
    what: "PostgreSQL asks for a password, and none is known",
    expected: "the user's password",
    fix: `give ${PASSWORD}`,
  },
  {
    says: /certificate|altname/i,
    what: "the certificate that PostgreSQL shows is not believed",
    expected: "one of an authority that is known, for the name in the URL",
    fix: "name the file of the authority that signed it in NODE_EXTRA_CA_CERTS, or as &sslrootcert=FILE in the URL, and use a host name that the certificate contains",
  },
  {
    says: /does not support SSL/,
    what: "PostgreSQL is to be called encrypted, and does not offer it",
    expected: "a server that has `ssl = on`",
    fix: "turn it on there; only where the network is safe, leave sslmode out of the URL",
  },
  {
    says: /^(ENOENT|EACCES|EISDIR): .*, (open|read)/,
    what: "a file that the URL names cannot be read",
    expected: "files in PEM for sslrootcert, sslcert and sslkey",
    fix: "correct the path, or let this user read it",
  },
] as const;

/** Node's errors of sockets have codes (`ECONNREFUSED`); the driver's own have only words. */
function isAboutTheConnection(thrown: unknown, text: string): boolean {
  if (thrown instanceof Error && "code" in thrown && typeof thrown.code === "string") return true;
  return /connect|terminat|timeout|socket|pool|queryable|SSL/i.test(text);
}
