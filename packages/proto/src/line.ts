// A line: one stream of HTTP/2 that carries many unary calls, each as one frame there and one frame back.
//
// A request of HTTP/2 costs both sides about five times as much as a frame on an open stream. A process that
// calls a coordinator often therefore opens a line and sends its small calls over it. A call means the same
// over a line as it does as a request.
//
//   frame   4 bytes the length of the rest, 4 bytes the call's number, 1 byte the kind, the content;
//   big-endian
//
//   proto-line-1. A reader that meets a frame above its limit, or a frame without number and kind, reads
//       nothing more: the line is broken.
//
// Both ends use this file; docs/protocol.md describes the line for others.

/** The path of a line, which a POST opens. */
export const LINE_PATH = "/holdfast.v1.Line/Open";
export const LINE_TYPE = "application/x-holdfast-line";

/** The header of every answer that names the deployment of the coordinator. */
export const DEPLOYMENT_HEADER = "holdfast-deployment";

/** The number of a greeting, which is no call. */
export const GREETING = 0;

export const FrameKind = {
  /**
   * Both ways, once. From the coordinator: 4 bytes how many calls may be open at once, 4 bytes the longest
   * frame.
   */
  greeting: 0,
  /**
   * To the coordinator: 1 byte the length of the method's path, the path (`holdfast.v1.Service/Method`), the
   * request.
   */
  call: 1,
  /** To the coordinator: the caller gave up this call. */
  cancel: 2,
  /** From the coordinator: the response. */
  answer: 3,
  /** From the coordinator: the error in Connect's JSON. */
  error: 4,
} as const;

export interface Frame {
  readonly number: number;
  readonly kind: number;
  readonly content: Uint8Array;
}

const LENGTH_BYTES = 4;
const HEAD_BYTES = 5;

export function frameOf(number: number, kind: number, ...parts: readonly Uint8Array[]): Uint8Array {
  const content = parts.reduce((sum, part) => sum + part.length, 0);
  const frame = new Uint8Array(LENGTH_BYTES + HEAD_BYTES + content);
  const view = new DataView(frame.buffer);
  view.setUint32(0, HEAD_BYTES + content);
  view.setUint32(LENGTH_BYTES, number);
  view.setUint8(LENGTH_BYTES + 4, kind);
  let at = LENGTH_BYTES + HEAD_BYTES;
  for (const part of parts) {
    frame.set(part, at);
    at += part.length;
  }
  return frame;
}

/** Makes frames of bytes in the order they arrive, however the bytes are cut. */
export class FrameReader {
  readonly #maxBytes: number;
  #chunks: Uint8Array[] = [];
  #bytes = 0;
  /** The number of bytes that complete the length, or the frame, that has begun. */
  #needed = LENGTH_BYTES;

  /** @param maxBytes the longest frame, without the four bytes of its length. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Whether a frame has begun and is not complete. */
  get isWithin(): boolean {
    return this.#bytes > 0;
  }

  /** @returns the frames that are complete now. @throws RangeError (proto-line-1). */
  read(bytes: Uint8Array): readonly Frame[] {
    this.#chunks.push(bytes);
    this.#bytes += bytes.length;
    if (this.#bytes < this.#needed) return [];
    const all = this.#chunks.length === 1 ? bytes : joined(this.#chunks);
    const view = new DataView(all.buffer, all.byteOffset, all.byteLength);
    const frames: Frame[] = [];
    let at = 0;
    this.#needed = LENGTH_BYTES;
    while (all.length - at >= LENGTH_BYTES) {
      const length = view.getUint32(at);
      if (length < HEAD_BYTES || length > this.#maxBytes)
        throw new RangeError(`a frame of a line has ${length} bytes, not ${HEAD_BYTES} to ${this.#maxBytes}`);
      const end = at + LENGTH_BYTES + length;
      if (all.length < end) {
        this.#needed = end - at;
        break;
      }
      const number = view.getUint32(at + LENGTH_BYTES);
      const kind = view.getUint8(at + LENGTH_BYTES + 4);
      frames.push({ number, kind, content: all.subarray(at + LENGTH_BYTES + HEAD_BYTES, end) });
      at = end;
    }
    this.#bytes = all.length - at;
    this.#chunks = this.#bytes === 0 ? [] : [all.subarray(at)];
    return frames;
  }
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

export interface Greeting {
  /** Calls that may be open at once. */
  readonly calls: number;
  /** The longest frame, without the four bytes of its length. */
  readonly frameBytes: number;
}

const GREETING_BYTES = 8;

export function greetingOf({ calls, frameBytes }: Greeting): Uint8Array {
  const content = new Uint8Array(GREETING_BYTES);
  const view = new DataView(content.buffer);
  view.setUint32(0, calls);
  view.setUint32(4, frameBytes);
  return content;
}

/** `undefined` if these bytes are no greeting. Later versions may say more. */
export function readGreeting(content: Uint8Array): Greeting | undefined {
  if (content.length < GREETING_BYTES) return undefined;
  const view = new DataView(content.buffer, content.byteOffset, content.byteLength);
  return { calls: view.getUint32(0), frameBytes: view.getUint32(4) };
}

/** The content of a frame that is a call. */
export function callOf(path: Uint8Array, request: Uint8Array): readonly Uint8Array[] {
  return [new Uint8Array([path.length]), path, request];
}

/** The path of a call and its request; `undefined` if these bytes are no call. */
export function readCall(
  content: Uint8Array,
): { readonly path: Uint8Array; readonly request: Uint8Array } | undefined {
  const length = content[0];
  if (length === undefined || content.length < 1 + length) return undefined;
  return { path: content.subarray(1, 1 + length), request: content.subarray(1 + length) };
}
