// Request and Message: the protocol between the owner of a database and its clients. It is one JSON object
// per line, over a socket that only this user can open.
//
//   owner → client   hello first; then one answer per request, and arrivals to subscribed clients
//   client → owner   requests, each with an id of its choice; many may be under way
//
//   - The protocol has a number in the hello. There is no negotiation: another number is refused by the
//     client.
//   - A request is checked to the last field before it is handled; a wrong one is answered with a usage
//     error. A client that sends anything else is disconnected. Neither harms other clients or undoes earlier
//     requests.

import {
  type Arrival,
  DRAFT_CHARS_MAX,
  isStorageCall,
  MIB,
  type StorageMethod,
  type WireError,
} from "@holdfast/core";
import { readMark } from "../../host-presence.ts";
import { isObject } from "../file/plain-files.ts";
import type { OwnerInfo } from "../file/ownership.ts";

export const PROTOCOL_VERSION = 1;

/** One request, as a line. Commits are limited to much less by `LIMITS.batchChars`. */
export const LINE_BYTES_MAX = 64 * MIB;

export interface Hello extends OwnerInfo {
  readonly holdfast: "storage";
  readonly protocol: number;
  readonly database: string;
}

/**
 * A process holds claims (`Holding`), or has none any more. It may ask which sessions any process holds, and
 * share drafts (`SharedDrafts`).
 */
type ClientMethod = "hold" | "leave" | "claimed" | "drafts.show" | "drafts.watch";

export interface Request {
  readonly id: number;
  readonly method: StorageMethod | ClientMethod;
  readonly params: Readonly<Record<string, unknown>>;
}

export type Message =
  | { readonly id: number; readonly result?: unknown }
  | { readonly id: number; readonly error: WireError }
  | { readonly arrival: Arrival };

export function isHello(value: unknown): value is Hello {
  return (
    isObject(value) &&
    value["holdfast"] === "storage" &&
    typeof value["protocol"] === "number" &&
    typeof value["pid"] === "number"
  );
}

/**
 * Parse a line: a request, only its id when the port has no such call, or `undefined` when it is no request
 * at all.
 */
export function parseRequest(line: string): Request | { readonly id: number } | undefined {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (!isObject(value)) return undefined;
  const { id, method, params } = value;
  if (!Number.isSafeInteger(id) || (id as number) < 0) return undefined;
  const isCall = isStorageCall(method, params) || isClientCall(method, params);
  return isCall ? (value as unknown as Request) : { id: id as number };
}

function isClientCall(method: unknown, params: unknown): boolean {
  if (!isObject(params)) return false;
  if (method === "claimed") return isTexts(params["sessionIds"]);
  if (method === "drafts.show") return isDrafts(params["drafts"]);
  if (method === "drafts.watch")
    return isTexts(params["sessionIds"]) && Number.isSafeInteger(params["after"]);
  return method === "leave" || (method === "hold" && isHolding(params));
}

function isHolding({ client, mark, claims }: Record<string, unknown>): boolean {
  const isMark = mark === undefined || readMark(JSON.stringify(mark)) !== undefined;
  return Number.isSafeInteger(client) && (client as number) > 1 && isMark && isClaims(claims);
}

function isTexts(texts: unknown): boolean {
  return Array.isArray(texts) && texts.every((text) => typeof text === "string");
}

function isDrafts(drafts: unknown): boolean {
  const isDraft = ({ task, text }: Record<string, unknown>): boolean =>
    Number.isSafeInteger(task) && typeof text === "string" && text.length <= DRAFT_CHARS_MAX;
  return (
    Array.isArray(drafts) &&
    drafts.every(
      (shown) =>
        isObject(shown) &&
        typeof shown["sessionId"] === "string" &&
        (shown["draft"] === undefined || (isObject(shown["draft"]) && isDraft(shown["draft"]))),
    )
  );
}

function isClaims(claims: unknown): boolean {
  return (
    Array.isArray(claims) &&
    claims.every(
      (claim) =>
        isObject(claim) && typeof claim["sessionId"] === "string" && Number.isSafeInteger(claim["token"]),
    )
  );
}
