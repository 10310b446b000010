// The first screen: what needs the person, what is wrong, what runs, and what it costs.

import { costText, NO_COST, usdText } from "@holdfast/proto/view";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Inbox, OpenItem } from "../../api/open-items.ts";
import type { About, Session } from "../../api/types.ts";
import { Icon, type IconName } from "../../design/icons.tsx";
import { Card, Figure, TONE_TEXT, type Tone } from "../../design/surfaces.tsx";
import { CallWords } from "../../parts/reading/call-words.tsx";
import { Problem, Reading, ScreenBody, useNow } from "../../parts/parts.tsx";
import { ago, brief, count } from "../../parts/text.ts";
import { useAbout } from "../../parts/use-session.ts";
import { useInbox } from "../inbox/use-inbox.ts";
import { CostToday } from "./cost-today.tsx";
import { doingText, failedToday, goneRunners, isQuiet, stuckReasons } from "./home-facts.ts";
import { useHome, WORKING_MAX, type HomeReads } from "./use-home.ts";

/** The rows of a card. The screen that it leads to has all. */
const SHOWN = 6;

export function HomeScreen() {
  const about = useAbout();
  return about === undefined ? <Reading what="what happens now" /> : <Home about={about} />;
}

function Home({ about }: { readonly about: About }) {
  const reads = useHome(about);
  const { data: inbox, error } = useInbox();
  const problem = error ?? Object.values(reads).find((read) => read.error !== null)?.error;
  return (
    <ScreenBody title="Home">
      {problem === undefined || problem === null ? null : <Problem error={problem} />}
      <Figures inbox={inbox} reads={reads} />
      <div className="grid items-start gap-4 lg:grid-cols-2">
        <NeedsYou inbox={inbox} />
        <Wrong inbox={inbox} reads={reads} />
        <Running reads={reads} />
        <CostToday inbox={inbox} reads={reads} />
      </div>
    </ScreenBody>
  );
}

interface HomeProps {
  readonly inbox: Inbox | undefined;
  readonly reads: HomeReads;
}

const UNREAD = "…";

function Figures({ inbox, reads }: HomeProps) {
  const { working, queue, costs } = reads;
  const wrong = useWrong(inbox, reads);
  const queued = queue.data?.runs.length ?? 0;
  const items = inbox?.items.length;
  return (
    <dl className="grid grid-cols-2 gap-x-4 gap-y-3 rounded-lg border border-line bg-panel p-4 shadow-sm md:grid-cols-4">
      <Figure name="Needs you" {...(items === 0 ? {} : { tone: "warn" })}>
        <Link to="/inbox" className="hover:underline">
          {items === undefined ? UNREAD : `${items.toLocaleString()}${inbox!.cut.length > 0 ? "+" : ""}`}
        </Link>
      </Figure>
      <Figure name="Wrong" {...(wrong === undefined || wrong.sum === 0 ? {} : { tone: "bad" })}>
        <Link to="/sessions" search={{ status: "failed" }} className="hover:underline">
          {wrong === undefined ? UNREAD : `${wrong.sum.toLocaleString()}${wrong.isCut ? "+" : ""}`}
        </Link>
      </Figure>
      <Figure name="Running" note={queued === 0 ? undefined : `${queued.toLocaleString()} queued`}>
        <Link to="/sessions" search={{ status: "working" }} className="hover:underline">
          {working.data === undefined
            ? UNREAD
            : `${working.data.sessions.length.toLocaleString()}${working.data.nextCursor === undefined ? "" : "+"}`}
        </Link>
      </Figure>
      <Figure name="Cost today">
        <Link to="/costs" className="hover:underline">
          {costs.data === undefined ? UNREAD : costText(costs.data.sums.total) || "$0.00"}
        </Link>
      </Figure>
    </dl>
  );
}

