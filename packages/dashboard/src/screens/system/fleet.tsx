// The fleet: runners with their state, labels and load, and the queue with the reason why each run waits.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { call } from "../../api/client.ts";
import type { QueuedRun, Runner } from "../../api/types.ts";
import { Chip, Meter, THING, type Tone } from "../../design/surfaces.tsx";
import { Command, Empty, Problem, ScreenBody, SureButton, useNow } from "../../parts/parts.tsx";
import { ago, brief, dateText, shown, until } from "../../parts/text.ts";
import { LIVE } from "../../parts/use-changes.ts";
import { REFRESH_MS, useRunners } from "../../api/use-runners.ts";
import { useAbout, useRequest } from "../../parts/use-session.ts";

const RUNS_MAX = 200;
/** The runs of one reason that are shown at first. */
const SHOWN = 5;

export function FleetScreen() {
  const about = useAbout();
  if (about === undefined) return null;
  if (about.isLocal)
    return (
      <ScreenBody title="Fleet">
        <Empty title="A local database has no fleet">
          <p>
            Here the process that starts a session also runs it. In a fleet a coordinator holds the sessions,
            and runners on any number of machines run them:
          </p>
          <p className="mt-3">
            <Command>holdfast coordinator</Command>
          </p>
          <p className="mt-3">
            <Command>holdfast runner --agents FILE --url URL</Command>
          </p>
        </Empty>
      </ScreenBody>
    );
  return (
    <ScreenBody title="Fleet">
      {about.kind === "admin" ? (
        <Runners />
      ) : (
        <p className="text-soft">Only admins see the runners. Below is what is queued for you.</p>
      )}
      <Queue />
    </ScreenBody>
  );
}

