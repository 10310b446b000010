// The names of signals that sessions send each other through their inboxes. Users can neither send signals
// nor wait for them under these names. `NEXT_INPUT` is the one name here that users send.
//
//   answer:{n}      the answer to the question that command n asked
//   child:{n}       an event of the child that command n created: a signal, progress, that it is blocked, its
//   end
//   child-end:{n}   the child's end once more, for a parent that waits for nothing else
//   child:ended     the end of any child that was asked for with a callback. Agents may wait for this name
//   request:{n}     a request of that child to a handler of its parent
//   reply:{n}       the answer to the request that command n made

const ANSWER_PREFIX = "answer:";
const CHILD_PREFIX = "child:";
const CHILD_END_PREFIX = "child-end:";
export const REQUEST_PREFIX = "request:";
const REPLY_PREFIX = "reply:";

/**
 * The name under which a session receives its callbacks: the ends of the children that were asked for with
 * `notify: "callback"`. The payload is a `Callback`.
 */
export const CHILD_ENDED = `${CHILD_PREFIX}ended`;

/**
 * The signal that a conversation waits for as its next message. A session that waits for it has answered the
 * message before. Agents of every kind keep to it, so that chats, the page and the tools continue each
 * conversation in one way. The payload is a text, or an object whose fields the agent defines.
 */
export const NEXT_INPUT = "next_input";

const RESERVED = [ANSWER_PREFIX, CHILD_PREFIX, CHILD_END_PREFIX, REQUEST_PREFIX, REPLY_PREFIX];

/** Whether a name is reserved for signals between sessions. */
export function isReservedName(name: string): boolean {
  return RESERVED.some((prefix) => name.startsWith(prefix));
}

export function answerSignalName(id: number): string {
  return `${ANSWER_PREFIX}${id}`;
}

export function childEventName(child: number): string {
  return `${CHILD_PREFIX}${child}`;
}

export function childEndName(child: number): string {
  return `${CHILD_END_PREFIX}${child}`;
}

export function requestName(child: number): string {
  return `${REQUEST_PREFIX}${child}`;
}

export function replyName(request: number): string {
  return `${REPLY_PREFIX}${request}`;
}

/** The child whose event has this name; `undefined` for any other name. */
export function senderChild(name: string): number | undefined {
  if (name === CHILD_ENDED) return undefined; // Any child's.
  const prefix = [CHILD_PREFIX, CHILD_END_PREFIX].find((one) => name.startsWith(one));
  return prefix === undefined ? undefined : Number(name.slice(prefix.length));
}

/** The request whose reply has this name; `undefined` for any other name. */
export function repliedRequest(name: string): number | undefined {
  return name.startsWith(REPLY_PREFIX) ? Number(name.slice(REPLY_PREFIX.length)) : undefined;
}

/** The number of the child in the name of its request. */
export function requestingChild(name: string): number {
  return Number(name.slice(REQUEST_PREFIX.length));
}
