// `CLIENTS` call a method in three ways: by the stock gRPC client, by Connect, and by `fetch` on its route.

import { defined } from "@holdfast/core";
import { create, fromBinary, toBinary, type DescMethod, type Message } from "@bufbuild/protobuf";
import { BinaryReader } from "@bufbuild/protobuf/wire";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { Client, credentials, Metadata, status, type ServiceError } from "@grpc/grpc-js";
import { ErrorDetailSchema, HealthService } from "@holdfast/proto";
import { methodOf, type Rule } from "../contract.ts";
import { readBody } from "../json-read.ts";
import { membersOf, trimmed } from "../json-spans.ts";
import { writeMessage } from "../json-write.ts";

/** An answer, in the types of the contract. */
export type Answered =
  | { readonly messages: readonly Message[] }
  /** Our error code; `as` is the code of gRPC or Connect, or the REST status. */
  | { readonly code: string; readonly as: string | number; readonly pointers: readonly string[] };

export interface Called {
  readonly url: string;
  readonly token?: string;
  /** The origin of the calling page. */
  readonly origin?: string;
}

/** The headers of a request. */
function headersOf({ token, origin }: Called): Record<string, string> {
  return {
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    ...defined({ origin }),
  };
}

export type Call = (to: Called, desc: DescMethod, request: Message) => Promise<Answered>;

export const CLIENTS: Readonly<Record<"gRPC" | "Connect" | "REST", Call>> = {
  gRPC: callGrpc,
  Connect: callConnect,
  REST: (to, desc, request) => callRest(to, desc, request),
};

async function callGrpc(to: Called, desc: DescMethod, request: Message): Promise<Answered> {
  const client = new Client(new URL(to.url).host, credentials.createInsecure());
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(headersOf(to))) metadata.set(name, value);
  const path = `/${desc.parent.typeName}/${desc.name}`;
  const serialize = (message: Message): Buffer => Buffer.from(toBinary(desc.input, message));
  const deserialize = (bytes: Buffer): Message => fromBinary(desc.output, bytes);
  try {
    const messages: Message[] = [];
    if (desc.methodKind === "server_streaming") {
      const stream = client.makeServerStreamRequest(path, serialize, deserialize, request, metadata);
      for await (const message of stream) messages.push(message as Message);
    } else {
      messages.push(
        await new Promise<Message>((resolve, reject) => {
          client.makeUnaryRequest(path, serialize, deserialize, request, metadata, (error, message) =>
            error === null ? resolve(message!) : reject(error),
          );
        }),
      );
    }
    return { messages };
  } catch (thrown) {
    const error = thrown as ServiceError;
    const [details] = error.metadata.get("grpc-status-details-bin");
    return { ...readDetails(details as Buffer | undefined), as: status[error.code].toLowerCase() };
  } finally {
    client.close();
  }
}

/**
 * `google.rpc.Status` holds details (3) of `google.protobuf.Any`, which holds the bytes (2) of our error.
 */
function readDetails(bytes: Buffer | undefined): { code: string; pointers: readonly string[] } {
  const any = bytes === undefined ? undefined : fieldOf(bytes, 3);
  const ours = any === undefined ? undefined : fieldOf(any, 2);
  if (ours === undefined) return { code: "none", pointers: [] };
  const { code, errors } = fromBinary(ErrorDetailSchema, ours);
  return { code, pointers: errors.map(({ pointer }) => pointer) };
}

function fieldOf(bytes: Uint8Array, wanted: number): Uint8Array | undefined {
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [number, type] = reader.tag();
    if (number === wanted) return reader.bytes();
    reader.skip(type, number);
  }
  return undefined;
}

async function callConnect(to: Called, desc: DescMethod, request: Message): Promise<Answered> {
  const transport = createConnectTransport({ baseUrl: to.url, httpVersion: "1.1" });
  // Every client has every method's type. Only the table knows which method this is.
  const client = createClient(desc.parent as typeof HealthService, transport) as unknown as Record<
    string,
    (
      request: Message,
      options: { headers: Record<string, string> },
    ) => Promise<Message> | AsyncIterable<Message>
  >;
  try {
    const given = client[desc.localName]!(request, { headers: headersOf(to) });
    if (!(Symbol.asyncIterator in given)) return { messages: [await given] };
    const messages: Message[] = [];
    for await (const message of given) messages.push(message);
    return { messages };
  } catch (thrown) {
    const error = ConnectError.from(thrown);
    const [detail] = error.findDetails(ErrorDetailSchema);
    const pointers = detail?.errors.map(({ pointer }) => pointer) ?? [];
    return { code: detail?.code ?? "none", as: snakeCase(Code[error.code]), pointers };
  }
}

export async function callRest(
  to: Called,
  desc: DescMethod,
  request: Message,
  rule: Rule = methodOf(desc).rules[0]!,
): Promise<Answered> {
  const { target, body } = restRequestOf(desc, request, rule);
  const response = await fetch(`${to.url}${target}`, {
    method: rule.verb,
    headers: {
      ...headersOf(to),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...defined({ body }),
  });
  const text = await response.text();
  if (!response.ok) {
    const problem = JSON.parse(text) as { code: string; errors?: { pointer: string }[] };
    const pointers = problem.errors?.map(({ pointer }) => pointer) ?? [];
    return { code: problem.code, as: response.status, pointers };
  }
  if (desc.methodKind !== "server_streaming") return { messages: [readAnswer(desc, text)] };
  const events = text.split("\n\n").flatMap((event) => {
    const lines = event.split("\n").filter((line) => line.startsWith("data: "));
    return lines.length === 0 ? [] : [lines.map((line) => line.slice(6)).join("\n")];
  });
  return { messages: events.map((event) => readAnswer(desc, event)) };
}

/** The members of a REST request that are not in its path. The rule puts them into the query or the body. */
function restRequestOf(desc: DescMethod, request: Message, rule: Rule) {
  const text = writeMessage(desc.input, request);
  const members = membersOf(text, trimmed(text)).map(
    ([key, { start, end }]) => [key, text.slice(start, end)] as const,
  );
  const inPath = new Set<string>();
  const path = rule.path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const { jsonName } = desc.input.fields.find((field) => field.name === name)!;
    inPath.add(jsonName);
    return encodeURIComponent(String(JSON.parse(members.find(([key]) => key === jsonName)![1])));
  });
  const rest = members.filter(([key]) => !inPath.has(key));
  if (rule.body === "") {
    const query = new URLSearchParams(
      rest.map(([key, value]): [string, string] => [key, String(JSON.parse(value))]),
    );
    return { target: rest.length === 0 ? path : `${path}?${query.toString()}`, body: undefined };
  }
  const whole = `{${rest.map(([key, value]) => `${JSON.stringify(key)}:${value}`).join(",")}}`;
  const part = rest.find(([key]) => key === rule.body)?.[1];
  return { target: path, body: rule.body === "*" ? whole : part };
}

function readAnswer(desc: DescMethod, text: string): Message {
  const message = create(desc.output);
  const errors: never[] = [];
  readBody(desc.output, message, Buffer.from(text), errors);
  if (errors.length > 0)
    throw new Error(`an answer that the contract does not know: ${JSON.stringify(errors)}`);
  return message;
}

function snakeCase(name: string): string {
  return name.replace(/(?<=[a-z])[A-Z]/g, (letter) => `_${letter}`).toLowerCase();
}
