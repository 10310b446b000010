// The cost of today, against the budgets of the sessions that have not ended.

import { costText, exactUsdText, usdText } from "@holdfast/proto/view";
import { Link } from "@tanstack/react-router";
import type { Inbox } from "../../api/open-items.ts";
import type { Session } from "../../api/types.ts";
import { Card, Meter } from "../../design/surfaces.tsx";
import { useNow } from "../../parts/parts.tsx";
import { brief, count, dateText, until } from "../../parts/text.ts";
import { openBudgets, usedUpPools } from "./home-facts.ts";
import { COSTS_MAX, type HomeReads } from "./use-home.ts";

const AGENTS = 4;

export function CostToday(props: { readonly inbox: Inbox | undefined; readonly reads: HomeReads }) {
  const { inbox, reads } = props;
  const { costs, working } = reads;
  const waiting = inbox?.items.map(({ session }) => session) ?? [];
  const open = new Map([...(working.data?.sessions ?? []), ...waiting].map((each) => [each.sessionId, each]));
  const budgets = openBudgets([...open.values()].filter(({ endedAt }) => endedAt === undefined));
  return (
    <Card
      title="Cost today"
      aside={costs.data?.hasOlder === true ? `of the newest ${COSTS_MAX} sessions, in UTC` : "in UTC"}
    >
      {budgets.sessions === 0 ? null : (
        <div className="flex flex-wrap items-center gap-x-3">
          <Meter used={budgets.spent} max={budgets.max} />
          <span>
            {usdText(budgets.spent)} of {exactUsdText(budgets.max)}
          </span>
          <span className="basis-full text-sm text-soft">
            {budgets.sessions === 1
              ? "the budget of one session that runs or waits for you"
              : `the budgets of ${budgets.sessions.toLocaleString()} sessions that run or wait for you`}
            {budgets.unlimited === 0
              ? ""
              : `; ${count(budgets.unlimited, "session has", "sessions have")} no limit of cost`}
          </span>
        </div>
      )}
      {costs.data === undefined ? (
        <p className="py-2 text-soft">
          {costs.isError ? "The costs could not be read." : "Reading the costs…"}
        </p>
      ) : costs.data.sums.agents.length === 0 ? (
        <p className="py-2 text-soft">No call of a model was made today.</p>
      ) : (
        <ul className="mt-2">
          {costs.data.sums.agents.slice(0, AGENTS).map(({ name, cost }) => (
            <li key={name} className="flex min-h-8 items-center gap-3">
              <Link
                to="/sessions"
                search={{ agent: name }}
                className="min-w-0 flex-1 truncate hover:underline"
              >
                {brief(name, 80)}
              </Link>
              <span className="text-soft max-sm:hidden">{count(cost.calls, "call")}</span>
              <span className="w-20 text-right">{costText(cost)}</span>
            </li>
          ))}
        </ul>
      )}
      <UsedUp sessions={[...open.values()]} />
    </Card>
  );
}

/** The usage limits that sessions wait for, with their reset. */
export function UsedUp({ sessions: all }: { readonly sessions: readonly Session[] }) {
  const now = useNow(30_000);
  return (
    <>
      {usedUpPools(all).map(({ pool, sessions, resetsAt, continues }) => (
        <p key={pool} className="mt-2 text-sm text-warn">
          The usage limit of {brief(pool, 80)} is reached, and{" "}
          {count(sessions, "session waits", "sessions wait")} for it.{" "}
          {resetsAt === undefined ? (
            "Nobody said when it is reset."
          ) : (
            <span title={dateText(resetsAt)}>
              It is reset {until(resetsAt, now)}
              {continues ? ", and then they continue by themselves." : ": unpause them then."}
            </span>
          )}
        </p>
      ))}
    </>
  );
}
