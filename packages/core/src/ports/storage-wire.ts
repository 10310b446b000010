// The storage port as JSON, for any connection: an owner's socket, a coordinator's API.
// `storage-wire-check.ts` has the checks of received values.
//
//   - Values of the port are their own JSON, field by field. Fields that are `undefined` are left out.
//   storage-wire-2. JSON has no Infinity: a lease that never ends is `null`.
//   - Errors keep their code and their text. The codes that the table of this file lists also get their class
//     back, and all others are a `HoldfastError`. A code that the receiver does not know becomes `internal`.
//
// This file knows no transport.

import {
  ConflictError,
  CorruptRecordError,
  HoldfastError,
  LimitError,
  NotFoundError,
  UnavailableError,
} from "../errors/errors.ts";
import { ERROR_TABLE, type ErrorCode } from "../errors/error-table.ts";
import type { AgentStorage, StorageReader } from "./storage.ts";
import type { Change } from "../session/changes.ts";

/** All methods that can be called over a connection, by the port's own names. */
export type StorageMethod =
  | Exclude<
      keyof AgentStorage,
      "name" | "durable" | "groupsMax" | "now" | "reader" | "lost" | "drafts" | "close" | "follow" | "renewal"
    >
  | `reader.${keyof StorageReader}`;

/** The change that the sender meant, from a value that has the shape of a change (storage-wire-2). */
export function withLease(change: Change): Change {
  if (change.type === "audited" && change.change !== undefined)
    return { ...change, change: withLease(change.change) as typeof change.change };
  if (change.type !== "create_session" || change.claimFor === undefined) return change;
  const { owner, leaseMs } = change.claimFor;
  return { ...change, claimFor: { owner, leaseMs: leaseFromWire(leaseMs) } };
}

export function leaseFromWire(leaseMs: number | null): number {
  return leaseMs ?? Infinity;
}

export interface WireError {
  readonly code: ErrorCode;
  readonly message: string;
  readonly at?: string;
  readonly got?: string;
  readonly expected?: string;
  readonly fix?: string;
}

export function toWireError({ code, message, at, got, expected, fix }: HoldfastError): WireError {
  return {
    code,
    message,
    ...(at === undefined ? {} : { at }),
    ...(got === undefined ? {} : { got }),
    ...(expected === undefined ? {} : { expected }),
    ...(fix === undefined ? {} : { fix }),
  };
}

export function fromWireError(error: WireError): HoldfastError {
  const { code, message, ...details } = error;
  switch (code) {
    case "session_not_found":
    case "file_not_found":
      return new NotFoundError(code, message, details);
    case "locked":
      return new ConflictError(code, message, details);
    case "storage_unavailable":
      return new UnavailableError(code, message, details);
    case "corrupt_record":
      return rename(new CorruptRecordError(details.at ?? "the database", message, details), message);
    case "limit_exceeded":
      return rename(new LimitError("lineBytes", message, details), message);
    default:
      return new HoldfastError(code in ERROR_TABLE ? code : "internal", message, details);
  }
}

/** These classes would add to a message that is complete already. */
function rename(error: HoldfastError, message: string): HoldfastError {
  error.message = message;
  return error;
}
