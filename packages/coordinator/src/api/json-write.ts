// Messages as the JSON of REST: what `json-read.ts` reads, with the names of the contract in its order.
//
// Fields without presence are always there, also when they are empty; `optional` ones when they were given.

import { isFieldSet, type DescField, type DescMessage, type Message } from "@bufbuild/protobuf";
import { factsOf, valueOf } from "./fields.ts";

const UTF8 = new TextDecoder();

export function writeMessage(desc: DescMessage, message: Message): string {
  const members = desc.fields.flatMap((field) => {
    const written = writeField(field, message);
    return written === undefined ? [] : [`${JSON.stringify(field.jsonName)}:${written}`];
  });
  return `{${members.join(",")}}`;
}

function writeField(field: DescField, message: Message): string | undefined {
  const hasPresence =
    field.fieldKind === "message" || field.oneof !== undefined || field.proto.proto3Optional;
  if (hasPresence && !isFieldSet(message, field)) return undefined;
  const value = valueOf(field, message);
  switch (field.fieldKind) {
    case "list":
      return `[${(value as readonly unknown[]).map((item) => writeItem(field, item)).join(",")}]`;
    case "map":
      return JSON.stringify(value);
    case "message":
      return writeMessage(field.message, value as Message);
    default:
      return factsOf(field).isJson ? writeJson(value as Uint8Array) : writeScalar(value);
  }
}

function writeItem(field: DescField & { fieldKind: "list" }, item: unknown): string {
  if (field.listKind === "message") return writeMessage(field.message, item as Message);
  return (factsOf(field).isJson ? writeJson(item as Uint8Array) : writeScalar(item)) ?? "null";
}

/** To the byte; what was never given is not there. */
function writeJson(bytes: Uint8Array): string | undefined {
  return bytes.length === 0 ? undefined : UTF8.decode(bytes);
}

/** Integers of 64 bits are numbers: the contract keeps them below 2^53. */
function writeScalar(value: unknown): string {
  return typeof value === "bigint" ? value.toString() : JSON.stringify(value);
}
