// The storage port as JSON, for whoever speaks it over a wire: an owner's socket, a coordinator's API. What is checked of it is in
// `storage-wire-check.ts`.
//
//   storage-wire-1. Values of the port are their own JSON, field by field. What is `undefined` is left out.
//   storage-wire-2. JSON has no Infinity: a lease that never ends is `null`.
//   storage-wire-3. Errors keep their code and their words. Who gets one has the class that says who must act.
//
// It knows no transport.

import {
  ConflictError,
  CorruptRecordError,
  ERROR_TABLE,
  HoldfastError,
  LimitError,
  NotFoundError,
  UnavailableError,
  type ErrorCode,
} from "../errors/errors.ts";
import type { AgentStorage, StorageReader } from "./storage.ts";
import type { Change } from "../session/changes.ts";

/** Everything that can be asked for, by the port's own names. */
export type StorageMethod =
  | Exclude<
      keyof AgentStorage,
      "name" | "durable" | "groupsMax" | "now" | "reader" | "lost" | "close" | "follow"
    >
  | `reader.${keyof StorageReader}`;

/** A change as it was meant, from one that has the shape of a change (storage-wire-2). */
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

/** These classes add to the message what it has already. */
function rename(error: HoldfastError, message: string): HoldfastError {
  error.message = message;
  return error;
}
