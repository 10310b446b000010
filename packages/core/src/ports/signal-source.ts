// Where signals come from. Only arrival: once handed over they are in storage, in order, and consumed by
// commits.

export interface SignalSource {
  /**
   * Begin to listen. `sink` stores one signal and answers when it is durable; it never throws. May be called
   * concurrently; the order of calls is the order of the signals.
   */
  open(sink: SignalSink): Promise<{ close(): Promise<void> }>;
}

export type SignalSink = (signal: IncomingSignal) => Promise<SignalReceipt>;

export interface IncomingSignal {
  readonly sessionId: string;
  readonly name: string;
  readonly payload?: unknown;
  /** A second signal with the same key is not stored. */
  readonly dedupKey?: string;
}

export type SignalReceipt =
  | { readonly status: "stored" }
  | { readonly status: "duplicate" }
  | { readonly status: "refused"; readonly reason: string };
