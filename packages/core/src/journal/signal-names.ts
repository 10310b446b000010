// Names of the signals sessions send each other through their inboxes. Users can neither send nor ask for them by name.
//
//   answer:{n}      to the question asked by command n
//   child:{n}       what the child asked for by command n tells: signals, progress, that it is blocked, its end
//   child-end:{n}   its end once more, for who waits for nothing else
//   request:{n}     what that child asks of a handler of its parent
//   reply:{n}       to the request made by command n

import { positionId, positionIn } from "../ids.ts";

const ANSWER_PREFIX = "answer:";
const CHILD_PREFIX = "child:";
const CHILD_END_PREFIX = "child-end:";
export const REQUEST_PREFIX = "request:";
const REPLY_PREFIX = "reply:";

const RESERVED = [ANSWER_PREFIX, CHILD_PREFIX, CHILD_END_PREFIX, REQUEST_PREFIX, REPLY_PREFIX];

/** Whether a name is one of ours. */
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

/**
 * The id of a signal that a session sends: sent twice it is one. Who starts over sends it again: it is another question, or may have been
 * read by one that starts over, too.
 *
 * @param life of a session that keeps no journal.
 */
export function sentId(sessionId: string, position: number, life: number | undefined): string {
  const id = positionId(sessionId, position);
  return life === undefined ? id : `${id}:${life}`;
}

/** The number of a session's request in the id of its signal. */
export function requestIn(signalId: string, sessionId: string): number | undefined {
  return positionIn(signalId.replace(/:\d+$/, ""), sessionId);
}

/** The child whose telling this is the name of, if it is one. */
export function tellingChild(name: string): number | undefined {
  const prefix = [CHILD_PREFIX, CHILD_END_PREFIX].find((one) => name.startsWith(one));
  return prefix === undefined ? undefined : Number(name.slice(prefix.length));
}

/** The request whose reply this is the name of, if it is one. */
export function repliedRequest(name: string): number | undefined {
  return name.startsWith(REPLY_PREFIX) ? Number(name.slice(REPLY_PREFIX.length)) : undefined;
}

/** The number of the child in the name of its request. */
export function requestingChild(name: string): number {
  return Number(name.slice(REQUEST_PREFIX.length));
}
