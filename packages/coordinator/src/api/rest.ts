// `serveRest` serves REST by the contract's routes: path, query and body become a method's request, and its
// answer becomes JSON.
//
//   - Under /v1, the token is checked before the route. A caller without a token cannot learn which objects
//     exist.
//   - A request is read and checked whole before a service gets it.
//   - A method's stream is a stream of server-sent events.

import { create, isFieldSet, type DescField, type DescMessage, type Message } from "@bufbuild/protobuf";
import { createHandlerContext, type HandlerContext } from "@connectrpc/connect";
import { toHoldfastError } from "@holdfast/core";
import { GetHealthRequestSchema } from "@holdfast/proto";
import { identify, NOBODY, restStatusOf, type Caller } from "../call/caller.ts";
import type { Calls } from "./calls.ts";
import type { Method, Rule } from "./contract.ts";
import { applyLastEventId, messageEvent, sendEvents, type Events } from "./event-stream.ts";
import { answer, readAll, type Exchange } from "./exchange.ts";
import { checkBody, checkJsonType, valuesOf } from "./request-guards.ts";
import { factsOf, findField, valueOf } from "./fields.ts";
import { readBody, readTexts } from "./json-read.ts";
import { writeMessage } from "./json-write.ts";
import type { ApiLimits } from "./limits.ts";
import { toProblem, type FieldError } from "../call/refusal.ts";
import { decode, findRoute, isUnderV1, type Route } from "./routes.ts";
import { OVER } from "./unary.ts";

export interface RestOptions {
  readonly calls: Calls;
  readonly limits: ApiLimits;
  /** Aborted when the API closes. */
  readonly closing: AbortSignal;
}

/** @throws HoldfastError when nothing has been answered yet. */
export async function serveRest(exchange: Exchange, options: RestOptions): Promise<void> {
  const { request } = exchange;
  const { calls, limits } = options;
  // Before the route: without a token a caller cannot learn what exists.
  const caller = isUnderV1(exchange.path) ? await calls.authenticate(request.headers.authorization) : NOBODY;
  const route = findRoute(request.method ?? "", exchange.path);
  calls.admit(route.method, caller);
  const { message, errors } = await readRequest(exchange, route, limits);
  const context = contextOf(exchange, route.method, caller, options.closing);
  const { desc, status } = route.method;
  if (route.method.isStream) {
    applyLastEventId(desc.input, message, valuesOf(request.rawHeaders, "last-event-id")[0]);
    const answers = calls.stream(desc, message, context, errors);
    const events: Events<Message> = {
      answers,
      eventOf: (given) => messageEvent(desc.output, given),
      errorOf: (thrown) => toProblem(toHoldfastError(thrown), exchange.requestId),
      statusOf: () => restStatusOf(context),
    };
    await sendEvents(exchange, events, limits);
  } else {
    const given = await calls.unary(desc, message, context, errors);
    answer(exchange, restStatusOf(context) ?? status, "application/json", writeMessage(desc.output, given));
  }
}

interface Bound {
  readonly message: Message;
  readonly errors: FieldError[];
}

/** The request of a method from body, query, path and headers, with all mistakes in it. */
async function readRequest(
  exchange: Exchange,
  { method, rule, params }: Route,
  limits: ApiLimits,
): Promise<Bound> {
  const { input } = method.desc;
  const inPath = params.map(([name]) => name);
  const maxBytes = method.isBatch ? limits.batchBytes : limits.bodyBytes;
  const body = await readContent(exchange, maxBytes, needsBody(input, rule, inPath));
  const { message, errors } = bindBody(input, rule, body, inPath);
  const query = readQuery(exchange.query);
  // If there is a body, the fields are in it and not in the query.
  errors.push(
    ...(rule.body === "" ? readTexts(input, message, query, inPath) : readTexts(NOTHING, message, query)),
  );
  const path = params.map(([name, value]) => [fieldOf(input, name).jsonName, value] as const);
  errors.push(...readTexts(input, message, path));
  errors.push(...bindIdempotencyKey(exchange, method, message));
  return { message, errors };
}