function Runners() {
  const { data, error } = useRunners(true);
  if (data === undefined)
    return error === null ? <p className="text-soft">Reading the runners…</p> : <Problem error={error} />;
  const { runners, nextCursor } = data;
  const held = runners.reduce((sum, { held: each }) => sum + each, 0);
  const room = runners.reduce((sum, { maxRuns, status }) => sum + (status === "online" ? maxRuns : 0), 0);
  return (
    <section aria-label="Runners">
      <h2 className="mb-2 font-semibold">
        Runners{" "}
        <span className="font-normal text-soft">
          {runners.length}
          {nextCursor === undefined ? "" : "+"} with {held.toLocaleString()}{" "}
          {held === 1 ? "session" : "sessions"}, room for {room.toLocaleString()}
        </span>
      </h2>
      {error === null ? null : <Problem error={error} />}
      {runners.length === 0 ? (
        <Empty title="No runner is registered">
          <p>
            Sessions stay queued until a runner offers their agent:{" "}
            <Command>holdfast runner --agents FILE --url URL</Command>. It needs a token of{" "}
            <Command>holdfast token create NAME --kind registration</Command>.
          </p>
        </Empty>
      ) : (
        <ul className="grid gap-3 md:grid-cols-2">
          {runners.map((runner) => (
            <li key={runner.runnerId}>
              <RunnerCard runner={runner} />
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

const STATUS_TONES: Readonly<Record<Runner["status"], Tone>> = {
  online: "good",
  draining: "warn",
  silent: "bad",
};

function RunnerCard({ runner }: { readonly runner: Runner }) {
  const {
    runnerId,
    name,
    hostname,
    status,
    labels,
    agents,
    taskKinds,
    maxRuns,
    held,
    owner,
    seenAt,
    version,
  } = runner;
  const now = useNow();
  const queries = useQueryClient();
  const { run, isBusy, error } = useRequest();
  const drain = (): void =>
    void run(async () => {
      await call("POST", `/v1/runners/${encodeURIComponent(runnerId)}/drain`);
      await queries.invalidateQueries({ queryKey: ["runners"] });
    });
  const offered = agents.map((agent) =>
    agent.version === undefined ? agent.name : `${agent.name} ${agent.version}`,
  );
  return (
    <article aria-label={shown(name)} className={`h-full ${THING}`}>
      <header className="flex flex-wrap items-baseline gap-x-3">
        <h3 className="font-semibold">{brief(name, 80)}</h3>
        <Chip tone={STATUS_TONES[status]}>{status}</Chip>
        <span className="ml-auto text-soft" title={dateText(seenAt)}>
          called {ago(seenAt, now)}
        </span>
      </header>
      <p className="break-all text-soft">
        {shown(hostname)}
        {owner === undefined ? "" : ` · of ${shown(owner)}`}
        {version === undefined ? "" : ` · ${shown(version)}`}
      </p>
      <Load held={held} maxRuns={maxRuns} />
      <dl className="mt-2 grid grid-cols-[auto_1fr] gap-x-4">
        <Words name="labels" words={Object.entries(labels).map(([key, value]) => `${key}=${value}`)} />
        <Words name="agents" words={offered} />
        <Words name="tasks" words={taskKinds} />
      </dl>
      {status === "draining" ? (
        <p className="mt-3 text-soft">It gets nothing new, and ends when its sessions have ended or wait.</p>
      ) : (
        <div className="mt-3">
          <SureButton
            name="Drain"
            isDisabled={isBusy}
            sure={
              <p>
                Drain {shown(name)}? It gets nothing new. It releases sessions that wait at once, lets the
                others run until they end or wait, and then ends. This cannot be taken back.
              </p>
            }
            onSure={drain}
          />
        </div>
      )}
      {error === undefined ? null : <Problem error={error} />}
    </article>
  );
}

function Load({ held, maxRuns }: { readonly held: number; readonly maxRuns: number }) {
  return (
    <div className="mt-2 flex items-center gap-3">
      <Meter used={held} max={maxRuns} />
      <span className="shrink-0">
        {held} of {maxRuns} runs
      </span>
    </div>
  );
}

function Words({ name, words }: { readonly name: string; readonly words: readonly string[] }) {
  if (words.length === 0) return null;
  return (
    <>
      <dt className="text-soft">{name}</dt>
      <dd className="min-w-0 break-words">{brief(words.join(", "), 400)}</dd>
    </>
  );
}

function Queue() {
  const { data, error } = useQuery({
    queryKey: ["queue"],
    queryFn: () =>
      call<{ readonly runs: readonly QueuedRun[]; readonly nextCursor?: string }>(
        "GET",
        `/v1/runs?status=queued&limit=${RUNS_MAX}`,
      ),
    refetchInterval: REFRESH_MS,
    meta: LIVE,
  });
  if (data === undefined)
    return error === null ? <p className="text-soft">Reading the queue…</p> : <Problem error={error} />;
  const { runs, nextCursor } = data;
  const byReason = Map.groupBy(runs, ({ blocked }) => blocked ?? "");
  return (
    <section aria-label="Queue">
      <h2 className="mb-2 font-semibold">
        Queue{" "}
        <span className="font-normal text-soft">
          {runs.length.toLocaleString()}
          {nextCursor === undefined ? "" : "+"} {runs.length === 1 ? "run" : "runs"}
        </span>
      </h2>
      {runs.length === 0 ? (
        <p className="text-soft">
          Nothing is queued. A session that has something to do and that no runner holds would be here, with
          the reason.
        </p>
      ) : (
        <ul className="space-y-3">
          {[...byReason].map(([reason, group]) => (
            <li key={reason} className={THING}>
              <h3 className="font-medium break-words">
                {reason === "" ? "Ready: a runner takes it next" : shown(reason)}{" "}
                <span className="font-normal text-soft">{group.length.toLocaleString()}</span>
              </h3>
              <QueueGroup runs={group} />
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function QueueGroup({ runs }: { readonly runs: readonly QueuedRun[] }) {
  const now = useNow();
  const rest = runs.slice(SHOWN);
  const row = ({ sessionId, agent, since, blockedUntil, owner, demands }: QueuedRun) => (
    <li
      key={sessionId}
      className="flex flex-wrap items-baseline gap-x-3 border-t border-line py-1 first:border-t-0"
    >
      <Link to="/sessions/$id" params={{ id: sessionId }} className="font-medium text-accent underline">
        {brief(agent, 80)}
      </Link>
      <span className="font-mono text-xs break-all text-soft">{sessionId}</span>
      <span className="text-soft">{brief(demandsText(demands), 200)}</span>
      <span className="ml-auto text-soft">
        {owner === undefined ? "" : `of ${brief(owner, 60)} · `}
        {since === undefined ? "" : ago(since, now)}
        {blockedUntil === undefined ? "" : ` · fails or is paused ${until(blockedUntil, now)}`}
      </span>
    </li>
  );
  return (
    <>
      <ul className="mt-2">{runs.slice(0, SHOWN).map(row)}</ul>
      {rest.length === 0 ? null : (
        <details>
          <summary className="text-soft">{rest.length.toLocaleString()} more</summary>
          <ul className="max-h-96 overflow-auto" tabIndex={0} aria-label="More runs">
            {rest.map(row)}
          </ul>
        </details>
      )}
    </>
  );
}

function demandsText(demands: Readonly<Record<string, string>>): string {
  return Object.entries(demands)
    .map(([name, value]) => `${name}=${value}`)
    .join(", ");
}
