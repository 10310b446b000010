// What the owner of a database and a process that asks it say to each other: one JSON object per line, over a socket that
// only this user can open.
//
//   owner → client   hello first; then one answer per request, and arrivals to those who subscribed
//   client → owner   requests, each with an id of its choice; many may be under way
//
//   L1. The protocol has a number in the hello. There is no negotiation: another number is refused by the client.
//   L2. A request is checked to the last field before anything is made of it; a wrong one is answered with a usage error.
//       Whoever sends something else than requests is cut off. Neither harms anybody else, and what was done before stands.
//   L3. JSON has no Infinity: a lease that never ends is `null` here.

import {
  ConflictError,
  CorruptRecordError,
  ERROR_TABLE,
  HoldfastError,
  LimitError,
  NotFoundError,
  UnavailableError,
  type Arrival,
  type ErrorCode,
} from "@holdfast/core";
import { isObject } from "./json-object.ts";
import type { OwnerInfo } from "./ownership.ts";

export const PROTOCOL_VERSION = 2;

/** One request, as a line. Commits are limited to much less by `LIMITS.batchChars`. */
export const LINE_BYTES_MAX = 64 * 1024 * 1024;

export interface Hello extends OwnerInfo {
  readonly holdfast: "storage";
  readonly protocol: number;
  readonly database: string;
}

export interface Request {
  readonly id: number;
  readonly method: Method;
  readonly params: Readonly<Record<string, unknown>>;
}

export type Method =
  | "commit"
  | "claim"
  | "renew"
  | "load"
  | "arrivals"
  | "conversation"
  | "due"
  | "subscribe"
  | "reader.sessions"
  | "reader.session"
  | "reader.journal"
  | "reader.entries"
  | "reader.pendingSignals"
  | "reader.schedules"
  | "reader.document"
  | "reader.documents"
  | "reader.audit";

export type Message =
  | { readonly id: number; readonly result?: unknown }
  | { readonly id: number; readonly error: WireError }
  | { readonly arrival: Arrival };

export interface WireError {
  readonly code: ErrorCode;
  readonly message: string;
  readonly at?: string;
  readonly got?: string;
  readonly expected?: string;
  readonly fix?: string;
}

export function isHello(value: unknown): value is Hello {
  return (
    isObject(value) &&
    value["holdfast"] === "storage" &&
    typeof value["protocol"] === "number" &&
    typeof value["pid"] === "number"
  );
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

/** The error as the owner threw it, in the class that says who must act. */
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
