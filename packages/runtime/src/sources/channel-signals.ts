// `channelSignals`: a source of signals from the same process, such as a test, a server, or another part of a
// program.

import type { IncomingSignal, SignalReceipt, SignalSink, SignalSource } from "@holdfast/core";

/** A source whose signals come from calls of `send`. Give it to one runtime. */
export interface ChannelSignals extends SignalSource {
  /**
   * Answers when the signal is stored, or says why it is not. Waits for the runtime to listen; never throws.
   * Signals are stored in the order of the calls.
   */
  send(signal: IncomingSignal): Promise<SignalReceipt>;
}

/** Make a channel: `const channel = channelSignals(); createRuntime({ storage, signals: [channel] })`. */
export function channelSignals(): ChannelSignals {
  /**
   * The sink of the signals, or `undefined` once closed. All senders await the same promise, so that they
   * keep their order.
   */
  let opening = Promise.withResolvers<SignalSink | undefined>();

  return {
    open(sink) {
      opening.resolve(sink);
      return Promise.resolve({
        close() {
          opening = Promise.withResolvers();
          opening.resolve(undefined);
          return Promise.resolve();
        },
      });
    },

    async send(signal) {
      const sink = await opening.promise;
      return sink === undefined
        ? { status: "refused", reason: "the runtime of this channel is closed" }
        : sink(signal);
    },
  };
}
