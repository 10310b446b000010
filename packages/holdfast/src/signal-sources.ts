// The signal sources of the runtime, in one place.

export { channelSignals, type ChannelSignals } from "../../runtime/src/channel-signals.ts";
export {
  readSignalLine,
  stdinSignals,
  type LineMeaning,
  type StdinSignalsOptions,
} from "../../runtime/src/stdin-signals.ts";
