// Starts a session: a form made from the schema of the agent's input.
//
//   start-1. A form starts one session, however often its answer is lost: each state of the form has a key of its own.
//   start-2. A refusal stands at its field, and is read to the person with it.
//   start-3. The list of agents is read again under the hands of a person. The form stays that of its agent, also when no runner offers
//       the agent for a moment. Its texts are kept until they have started a session.

import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useRef, useState, type FormEvent, type ReactNode } from "react";
import { ApiError, call } from "../../api/client.ts";
import { formOf, readInput, type Field, type InputForm } from "../../api/input-form.ts";
import type { Session, StartableAgent, StartableAgents } from "../../api/types.ts";
import { LongText } from "../../parts/long-text.tsx";
import { Button, Command, Empty, Problem } from "../../parts/parts.tsx";
import { shown } from "../../parts/text.ts";
import { LIVE } from "../../parts/use-changes.ts";
import { useAbout, useDraft, useRequest, useRequestKey } from "../../parts/use-session.ts";

export interface StartSearch {
  readonly agent?: string;
}

export function readStartSearch(search: Readonly<Record<string, unknown>>): StartSearch {
  const { agent } = search;
  return typeof agent === "string" && agent !== "" ? { agent: agent.slice(0, 200) } : {};
}

/** @param everyMs also reads at this interval, because registrations are no changes of sessions. */
export function useAgents(isEnabled: boolean, everyMs?: number) {
  return useQuery({
    queryKey: ["agents"],
    queryFn: () => call<StartableAgents>("GET", "/v1/agents"),
    enabled: isEnabled,
    meta: LIVE,
    ...(everyMs === undefined ? {} : { refetchInterval: everyMs }),
  });
}

export function StartScreen() {
  const about = useAbout();
  const isLocal = about?.isLocal;
  const { data, error } = useAgents(isLocal === false);
  const { agent } = useSearch({ from: "/start" });
  const navigate = useNavigate({ from: "/start" });
  const shownBefore = useRef<StartableAgent>(undefined);
  if (isLocal === true)
    return (
      <Empty title="Sessions of this database start in a terminal">
        <p>
          <Command>holdfast run FILE</Command> starts one, and it appears here. The page of a coordinator also
          starts them: <Command>holdfast local start</Command>.
        </p>
      </Empty>
    );
  // A later read that fails takes nothing away that a person has written.
  if (error !== null && data === undefined) return <Problem error={error} />;
  if (data === undefined) return <p className="p-6 text-soft">Reading the agents…</p>;
  const { agents = [] } = data;
  const before = shownBefore.current;
  const wanted = agent ?? before?.name;
  const offered = agents.find(({ name }) => name === wanted);
  // start-3.
  const chosen = offered ?? (before !== undefined && before.name === wanted ? before : agents[0]);
  shownBefore.current = chosen;
  if (chosen === undefined)
    return (
      <Empty title="No runner offers an agent">
        <p>
          A runner offers the agents of its files: <Command>holdfast runner --agents FILE --url URL</Command>.
        </p>
        {about?.kind === "admin" ? (
          <p className="mt-3">
            <Link to="/agents" className="text-accent underline">
              Agents
            </Link>{" "}
            says why no runner offers an agent that was pushed.
          </p>
        ) : null}
      </Empty>
    );
  return (
    <div className="h-full overflow-auto">
      <div className="mx-auto max-w-2xl space-y-4 p-4">
        <h1 className="text-lg font-semibold">Start a session</h1>
        <Labelled label="Agent" id="agent">
          <select
            id="agent"
            autoFocus
            value={chosen.name}
            onChange={(event) => void navigate({ search: { agent: event.target.value }, replace: true })}
            className={FIELD}
          >
            {(agents.includes(chosen) ? agents : [chosen, ...agents]).map(({ name }) => (
              <option key={name} value={name}>
                {shown(name)}
              </option>
            ))}
          </select>
        </Labelled>
        {agents.includes(chosen) ? null : (
          <p role="status" className="text-warn">
            No runner offers {shown(chosen.name)} now. A session of it waits until one does.
          </p>
        )}
        {chosen.description === undefined ? null : <LongText text={chosen.description} isMarkdown />}
        <StartForm key={chosen.name} agent={chosen.name} form={formOf(chosen.inputSchema)} />
      </div>
    </div>
  );
}

const FIELD = "w-full rounded-md border border-line bg-panel px-3 py-1.5";

/** The texts of a form. */
interface Filled {
  readonly values: Readonly<Record<string, string>>;
  readonly converses: boolean;
  readonly budget: string;
}

