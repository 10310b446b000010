// Where signals come from. Only arrival: once handed over they are in storage, in order, and consumed by
// commits.

/** The port for signals that arrive in this process, such as lines of standard input. */
export interface SignalSource {
  /**
   * Begin to listen. `sink` stores one signal and answers when it is durable; it never throws. May be called
   * concurrently; the order of calls is the order of the signals.
   */
  open(sink: SignalSink): Promise<{ close(): Promise<void> }>;
}

/** The function to which a source hands the signals that arrive. */
export type SignalSink = (signal: IncomingSignal) => Promise<SignalReceipt>;

/** A signal as it arrives from a source. */
export interface IncomingSignal {
  /** The session that receives the signal. */
  readonly sessionId: string;
  /** The name by which the agent waits for it. */
  readonly name: string;
  /** The value that the agent gets, as JSON. */
  readonly payload?: unknown;
  /** A second signal with the same key is not stored. */
  readonly dedupKey?: string;
}

/** The answer to a signal: whether it was stored. */
export type SignalReceipt =
  | { readonly status: "stored" }
  | { readonly status: "duplicate" }
  | { readonly status: "refused"; readonly reason: string };
