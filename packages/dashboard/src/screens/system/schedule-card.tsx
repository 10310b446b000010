// One schedule: its times, what it does, and the buttons that do it now, pause it and delete it.
//
//   - A schedule of another owner is not done now from here, because its session would belong to the person
//     who pressed.
//   - A press counts once, however often its answer is lost.

import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { call } from "../../api/client.ts";
import type { About, Schedule, Session } from "../../api/types.ts";
import { THING } from "../../design/surfaces.tsx";
import { LongText } from "../../parts/long-text.tsx";
import { Button, Problem, ScrollBox, SureButton, useNow } from "../../parts/parts.tsx";
import { ago, dateText, json, shown, until } from "../../parts/text.ts";
import { sessionPath, useRequest, useRequestKey } from "../../parts/use-session.ts";
import { cronWords } from "./cron-words.ts";
import { ScheduleForm } from "./schedule-form.tsx";

export function ScheduleCard(props: {
  readonly schedule: Schedule;
  readonly about: About;
  readonly onChange: () => void;
}) {
  const { schedule, about, onChange } = props;
  const { scheduleId, cron, timeZone, owner, isPaused = false } = schedule;
  const { run, isBusy, error } = useRequest();
  const [isEdited, setEdited] = useState(false);
  const words = cronWords(cron);
  const path = `/v1/schedules/${encodeURIComponent(scheduleId)}`;
  const change = (method: "POST" | "DELETE", at: string): void =>
    void run(async () => {
      await call(method, at);
      onChange();
    });
  return (
    <article aria-label={shown(scheduleId)} className={THING}>
      <header className="flex flex-wrap items-baseline gap-x-3">
        <h2 className="font-semibold">{shown(scheduleId)}</h2>
        {words === "" ? null : <span>{words}</span>}
        <span className="font-mono text-sm text-soft">{shown(cron)}</span>
        <span className="text-sm text-soft">{shown(timeZone)}</span>
        {owner === undefined ? null : <span className="text-soft">of {shown(owner)}</span>}
      </header>
      <Action schedule={schedule} />
      <Times schedule={schedule} />
      <Payload schedule={schedule} />
      {isEdited ? (
        <div className="mt-3">
          <ScheduleForm
            schedule={schedule}
            taken={[]}
            onCancel={() => setEdited(false)}
            onDone={() => {
              setEdited(false);
              onChange();
            }}
          />
        </div>
      ) : null}
      <div className="mt-3 flex flex-wrap items-center gap-2">
        <DoNow schedule={schedule} about={about} />
        {isEdited || !isOwnOf(about, schedule) ? null : (
          <Button icon="edit" onClick={() => setEdited(true)}>
            Edit
          </Button>
        )}
        <Button
          isDisabled={isBusy}
          onClick={() => change("POST", `${path}/${isPaused ? "unpause" : "pause"}`)}
        >
          {isPaused ? "Unpause" : "Pause"}
        </Button>
        <SureButton
          name="Delete"
          isDisabled={isBusy}
          sure={<p>Delete the schedule {shown(scheduleId)}? Sessions that it started stay.</p>}
          onSure={() => change("DELETE", path)}
        />
      </div>
      {error === undefined ? null : (
        <div className="mt-3">
          <Problem error={error} />
        </div>
      )}
    </article>
  );
}

interface ScheduleProps {
  readonly schedule: Schedule;
}

/** The session that a schedule starts, or the signal that it sends. */
function Action({ schedule }: ScheduleProps) {
  const { start, signal } = schedule;
  return (
    <p className="mt-1">
      {start === undefined ? null : (
        <>
          starts{" "}
          <Link to="/sessions" search={{ agent: start.agent }} className="text-accent underline">
            {shown(start.agent)}
          </Link>
        </>
      )}
      {signal === undefined ? null : (
        <>
          sends signal “{shown(signal.name)}” to{" "}
          <Link
            to="/sessions/$id"
            params={{ id: signal.sessionId }}
            className="break-all text-accent underline"
          >
            {shown(signal.sessionId)}
          </Link>
        </>
      )}
    </p>
  );
}