function StartForm({ agent, form }: { readonly agent: string; readonly form: InputForm }) {
  const [draft, setDraft] = useDraft(`start of ${agent}`);
  const { values, converses, budget } = (
    draft === ""
      ? { values: {}, converses: form.type === "text" && form.canConverse, budget: "" }
      : JSON.parse(draft)
  ) as Filled;
  const fill = (change: Partial<Filled>): void =>
    setDraft(JSON.stringify({ values, converses, budget, ...change }));
  const [started, setStarted] = useState<string>();
  const [problems, setProblems] = useState<Readonly<Record<string, string>>>({});
  const { run, isBusy, error } = useRequest();
  const navigate = useNavigate();
  const box = useRef<HTMLFormElement>(null);
  const { key } = useRequestKey(draft); // start-1.
  const latest = useRef(draft);
  latest.current = draft;
  const showProblems = (found: Readonly<Record<string, string>>): void => {
    setProblems(found);
    setTimeout(() => box.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus());
  };
  const start = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    const read = readInput(form, values, converses);
    const limit = Number(budget);
    const found = {
      ...("problems" in read ? read.problems : {}),
      ...(budget === "" || limit >= 0.000001 ? {} : { [BUDGET]: "must be an amount of dollars above zero" }),
    };
    if (!("input" in read) || Object.keys(found).length > 0) return showProblems(found);
    setProblems({});
    let session: Session | undefined;
    await run(async () => {
      session = await call<Session>("POST", "/v1/sessions", {
        agent,
        idempotencyKey: key,
        ...(read.input === undefined ? {} : { input: read.input }),
        ...(budget === "" ? {} : { budget: { maxCostMicroUsd: Math.round(limit * 1_000_000) } }),
      }).catch((thrown: unknown) => {
        showProblems(problemsOf(thrown));
        throw thrown;
      });
    });
    if (session === undefined) return;
    // start-3. The person has written on meanwhile.
    if (latest.current !== draft) return setStarted(session.sessionId);
    setDraft("");
    void navigate({
      to: "/sessions/$id",
      params: { id: session.sessionId },
      search: form.type === "text" ? { tab: "conversation" } : {},
    });
  };
  const set = (name: string, text: string): void => fill({ values: { ...values, [name]: text } });
  return (
    <form ref={box} noValidate onSubmit={(event) => void start(event)} className="space-y-4">
      {form.type === "fields" ? (
        form.fields.map((field) => (
          <InputField
            key={field.name}
            field={field}
            value={values[field.name] ?? field.initial}
            problem={problems[field.name]}
            onChange={(text) => set(field.name, text)}
          />
        ))
      ) : (
        <Labelled
          id="input"
          label={form.type === "text" ? "Request" : "Input"}
          problem={problems[""]}
          hint={form.type === "any" ? "Text, or JSON" : undefined}
        >
          <textarea
            {...described("input", problems[""])}
            rows={5}
            value={values[""] ?? ""}
            onChange={(event) => set("", event.target.value)}
            className={FIELD}
          />
        </Labelled>
      )}
      {form.type === "text" && form.canConverse ? (
        <label className="flex items-center gap-2">
          <input
            type="checkbox"
            checked={converses}
            onChange={(event) => fill({ converses: event.target.checked })}
            className="size-6 accent-accent"
          />
          Stay for further messages
        </label>
      ) : null}
      <Labelled id="budget" label="Most it may cost, in dollars" problem={problems[BUDGET]} hint="Optional">
        <input
          {...described("budget", problems[BUDGET])}
          inputMode="decimal"
          value={budget}
          onChange={(event) => fill({ budget: event.target.value })}
          className={FIELD}
        />
      </Labelled>
      <Button type="submit" kind="main" isDisabled={isBusy}>
        Start
      </Button>
      {started === undefined ? null : (
        <p role="status">
          The session is started with what was written before:{" "}
          <Link to="/sessions/$id" params={{ id: started }} className="text-accent underline">
            {started}
          </Link>
        </p>
      )}
      {error === undefined ? null : <Problem error={error} />}
    </form>
  );
}

/** Not the name of a field. */
const BUDGET = "/budget/maxCostMicroUsd";

/** start-2. The mistakes that the server found, by the fields of the form. */
function problemsOf(thrown: unknown): Readonly<Record<string, string>> {
  if (!(thrown instanceof ApiError)) return {};
  return Object.fromEntries(
    thrown.fields.map(({ pointer, message }) => {
      if (pointer === "/input") return ["", message];
      return [pointer.startsWith("/input/") ? pointer.slice("/input/".length) : pointer, message];
    }),
  );
}

function InputField(props: {
  readonly field: Field;
  readonly value: string;
  readonly problem: string | undefined;
  readonly onChange: (text: string) => void;
}) {
  const { field, value, problem, onChange } = props;
  const id = `field-${field.name}`;
  const common = { ...described(id, problem), value, className: FIELD };
  const options = field.kind === "yes_no" ? ["true", "false"] : field.choices;
  return (
    <Labelled
      id={id}
      label={shown(field.name)}
      problem={problem}
      hint={[field.description, field.kind === "json" ? "JSON" : "", field.isRequired ? "" : "optional"]
        .filter((part) => part !== undefined && part !== "")
        .join(" · ")}
    >
      {options !== undefined ? (
        <select {...common} onChange={(event) => onChange(event.target.value)}>
          <option value="">{field.isRequired ? "choose" : "not given"}</option>
          {options.map((choice) => (
            <option key={choice} value={choice}>
              {field.kind === "yes_no"
                ? choice === "true"
                  ? "yes"
                  : "no"
                : shown(choice.replace(/^"|"$/g, ""))}
            </option>
          ))}
        </select>
      ) : field.kind === "number" ? (
        <input {...common} inputMode="decimal" onChange={(event) => onChange(event.target.value)} />
      ) : (
        <textarea
          {...common}
          rows={field.kind === "json" || isLong(field.name) ? 4 : 1}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Labelled>
  );
}

function isLong(name: string): boolean {
  return /prompt|text|instructions|description|request|message/i.test(name);
}

function described(id: string, problem: string | undefined) {
  return {
    id,
    "aria-invalid": problem !== undefined,
    "aria-describedby": `${id}-hint`,
  };
}

function Labelled(props: {
  readonly id: string;
  readonly label: string;
  readonly hint?: string | undefined;
  readonly problem?: string | undefined;
  readonly children: ReactNode;
}) {
  const { id, label, hint, problem, children } = props;
  return (
    <div className="space-y-1">
      <label htmlFor={id} className="block font-medium">
        {label}
      </label>
      {children}
      <p id={`${id}-hint`} className="text-[13px]">
        {problem === undefined ? null : (
          <span role="alert" className="font-medium text-bad">
            {shown(problem)}{" "}
          </span>
        )}
        {hint === undefined || hint === "" ? null : <span className="text-soft">{shown(hint)}</span>}
      </p>
    </div>
  );
}
