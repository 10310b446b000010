// The form that makes a schedule, or changes the times and the input of one.
//
//   - A changed schedule keeps everything that the form does not show, such as its demands and its budget.
//   - The server checks the times and the input; its refusal stands below the form.

import { useState, type FormEvent } from "react";
import { call } from "../../api/client.ts";
import type { Schedule } from "../../api/types.ts";
import { Button, Problem } from "../../parts/parts.tsx";
import { json } from "../../parts/text.ts";
import { useRequest } from "../../parts/use-session.ts";
import { described, FIELD, Labelled } from "../agents/form-fields.tsx";
import { useAgents } from "../agents/start.tsx";
import { cronWords } from "./cron-words.ts";

interface Filled {
  readonly name: string;
  readonly cron: string;
  readonly timeZone: string;
  readonly agent: string;
  /** JSON, or a plain text. */
  readonly input: string;
}

type Problems = Partial<Record<keyof Filled, string>>;

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

export function ScheduleForm(props: {
  /** The schedule that is changed; a new one without it. */
  readonly schedule?: Schedule;
  /** The names that are taken. */
  readonly taken: readonly string[];
  readonly onDone: () => void;
  readonly onCancel: () => void;
}) {
  const { schedule, taken, onDone, onCancel } = props;
  const { filled, change, problems, save, isBusy, error } = useScheduleForm(schedule, taken, onDone);
  const words = cronWords(filled.cron);
  const box = (name: keyof Filled, label: string, hint: string) => (
    <Labelled id={`schedule-${name}`} label={label} hint={hint} problem={problems[name]}>
      <input
        {...described(`schedule-${name}`, problems[name])}
        value={filled[name]}
        spellCheck={false}
        onChange={(event) => change({ [name]: event.target.value })}
        className={FIELD}
      />
    </Labelled>
  );
  return (
    <form noValidate onSubmit={(event) => void save(event)} className="grid gap-3 sm:grid-cols-2">
      {schedule === undefined ? (
        <>
          {box("name", "Name", "such as nightly-report")}
          <AgentBox value={filled.agent} problem={problems.agent} onChange={(agent) => change({ agent })} />
        </>
      ) : null}
      {box("cron", "Times", words === "" ? "cron: minute, hour, day, month, weekday" : words)}
      {box("timeZone", "Time zone", "such as Europe/Berlin")}
      <div className="sm:col-span-2">
        <Labelled
          id="schedule-input"
          label={schedule?.signal === undefined ? "Input" : "Payload"}
          hint="JSON, or a plain text · optional"
          problem={problems.input}
        >
          <textarea
            {...described("schedule-input", problems.input)}
            rows={3}
            value={filled.input}
            onChange={(event) => change({ input: event.target.value })}
            className={FIELD}
          />
        </Labelled>
      </div>
      <div className="flex gap-2 sm:col-span-2">
        <Button type="submit" kind="main" isDisabled={isBusy}>
          {schedule === undefined ? "Make the schedule" : "Save"}
        </Button>
        <Button onClick={onCancel}>Cancel</Button>
      </div>
      {error === undefined ? null : (
        <div className="sm:col-span-2">
          <Problem error={error} />
        </div>
      )}
    </form>
  );
}

function AgentBox(props: {
  readonly value: string;
  readonly problem: string | undefined;
  readonly onChange: (agent: string) => void;
}) {
  const { value, problem, onChange } = props;
  const { data } = useAgents(true);
  const names = (data?.agents ?? []).map(({ name }) => name);
  return (
    <Labelled id="schedule-agent" label="Agent" hint="of those that runners offer" problem={problem}>
      <select
        {...described("schedule-agent", problem)}
        value={value}
        onChange={(event) => onChange(event.target.value)}
        className={FIELD}
      >
        <option value="">choose</option>
        {names.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </Labelled>
  );
}

function useScheduleForm(schedule: Schedule | undefined, taken: readonly string[], onDone: () => void) {
  const [filled, setFilled] = useState<Filled>(() => ({
    name: schedule?.scheduleId ?? "",
    cron: schedule?.cron ?? "",
    timeZone: schedule?.timeZone ?? Intl.DateTimeFormat().resolvedOptions().timeZone,
    agent: schedule?.start?.agent ?? "",
    input: inputText(schedule?.start?.input ?? schedule?.signal?.payload),
  }));
  const [problems, setProblems] = useState<Problems>({});
  const { run, isBusy, error } = useRequest();
  const save = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    const found = schedule === undefined ? problemsOf(filled, taken) : {};
    if (filled.cron.trim() === "") found.cron = "The times are required";
    setProblems(found);
    if (Object.keys(found).length > 0) return;
    const path = `/v1/schedules/${encodeURIComponent(filled.name)}`;
    if (await run(() => call("PUT", path, requestOf(filled, schedule)))) onDone();
  };
  const change = (to: Partial<Filled>): void => setFilled({ ...filled, ...to });
  return { filled, change, problems, save, isBusy, error };
}

function problemsOf({ name, agent }: Filled, taken: readonly string[]): Problems {
  return {
    ...(!NAME.test(name) ? { name: "A name has letters, digits, dots, lines and underscores" } : {}),
    ...(taken.includes(name) ? { name: "There is a schedule of this name: edit it, or choose another" } : {}),
    ...(agent === "" ? { agent: "An agent is required" } : {}),
  };
}

/** The request that stores the form, with the parts of the schedule that it does not show. */
export function requestOf({ cron, timeZone, agent, input }: Filled, schedule: Schedule | undefined): object {
  const value = input.trim() === "" ? undefined : readInput(input);
  const times = { cron: cron.trim(), ...(timeZone.trim() === "" ? {} : { timeZone: timeZone.trim() }) };
  if (schedule?.signal !== undefined) {
    const { payload: _, ...kept } = schedule.signal;
    return { ...times, signal: { ...kept, ...(value === undefined ? {} : { payload: value }) } };
  }
  const { input: _, ...kept } = schedule?.start ?? { agent };
  return { ...times, start: { ...kept, ...(value === undefined ? {} : { input: value }) } };
}

function inputText(value: unknown): string {
  return typeof value === "string" && readInput(value) === value ? value : json(value);
}

/** A text that is no JSON is a text. */
function readInput(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}
