// The tree of a session: all sessions above and below it, each with what it may spend and has spent.
//
// Children are read when their parent is opened, so a large tree costs only its visible part.

import { Link } from "@tanstack/react-router";
import { useQuery } from "@tanstack/react-query";
import {
  budgetUses,
  costText,
  inTreeOrder,
  nodeFacts,
  type BudgetUse,
  type TimelineBuilder,
} from "@holdfast/proto/view";
import { useState } from "react";
import { call } from "../api/client.ts";
import { listPath } from "../api/session-list.ts";
import type { Session, SessionPage } from "../api/types.ts";
import { Problem, StatusMark } from "../parts/parts.tsx";
import { brief } from "../parts/text.ts";
import { LIVE } from "../parts/use-changes.ts";
import { sessionPath } from "../parts/use-session.ts";

const CHILDREN = 200;
const DEPTH_MAX = 64;

export function Tree({
  session,
  timeline,
}: {
  readonly session: Session;
  readonly timeline: TimelineBuilder;
}) {
  const { data, error } = useQuery({
    queryKey: ["above", session.sessionId],
    queryFn: () => readAbove(session),
    meta: LIVE,
  });
  const { models } = timeline;
  return (
    <div className="h-full overflow-auto p-3" tabIndex={0} role="region" aria-label="Tree">
      {error === null ? null : <Problem error={error} />}
      {data === undefined ? null : (
        <ul aria-label="Tree of sessions">
          <Node
            session={data[0] ?? session}
            open={new Set(data.map(({ sessionId }) => sessionId))}
            at={session.sessionId}
          />
        </ul>
      )}
      {models.length === 0 ? null : (
        <table className="mt-6 text-left">
          <caption className="text-left font-semibold">Models of this session</caption>
          <thead className="text-soft">
            <tr>
              <th className="pr-6 font-normal">model</th>
              <th className="pr-6 text-right font-normal">tokens in</th>
              <th className="pr-6 text-right font-normal">tokens out</th>
              <th className="text-right font-normal">cost</th>
            </tr>
          </thead>
          <tbody>
            {models.map(({ model, ...cost }) => (
              <tr key={model} className="border-t border-line">
                <td className="pr-6 font-mono">{brief(model, 80)}</td>
                <td className="pr-6 text-right">{cost.inputTokens.toLocaleString()}</td>
                <td className="pr-6 text-right">{cost.outputTokens.toLocaleString()}</td>
                <td className="text-right">{costText(cost)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </div>
  );
}

/** The sessions above a session, from the root of the tree down to the session. */
async function readAbove(session: Session): Promise<readonly Session[]> {
  const path = [session];
  while (path[0]?.parentSessionId !== undefined && path.length < DEPTH_MAX)
    path.unshift(await call<Session>("GET", sessionPath(path[0].parentSessionId)));
  return path;
}

interface NodeProps {
  readonly session: Session;
  /** The sessions whose children are shown from the start. */
  readonly open: ReadonlySet<string>;
  /** The session whose tree it is. */
  readonly at: string;
}

function Node({ session, open, at }: NodeProps) {
  const { sessionId, agent, children, progress, account } = session;
  const [isOpen, setOpen] = useState(open.has(sessionId));
  return (
    <li>
      <div
        className={`flex flex-wrap items-center gap-x-3 rounded-sm px-1 py-0.5 ${sessionId === at ? "bg-raised" : ""}`}
      >
        <button
          type="button"
          aria-expanded={isOpen}
          aria-label={`Children of ${agent}`}
          disabled={children === 0}
          onClick={() => setOpen(!isOpen)}
          className="w-6 text-soft disabled:opacity-0"
        >
          {isOpen ? "▾" : "▸"}
        </button>
        <StatusMark session={session} />
        <Link
          to="/sessions/$id"
          params={{ id: sessionId }}
          search={{ tab: "tree" }}
          className="font-medium hover:underline"
        >
          {brief(agent, 80)}
        </Link>
        {session.title === undefined ? null : (
          <span className="min-w-0 truncate">{brief(session.title)}</span>
        )}
        <span className="hidden font-mono text-xs text-soft lg:inline">{sessionId}</span>
        <span className="min-w-0 truncate text-sm text-soft">
          {brief(nodeFacts({ progress }).join(", "), 200)}
        </span>
        {account === undefined ? null : <Budget uses={budgetUses(account)} />}
      </div>
      {isOpen && children > 0 ? <Below of={session} open={open} at={at} /> : null}
    </li>
  );
}

function Below({ of, open, at }: { readonly of: Session } & Omit<NodeProps, "session">) {
  const { data, error } = useQuery({
    queryKey: ["children", of.sessionId],
    queryFn: () => call<SessionPage>("GET", listPath({ parentSessionId: of.sessionId, limit: CHILDREN })),
    meta: LIVE,
  });
  if (error !== null && data === undefined) return <Problem error={error} />;
  return (
    <ul className="ml-3 border-l border-line pl-2">
      {inTreeOrder(data?.sessions ?? []).map((child) => (
        <Node key={child.sessionId} session={child} open={open} at={at} />
      ))}
      {data?.nextCursor === undefined ? null : <li className="pl-7 text-soft">and more</li>}
    </ul>
  );
}

function Budget({ uses }: { readonly uses: readonly BudgetUse[] }) {
  return (
    <span className="ml-auto flex flex-wrap items-center gap-3 text-sm text-soft">
      {uses.map(({ max, used, reserved, isTight, text }) => (
        <span key={text} className="flex items-center gap-2">
          <svg className="h-2 w-20" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden>
            <rect width="100" height="8" rx="2" fill="var(--color-line)" />
            <rect
              width={Math.min(100, ((used + reserved) / max) * 100)}
              height="8"
              fill="var(--color-soft)"
            />
            <rect
              width={Math.min(100, (used / max) * 100)}
              height="8"
              fill={isTight ? "var(--color-bad)" : "var(--color-good)"}
            />
          </svg>
          <span className={isTight ? "text-bad" : ""}>{text}</span>
        </span>
      ))}
    </span>
  );
}