function NeedsYou({ inbox }: Pick<HomeProps, "inbox">) {
  const now = useNow();
  const items = inbox?.items ?? [];
  return (
    <Card title="Needs you" isFlush aside={<More to="/inbox" all={items.length} />}>
      {inbox === undefined ? (
        <Quiet>Reading what waits for you…</Quiet>
      ) : items.length === 0 ? (
        <Quiet>Nothing waits for you.</Quiet>
      ) : (
        <ul>
          {items.slice(0, SHOWN).map((item) => (
            <li key={item.id} className="border-t border-line">
              <Link to="/inbox" search={{ item: item.id }} className={ROW}>
                <RowText {...lookOf(item)} title={nameOf(item.session)} about={askOf(item)} />
                <RowEnd>{ago(item.since, now)}</RowEnd>
              </Link>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

const LOOKS: Readonly<Record<OpenItem["kind"], { readonly icon: IconName; readonly tone: Tone }>> = {
  approval: { icon: "ask", tone: "warn" },
  question: { icon: "ask", tone: "warn" },
  pause: { icon: "pause", tone: "bad" },
  uncertain_effect: { icon: "alert", tone: "bad" },
  answered: { icon: "check", tone: "plain" },
};

function lookOf({ kind }: OpenItem): { readonly icon: IconName; readonly tone: Tone } {
  return LOOKS[kind];
}

/** The call where there is one says more than its question. The item in the inbox has all of it. */
function askOf({ work, what }: OpenItem): ReactNode {
  return work === undefined ? what : <CallWords call={work} />;
}

function nameOf({ title, agent }: Pick<Session, "title" | "agent">): string {
  return title === undefined ? brief(agent, 80) : `${brief(title)} · ${brief(agent, 60)}`;
}

/** Failed, stuck and gone: `undefined` until it is known. */
function useWrong(inbox: Inbox | undefined, { queue, runners }: HomeReads) {
  const now = useNow(30_000);
  if (inbox === undefined) return undefined;
  const failed = failedToday(inbox.failed, now);
  const stuck = stuckReasons(queue.data?.runs ?? []);
  const gone = goneRunners(runners.data?.runners ?? []);
  const sum = failed.length + gone.length + stuck.reduce((all, { runs }) => all + runs.length, 0);
  return {
    failed,
    stuck,
    gone,
    sum,
    isCut: inbox.cut.includes("failed") && failed.length === inbox.failed.length,
  };
}

function Wrong({ inbox, reads }: HomeProps) {
  const now = useNow();
  const wrong = useWrong(inbox, reads);
  return (
    <Card title="Wrong" isFlush aside="failed in the last day, stuck, gone">
      {wrong === undefined ? (
        <Quiet>Reading what is wrong…</Quiet>
      ) : wrong.sum === 0 ? (
        <Quiet>Nothing failed in the last day, and nothing is stuck.</Quiet>
      ) : (
        <ul>
          {wrong.gone.slice(0, SHOWN).map(({ runnerId, name, seenAt, held }) => (
            <li key={runnerId} className="border-t border-line">
              <Link to="/fleet" className={ROW}>
                <RowText
                  icon="fleet"
                  tone="bad"
                  title={`Runner ${brief(name, 80)} is silent`}
                  about={`it holds ${count(held, "session")}`}
                />
                <RowEnd>{ago(seenAt, now)}</RowEnd>
              </Link>
            </li>
          ))}
          {wrong.stuck.slice(0, SHOWN).map(({ reason, runs }) => (
            <li key={reason} className="border-t border-line">
              <Link to="/fleet" className={ROW}>
                <RowText
                  icon="queued"
                  tone="warn"
                  title={`${count(runs.length, "session")} cannot start`}
                  about={reason}
                />
              </Link>
            </li>
          ))}
          {wrong.failed.slice(0, SHOWN).map((session) => (
            <li key={session.sessionId} className="border-t border-line">
              <Link to="/sessions/$id" params={{ id: session.sessionId }} className={ROW}>
                <RowText
                  icon="cross"
                  tone="bad"
                  title={nameOf(session)}
                  about={session.error?.message ?? "it failed"}
                />
                <RowEnd>{ago(session.endedAt ?? session.updatedAt, now)}</RowEnd>
              </Link>
            </li>
          ))}
          {wrong.failed.length > SHOWN ? (
            <li className="border-t border-line px-4 py-2">
              <Link to="/sessions" search={{ status: "failed" }} className="text-accent underline">
                {(wrong.failed.length - SHOWN).toLocaleString()} more that failed
              </Link>
            </li>
          ) : null}
        </ul>
      )}
    </Card>
  );
}

function Running({ reads: { working } }: Pick<HomeProps, "reads">) {
  const now = useNow();
  const sessions = working.data?.sessions ?? [];
  return (
    <Card
      title="Running"
      isFlush
      aside={<More to="/sessions" all={sessions.length} isCut={sessions.length === WORKING_MAX} />}
    >
      {working.data === undefined ? (
        <Quiet>Reading what runs…</Quiet>
      ) : sessions.length === 0 ? (
        <Quiet>
          Nothing runs now.{" "}
          <Link to="/start" className="text-accent underline">
            Start a session
          </Link>
        </Quiet>
      ) : (
        <ul>
          {sessions.slice(0, SHOWN).map((session) => (
            <li key={session.sessionId} className="border-t border-line">
              <Link to="/sessions/$id" params={{ id: session.sessionId }} className={ROW}>
                <RowText icon="working" tone="busy" title={nameOf(session)} about={doingText(session)} />
                <RowEnd>
                  {isQuiet(session, now) ? (
                    <span className="text-warn">
                      no news for {ago(session.updatedAt, now).replace(" ago", "")}
                    </span>
                  ) : (
                    ago(session.createdAt, now).replace(" ago", "")
                  )}
                  <br />
                  {costText(session.cost ?? NO_COST) || usdText(0)}
                </RowEnd>
              </Link>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

const ROW = "flex min-h-12 items-center gap-3 px-4 py-2 -outline-offset-2 hover:bg-raised";

function RowText(props: {
  readonly icon: IconName;
  readonly tone: Tone;
  readonly title: string;
  readonly about: ReactNode;
}) {
  const { icon, tone, title, about } = props;
  return (
    <>
      <Icon name={icon} className={TONE_TEXT[tone]} />
      <span className="min-w-0 flex-1">
        <span className="block truncate font-medium">{title}</span>
        {about === "" ? null : (
          <span className="block truncate text-sm text-soft">
            {typeof about === "string" ? brief(about, 240) : about}
          </span>
        )}
      </span>
    </>
  );
}

function RowEnd({ children }: { readonly children: ReactNode }) {
  return <span className="shrink-0 text-right text-sm text-soft">{children}</span>;
}

function Quiet({ children }: { readonly children: ReactNode }) {
  return <p className="border-t border-line px-4 py-6 text-soft">{children}</p>;
}

/** A link to all rows, where a card does not show them. */
function More(props: {
  readonly to: "/inbox" | "/sessions";
  readonly all: number;
  readonly isCut?: boolean;
}) {
  const { to, all, isCut = false } = props;
  return all <= SHOWN ? null : (
    <Link
      to={to}
      {...(to === "/inbox" ? {} : { search: { status: "working" } })}
      className="text-accent underline"
    >
      all {all.toLocaleString()}
      {isCut ? "+" : ""}
    </Link>
  );
}