/** The parameters of the query, decoded as strictly as a path: text that cannot be decoded is refused. */
function readQuery(text: string): readonly (readonly [name: string, value: string])[] {
  return text
    .split("&")
    .filter((pair) => pair !== "")
    .map((pair) => {
      const at = pair.includes("=") ? pair.indexOf("=") : pair.length;
      const [name, value] = [pair.slice(0, at), pair.slice(at + 1)].map((part) =>
        decode(part.replaceAll("+", " ")),
      );
      return [name!, value!];
    });
}

/** The body as it came. An empty body is an empty object if no field is required. */
async function readContent(exchange: Exchange, maxBytes: number, isNeeded: boolean): Promise<Uint8Array> {
  const { rawHeaders } = exchange.request;
  checkBody(rawHeaders, maxBytes);
  const body = await readAll(exchange, maxBytes);
  if (body.length > 0) checkJsonType(rawHeaders);
  return body.length === 0 && !isNeeded ? Buffer.from("{}") : body;
}

const CREATED = 201;
const NO_KEY = "is not supported here: a repeated request would run twice";

/** A message without fields, so that every given field is unknown. */
const NOTHING: DescMessage = GetHealthRequestSchema;

function bindBody(input: DescMessage, rule: Rule, body: Uint8Array, inPath: readonly string[]): Bound {
  const message = create(input);
  const errors: FieldError[] = [];
  if (rule.body === "*") {
    readBody(input, message, body, errors, { elsewhere: inPath });
  } else if (rule.body === "") {
    readBody(NOTHING, create(NOTHING), body, errors);
  } else {
    const field = fieldOf(input, rule.body);
    if (field.fieldKind !== "message") throw new Error(`the body of ${rule.path} is not a message`);
    const part = create(field.message);
    readBody(field.message, part, body, errors, { at: `/${field.jsonName}` });
    Object.assign(message, { [field.localName]: part });
  }
  return { message, errors };
}

function needsBody(input: DescMessage, rule: Rule, inPath: readonly string[]): boolean {
  if (rule.body !== "*") return rule.body !== "";
  return input.fields.some((field) => !inPath.includes(field.name) && factsOf(field).isRequired);
}

function bindIdempotencyKey(
  exchange: Exchange,
  { desc, status }: Method,
  message: Message,
): readonly FieldError[] {
  const { input } = desc;
  const field = findField(input, ({ isIdempotencyKey }) => isIdempotencyKey);
  const key = exchange.request.headers["idempotency-key"];
  if (typeof key !== "string") return [];
  // A method that creates something at each call must refuse the key, which promises that a repeat is safe.
  if (field === undefined)
    return status === CREATED
      ? [{ pointer: "/idempotencyKey", code: "unknown_property", message: NO_KEY }]
      : [];
  if (!isFieldSet(message, field)) return readTexts(input, message, [[field.jsonName, key]]);
  const isSame = valueOf(field, message) === key;
  const said = "differs from the header Idempotency-Key";
  return isSame ? [] : [{ pointer: `/${field.jsonName}`, code: "duplicate", message: said }];
}

function fieldOf(desc: DescMessage, name: string): DescField {
  const field = desc.fields.find((one) => one.name === name);
  if (field === undefined) throw new Error(`${desc.typeName} has no field ${name}`);
  return field;
}

/** The context of a call. Its signal is aborted when the caller goes, the call ends, or the API closes. */
function contextOf(exchange: Exchange, method: Method, caller: Caller, closing: AbortSignal): HandlerContext {
  const { request, response, requestId } = exchange;
  const { authorization } = request.headers;
  const context = createHandlerContext({
    service: method.desc.parent,
    method: method.desc,
    protocolName: "rest",
    requestMethod: request.method ?? "",
    url: request.url ?? "",
    shutdownSignal: closing,
    // No other header is used once the request is read. A stream keeps this one as long as it lasts.
    requestHeader: authorization === undefined ? [] : [["authorization", authorization]],
  });
  response.once("close", () => context.abort(OVER));
  if (response.destroyed) context.abort(OVER); // The caller went while its token was checked.
  identify(context, caller, requestId);
  return context;
}
