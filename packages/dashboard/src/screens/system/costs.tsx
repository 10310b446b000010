// Costs by day, model, agent and session, of the sessions that were read.
//
//   - A call without a price is unknown, never nothing.
//   - The newest sessions are read first, and the screen says how many it has read. An older session may have
//     spent today.

import {
  costText,
  NO_COST,
  sumCosts,
  totalText,
  type CostSum,
  type CostSums,
  type PlainSessionCost,
} from "@holdfast/proto/view";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { lazy, Suspense, useEffect, useMemo, useState, type ReactNode } from "react";
import { call } from "../../api/client.ts";
import { Card } from "../../design/surfaces.tsx";
import { Button, Command, Empty, Problem, Reading, ScreenBody } from "../../parts/parts.tsx";
import { brief, count } from "../../parts/text.ts";
import { UsedUp } from "../home/cost-today.tsx";
import { useInbox } from "../inbox/use-inbox.ts";

const Chart = lazy(() => import("./cost-chart.tsx"));

const PAGE = 200;
/** The pages that are read without being asked for. */
const PAGES_AT_FIRST = 5;
const REFRESH_MS = 10_000;
const SHOWN = 50;
const DAY_MS = 86_400_000;

interface CostPage {
  readonly costs: readonly PlainSessionCost[];
  readonly nextCursor?: string;
}

const SPANS = [
  ["7", "7 days"],
  ["30", "30 days"],
  ["", "all days"],
] as const;

export function CostsScreen() {
  const [span, setSpan] = useState("30");
  const { data: inbox } = useInbox();
  const { costs, error, hasNextPage, isFetching, fetchNextPage } = useCosts();
  const sums = useMemo(() => sumCosts(costs ?? [], firstDay(span)), [costs, span]);
  if (costs === undefined)
    return error === null ? (
      <Reading what="the costs" />
    ) : (
      <div className="p-3">
        <Problem error={error} />
      </div>
    );
  if (!hasNextPage && costs.every(({ parts, unrecorded }) => parts.length === 0 && !unrecorded))
    return <NoCalls />;
  return (
    <ScreenBody title="Costs">
      {error === null ? null : <Problem error={error} />}
      <Total sums={sums} span={span} onSpan={setSpan} />
      <UsedUp sessions={inbox?.items.map(({ session }) => session) ?? []} />
      <p className="text-soft">
        <Uncounted sums={sums} sessions={costs.length} hasOlder={hasNextPage} />{" "}
        {hasNextPage ? (
          <Button isDisabled={isFetching} onClick={() => void fetchNextPage()}>
            Read older sessions
          </Button>
        ) : null}
      </p>
      {sums.days.length === 0 ? (
        <p className="text-soft">No call was made in this time.</p>
      ) : (
        <>
          <Days days={sums.days} />
          <div className="grid gap-4 lg:grid-cols-2">
            <Card title="By model">
              <Sums sums={sums.models} heading="Model" />
            </Card>
            <Card title="By agent">
              <Sums sums={sums.agents} heading="Agent" />
            </Card>
          </div>
          <Card title="By session">
            <Sums sums={sums.sessions} heading="Session" nameOf={sessionLink} />
          </Card>
        </>
      )}
    </ScreenBody>
  );
}

/** The costs that were read, and the call that reads older ones. */
function useCosts() {
  const { data, error, fetchNextPage, hasNextPage, isFetching } = useInfiniteQuery({
    queryKey: ["costs"],
    queryFn: ({ pageParam }) =>
      call<CostPage>("GET", `/v1/costs?limit=${PAGE}${pageParam === "" ? "" : `&cursor=${pageParam}`}`),
    initialPageParam: "",
    getNextPageParam: ({ nextCursor }) => nextCursor,
    refetchInterval: ({ state }) =>
      state.error === null && (state.data?.pages.length ?? 0) > 1 ? false : REFRESH_MS,
  });
  const pages = data?.pages ?? [];
  useEffect(() => {
    if (pages.length > 0 && pages.length < PAGES_AT_FIRST && hasNextPage && !isFetching) void fetchNextPage();
  }, [pages.length, hasNextPage, isFetching, fetchNextPage]);
  const costs = useMemo(() => data?.pages.flatMap((page) => page.costs), [data]);
  return { costs, error, hasNextPage, isFetching, fetchNextPage };
}

function NoCalls() {
  return (
    <ScreenBody title="Costs">
      <Empty title="No session has called a model yet">
        <p>
          Each call of a model records its tokens, and its cost where the price table knows the model (
          <Command>holdfast models</Command> lists prices). A price that is not known is shown as unknown.
        </p>
      </Empty>
    </ScreenBody>
  );
}

