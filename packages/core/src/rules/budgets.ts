// `decideBudget`: the rule for a change of a session's budget.

import { grantWindow, raise, releaseLost, type Account } from "../budget/budget.ts";
import type { ChangeResult, SetBudget } from "../session/changes.ts";
import { isEnded, type Session } from "../session/session.ts";
import { invalid } from "./batches.ts";
import { movedAway } from "./moving.ts";

/**
 * The account with its new limits. If the change says so, the charges for lost attempts are released from the
 * account, or a window of it is emptied. The caller then resumes the sessions that are paused because this
 * account was exhausted. The account of an ended session still changes as long as it pays for an active
 * session.
 *
 * @param paysBelow whether the account pays for an active session; asked only if the account's own session
 *   has ended.
 */
export function decideBudget(
  session: Session,
  change: SetBudget,
  now: number,
  paysBelow: () => boolean,
): { readonly result: ChangeResult; readonly account?: Account } {
  const moved = movedAway(session);
  if (moved !== undefined) return { result: moved };
  const { sessionId, status, account, payers } = session;
  if (isEnded(status) && (account === undefined || !paysBelow()))
    return { result: { status: "ended", sessionStatus: status } };
  if (account === undefined) {
    const payer = payers.find((one) => one !== sessionId);
    const whose =
      payer === undefined ? "there is none to change" : `session ${payer} pays for it: change that one's`;
    return { result: invalid(session, `was started without a budget, so ${whose}`) };
  }
  const { limits, grant } = change;
  if (grant !== undefined && account.limits.windows?.some(({ per }) => per === grant) !== true)
    return { result: invalid(session, `has no limit per ${grant}, so there is no window to grant`) };
  const raised = raise(account, limits, now);
  const granted = grant === undefined ? raised : grantWindow(raised, grant, now);
  return {
    result: { status: "requested", sessionStatus: status },
    account: change.releaseLost === true ? releaseLost(granted, now) : granted,
  };
}
