// Signals from the same process: a test, a server, or whatever else a user's program listens to.

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
  let sink: SignalSink | undefined;
  let closed = false;
  const early: ((sink: SignalSink | undefined) => void)[] = [];

  return {
    open(opened) {
      sink = opened;
      for (const go of early.splice(0)) go(opened);
      return Promise.resolve({
        close() {
          sink = undefined;
          closed = true;
          for (const go of early.splice(0)) go(undefined);
          return Promise.resolve();
        },
      });
    },

    async send(signal) {
      const to = closed
        ? undefined
        : (sink ?? (await new Promise<SignalSink | undefined>((go) => early.push(go))));
      return to === undefined
        ? { status: "refused", reason: "the runtime of this channel is closed" }
        : to(signal);
    },
  };
}
