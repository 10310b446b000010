// Schedules: what each does, when it fires next, and when it last did.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "../../api/client.ts";
import type { Schedule } from "../../api/types.ts";
import { Card } from "../../design/surfaces.tsx";
import { Button, Command, Empty, Problem, Reading, ScreenBody } from "../../parts/parts.tsx";
import { LIVE } from "../../parts/use-changes.ts";
import { useAbout } from "../../parts/use-session.ts";
import { ScheduleCard } from "./schedule-card.tsx";
import { ScheduleForm } from "./schedule-form.tsx";

/** A schedule that another process stores is no change of a session. */
const REFRESH_MS = 5_000;

export function SchedulesScreen() {
  const about = useAbout();
  const queries = useQueryClient();
  const [isMaking, setMaking] = useState(false);
  const { data, error } = useQuery({
    queryKey: ["schedules"],
    queryFn: () => call<{ readonly schedules: readonly Schedule[] }>("GET", "/v1/schedules"),
    refetchInterval: REFRESH_MS,
    meta: LIVE,
  });
  if (data === undefined || about === undefined)
    return error === null ? (
      <Reading what="the schedules" />
    ) : (
      <div className="p-3">
        <Problem error={error} />
      </div>
    );
  const { schedules } = data;
  const read = (): void => void queries.invalidateQueries({ queryKey: ["schedules"] });
  const form = isMaking ? (
    <Card title="New schedule">
      <ScheduleForm
        taken={schedules.map(({ scheduleId }) => scheduleId)}
        onCancel={() => setMaking(false)}
        onDone={() => {
          setMaking(false);
          read();
        }}
      />
    </Card>
  ) : null;
  const actions =
    about.isLocal || isMaking ? null : (
      <Button kind="main" icon="start" onClick={() => setMaking(true)}>
        New schedule
      </Button>
    );
  if (schedules.length === 0)
    return (
      <ScreenBody title="Schedules" actions={actions}>
        {form}
        <Empty title="There is no schedule">
          <p>
            A schedule starts a session, or sends a signal, at times that come again. A terminal makes one,
            too:
          </p>
          <p className="mt-3">
            <Command>{'holdfast schedule add "0 3 * * *" --run FILE'}</Command>
          </p>
          {about.isLocal ? (
            <p className="mt-3">
              Schedules of a local database fire while <Command>holdfast schedule run</Command> runs.
            </p>
          ) : null}
        </Empty>
      </ScreenBody>
    );
  return (
    <ScreenBody title="Schedules" actions={actions}>
      {form}
      {error === null ? null : <Problem error={error} />}
      <p className="text-soft">
        {about.isLocal ? (
          <>
            They fire while <Command>holdfast schedule run</Command> runs.{" "}
          </>
        ) : null}
        Times that pass while a schedule is paused do not fire.
      </p>
      <ul className="space-y-3">
        {schedules.map((schedule) => (
          <li key={schedule.scheduleId}>
            <ScheduleCard schedule={schedule} about={about} onChange={read} />
          </li>
        ))}
      </ul>
    </ScreenBody>
  );
}
