// `WatchdogMemory`: what a process and the watchdog's thread share. The process writes names here, and the
// thread reads them when the process is stuck.
//
// The process writes at every slice and step, so a write is a few stores and no message.

/** Names of the sessions of a slice, a line each. */
const NAMES_BYTES = 64 * 1024;
/** Names of the sessions that were claimed since the thread received a list of all. */
const CLAIMS_BYTES = 32 * 1024;
const STEPS_MAX = 256;
const STEP_BYTES = 256;
const STEP_HEAD_BYTES = 16;

const FLAGS_AT = 16;
const FLAGS = ["opened", "isOpen", "names", "beats", "claims", "calling", "running"] as const;
const NAMES_AT = 64;
const CLAIMS_AT = NAMES_AT + NAMES_BYTES;
const STEPS_AT = CLAIMS_AT + CLAIMS_BYTES;
const BYTES = STEPS_AT + STEPS_MAX * STEP_BYTES;

/** A step whose code runs, or waits for something, in the process. */
export interface RunningStep {
  readonly sessionId: string;
  readonly task: string;
  readonly timeoutMs: number | undefined;
}

type Flag = (typeof FLAGS)[number];

export class WatchdogMemory {
  readonly shared: SharedArrayBuffer;
  readonly #times: BigInt64Array;
  readonly #flags: Int32Array;
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #encoder = new TextEncoder();
  /** The free places for steps. The thread does not read it. */
  readonly #free = Array.from({ length: STEPS_MAX }, (_, i) => STEPS_MAX - 1 - i);

  constructor(shared = new SharedArrayBuffer(BYTES)) {
    this.shared = shared;
    this.#times = new BigInt64Array(shared, 0, 2);
    this.#flags = new Int32Array(shared, FLAGS_AT, FLAGS.length);
    this.#bytes = new Uint8Array(shared);
    this.#view = new DataView(shared);
  }

  /** When leases are let go, by `threadTime`; 0 while none is held. */
  get abandonAt(): bigint {
    return Atomics.load(this.#times, 0);
  }

  set abandonAt(at: bigint) {
    Atomics.store(this.#times, 0, at);
    Atomics.add(this.#flags, FLAGS.indexOf("beats"), 1);
  }

  /** When the thread asked for its last confirmed renewal; 0 when it made none. */
  get renewedAt(): bigint {
    return Atomics.load(this.#times, 1);
  }

  set renewedAt(at: bigint) {
    Atomics.store(this.#times, 1, at);
  }

  get(flag: Flag): number {
    return Atomics.load(this.#flags, FLAGS.indexOf(flag));
  }

  #set(flag: Flag, value: number): void {
    Atomics.store(this.#flags, FLAGS.indexOf(flag), value);
  }

  // ---- the sessions of a slice
  // -------------------------------------------------------------------------------------

  openSlice(members: readonly { readonly sessionId: string }[]): void {
    let length = 0;
    for (const { sessionId } of members)
      length += this.#write(`${sessionId}\n`, NAMES_AT + length, CLAIMS_AT);
    this.#set("names", length);
    Atomics.add(this.#flags, FLAGS.indexOf("opened"), 1);
    this.#set("isOpen", 1);
  }

  closeSlice(): void {
    this.#set("isOpen", 0);
  }

  get sliceMembers(): readonly string[] {
    return this.#lines(NAMES_AT, this.get("names"));
  }

  // ---- claims ------------------------------------------------------------------------------------------------------

  /** @returns whether there was room for the name. */
  addClaim(sessionId: string): boolean {
    const at = CLAIMS_AT + this.get("claims");
    if (at + 3 * sessionId.length + 1 > STEPS_AT) return false;
    this.#set("claims", at - CLAIMS_AT + this.#write(`${sessionId}\n`, at, STEPS_AT));
    return true;
  }

  clearClaims(): void {
    this.#set("claims", 0);
  }

  get claims(): readonly string[] {
    return this.#lines(CLAIMS_AT, this.get("claims"));
  }

  // ---- steps -------------------------------------------------------------------------------------------------------

  /** @returns its place, or -1 when there is none; its code is called until `stepReturned`. */
  addStep(sessionId: string, task: string, timeoutMs = 0): number {
    Atomics.add(this.#flags, FLAGS.indexOf("running"), 1);
    const place = this.#free.pop() ?? -1;
    this.#set("calling", place + 1);
    if (place === -1) return place;
    const at = STEPS_AT + place * STEP_BYTES;
    const written = this.#write(`${sessionId}\n${task}`, at + STEP_HEAD_BYTES, at + STEP_BYTES);
    this.#view.setFloat64(at, timeoutMs);
    this.#view.setInt32(at + 8, written);
    return place;
  }

  stepReturned(): void {
    this.#set("calling", 0);
  }

  removeStep(place: number): void {
    Atomics.sub(this.#flags, FLAGS.indexOf("running"), 1);
    if (place === -1) return;
    this.#view.setInt32(STEPS_AT + place * STEP_BYTES + 8, 0);
    this.#free.push(place);
  }

  /** The steps of which one blocks the event loop: the one whose code was called last, or all that have begun. */
  get steps(): readonly RunningStep[] {
    const calling = this.get("calling");
    const places = calling > 0 ? [calling - 1] : Array.from({ length: STEPS_MAX }, (_, place) => place);
    return places.flatMap((place) => {
      const at = STEPS_AT + place * STEP_BYTES;
      const length = this.#view.getInt32(at + 8);
      if (length === 0) return [];
      const [sessionId = "", task = ""] = this.#text(at + STEP_HEAD_BYTES, length).split("\n");
      const timeoutMs = this.#view.getFloat64(at);
      return [{ sessionId, task, timeoutMs: timeoutMs === 0 ? undefined : timeoutMs }];
    });
  }

  /** Writes as much as fits. @returns the number of bytes. */
  #write(text: string, at: number, end: number): number {
    return this.#encoder.encodeInto(text, this.#bytes.subarray(at, end)).written;
  }

  #text(at: number, length: number): string {
    return new TextDecoder().decode(this.#bytes.slice(at, at + length));
  }

  #lines(at: number, length: number): readonly string[] {
    return this.#text(at, length).split("\n").slice(0, -1);
  }
}

/** Milliseconds by a clock that all threads of a process share. */
export function threadTime(): bigint {
  return process.hrtime.bigint() / 1_000_000n;
}