function Total(props: {
  readonly sums: CostSums;
  readonly span: string;
  readonly onSpan: (span: string) => void;
}) {
  const { sums, span, onSpan } = props;
  const { calls, inputTokens, outputTokens } = sums.total;
  return (
    <div className="flex flex-wrap items-baseline gap-x-4 gap-y-2">
      <p className="text-2xl font-semibold" data-testid="total">
        {totalText(sums)}
      </p>
      <p className="text-soft">
        today{" "}
        <span className="font-semibold text-text">
          {costText(sums.days.find(({ name }) => name === firstDay("1"))?.cost ?? NO_COST) || "$0.00"}
        </span>
      </p>
      <p className="text-soft">
        {count(calls, "call")}, {count(inputTokens, "token")} in, {outputTokens.toLocaleString()} out
      </p>
      <label className="ml-auto flex items-center gap-2 text-soft">
        Calls of the last
        <select value={span} onChange={(event) => onSpan(event.target.value)} className="field text-text">
          {SPANS.map(([value, name]) => (
            <option key={value} value={value}>
              {name}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}

/** The sessions and calls that the sums do not contain. */
function Uncounted(props: {
  readonly sums: CostSums;
  /** The number of sessions that were read. */
  readonly sessions: number;
  readonly hasOlder: boolean;
}) {
  const { sums, sessions, hasOlder } = props;
  const { unrecorded, total } = sums;
  return (
    <>
      The newest {sessions.toLocaleString()} {sessions === 1 ? "session was" : "sessions were"} read
      {hasOlder ? ", and there are older ones, which may have spent too" : ", which is all"}.
      {total.unpriced === 0
        ? ""
        : ` The price of ${total.unpriced === 1 ? "one call" : `${total.unpriced.toLocaleString()} calls`} is unknown: no sum and no bar has it.`}
      {unrecorded === 0
        ? ""
        : ` ${unrecorded.toLocaleString()} of them keep no journal, so their cost is unknown.`}
    </>
  );
}

function Days({ days }: { readonly days: CostSums["days"] }) {
  return (
    <Card title="By day" aside="in UTC">
      {days.length === 1 ? (
        <Sums sums={days} heading="Day" />
      ) : days.some(({ cost }) => cost.costMicroUsd > 0) ? (
        <Suspense fallback={<div className="h-45" />}>
          <Chart days={days} />
        </Suspense>
      ) : (
        <p className="text-soft">No call of this time has a known cost above zero.</p>
      )}
      {days.length === 1 ? null : (
        <details>
          <summary className="text-soft">{days.length} days as a table</summary>
          <Sums sums={days.toReversed()} heading="Day" />
        </details>
      )}
    </Card>
  );
}

function sessionLink(sum: CostSum): ReactNode {
  return (
    <Link to="/sessions/$id" params={{ id: sum.name }} className="text-accent underline">
      {brief((sum as CostSum & { readonly agent: string }).agent, 60)}{" "}
      <span className="font-mono text-xs break-all">{sum.name}</span>
    </Link>
  );
}

function Sums(props: {
  readonly sums: readonly CostSum[];
  readonly heading: string;
  readonly nameOf?: (sum: CostSum) => ReactNode;
}) {
  const {
    sums,
    heading,
    // A call that reached no model has no name.
    nameOf = ({ name }) => <span className="break-all">{name === "" ? "none" : brief(name, 120)}</span>,
  } = props;
  const rest = sums.length - SHOWN;
  return (
    <table className="w-full">
      <thead>
        <tr className="text-left text-soft">
          <th className="font-normal">{heading}</th>
          <th className="pl-3 text-right font-normal">Cost</th>
          <th className="pl-3 text-right font-normal max-sm:hidden">Calls</th>
          <th className="pl-3 text-right font-normal max-sm:hidden">Tokens</th>
        </tr>
      </thead>
      <tbody>
        {sums.slice(0, SHOWN).map((sum) => (
          <tr key={sum.name} className="border-t border-line">
            <td className="py-1">{nameOf(sum)}</td>
            <td className="pl-3 text-right whitespace-nowrap">{costText(sum.cost)}</td>
            <td className="pl-3 text-right max-sm:hidden">{sum.cost.calls.toLocaleString()}</td>
            <td className="pl-3 text-right max-sm:hidden">
              {(sum.cost.inputTokens + sum.cost.outputTokens).toLocaleString()}
            </td>
          </tr>
        ))}
      </tbody>
      {rest > 0 ? (
        <caption className="caption-bottom pt-1 text-left text-soft">{rest.toLocaleString()} more</caption>
      ) : null}
    </table>
  );
}

/** The first day of the last so many days; the beginning of all without a number. */
function firstDay(span: string): string {
  if (span === "") return "";
  return new Date(Date.now() - (Number(span) - 1) * DAY_MS).toISOString().slice(0, "2026-11-27".length);
}