function Times({ schedule }: ScheduleProps) {
  const { nextAt, lastAt } = schedule;
  const now = useNow();
  return (
    <dl className="mt-2 grid grid-cols-[auto_1fr] gap-x-4">
      <dt className="text-soft">next</dt>
      <dd>
        {nextAt === undefined ? (
          <span className="font-medium text-warn">never: it is paused</span>
        ) : (
          <>
            {until(nextAt, now)} <span className="text-soft">({dateText(nextAt)})</span>
          </>
        )}
      </dd>
      <dt className="text-soft">last</dt>
      <dd>
        {lastAt === undefined ? (
          <span className="text-soft">never</span>
        ) : (
          <>
            {ago(lastAt, now)} <span className="text-soft">({dateText(lastAt)})</span>
          </>
        )}
      </dd>
    </dl>
  );
}

/** The input of the session, or the payload of the signal. */
function Payload({ schedule }: ScheduleProps) {
  const { scheduleId, start, signal } = schedule;
  const value = start?.input ?? signal?.payload;
  if (value === undefined) return null;
  const name = start === undefined ? "Payload" : "Input";
  return (
    <details className="mt-2">
      <summary className="text-soft">{name}</summary>
      <ScrollBox label={`${name} of ${shown(scheduleId)}`}>
        <LongText text={json(value)} />
      </ScrollBox>
    </details>
  );
}

/** Whether the schedule is of the person who looks at it. */
function isOwnOf({ kind, name }: About, { owner }: Schedule): boolean {
  return owner === undefined ? kind === "admin" : owner === name && kind === "user";
}

/** Does at once what the schedule does. Its times stay as they are. */
function DoNow({ schedule, about }: { readonly schedule: Schedule; readonly about: About }) {
  const { start, signal, owner } = schedule;
  const { run, isBusy, error } = useRequest();
  // A press counts once, however often its answer is lost.
  const { key, renew } = useRequestKey(JSON.stringify([start, signal]));
  const queries = useQueryClient();
  const done = queries.getQueryData<string>(["done-now", schedule.scheduleId]);
  const say = (what: string): void => void queries.setQueryData(["done-now", schedule.scheduleId], what);
  // Done from here, its session would belong to the person who pressed.
  if (!isOwnOf(about, schedule))
    return <p className="text-soft">Only {shown(owner ?? "an admin")} can do it now.</p>;
  if (start !== undefined && about.isLocal)
    return <p className="text-soft">A terminal starts its agent now: this page starts no process.</p>;
  const doNow = async (): Promise<void> => {
    if (signal !== undefined) {
      const { name, payload } = signal;
      await call("POST", sessionPath(signal.sessionId, "signals"), {
        name,
        dedupKey: key,
        ...(payload === undefined ? {} : { payload }),
      });
      renew();
      return say("");
    }
    const { agent, agentVersion, ...rest } = start!;
    // Version "1" stands for the version that runners offer.
    const version = agentVersion === undefined || agentVersion === "1" ? {} : { agentVersion };
    const request = { agent, ...version, ...rest, idempotencyKey: key };
    const { sessionId } = await call<Session>("POST", "/v1/sessions", request);
    renew();
    say(sessionId);
  };
  return (
    <>
      <Button isDisabled={isBusy} onClick={() => void run(doNow)}>
        {signal === undefined ? "Start now" : "Send now"}
      </Button>
      {done === undefined ? null : (
        <output className="text-good">
          {done === "" ? (
            "sent"
          ) : (
            <Link to="/sessions/$id" params={{ id: done }} className="text-accent underline">
              started as {done}
            </Link>
          )}
        </output>
      )}
      {error === undefined ? null : <Problem error={error} />}
    </>
  );
}
