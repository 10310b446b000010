// The texts that the adapter of an external agent writes into its conversation, beside those of the user and of
// the agent.

/** The reason why a turn ended before its answer, in the prompt of the next one. */
export const CUT_OFF = "Your previous turn was cut off before it ended.";
export const RESTARTED = "Your previous turn was interrupted, because the user has sent a message.";
export const SUSPENDED = "Your previous turn was ended while it waited for a person.";
export const LIMITED = "Your previous turn was ended by a limit of your account, which has passed.";
export const OVER_BUDGET = "Your session reached the limit of its budget, which has been raised.";

/** The result of a call that has none. */
export const CUT_OFF_RESULT = "This call was cut off. Whether it took effect is unknown. There is no result.";

/** The beginnings of entries about a turn that ended before its answer. */
export const SESSION_CANCELLED = "(The session was cancelled.";
export const TURN_INTERRUPTED = "(The user interrupted the turn.";
export const TURN_FAILED = "(The turn failed:";

const BEGINNINGS = [
  CUT_OFF,
  RESTARTED,
  SUSPENDED,
  LIMITED,
  OVER_BUDGET,
  SESSION_CANCELLED,
  TURN_INTERRUPTED,
  TURN_FAILED,
];

/** Whether an entry of the role `user` was written by the adapter, and by no person. */
export function isWrittenByAdapter(text: string): boolean {
  return BEGINNINGS.some((beginning) => text.startsWith(beginning));
}
