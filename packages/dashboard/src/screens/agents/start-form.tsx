// The form that starts a session, made from the schema of the agent's input.
//
//   - A form starts one session, however often its answer is lost: each state of the form has a key of its
//     own.
//   - A text of the form is kept until it has started a session.

import { Link, useNavigate } from "@tanstack/react-router";
import { useRef, useState, type FormEvent, type RefObject } from "react";
import { ApiError, call } from "../../api/client.ts";
import { readInput, type InputForm } from "../../api/input-form.ts";
import type { Session } from "../../api/types.ts";
import { Button, Problem } from "../../parts/parts.tsx";
import { useDraft, useRequest, useRequestKey } from "../../parts/use-session.ts";
import { described, FIELD, InputField, Labelled } from "./form-fields.tsx";

/** The texts of a form. */
interface Filled {
  readonly values: Readonly<Record<string, string>>;
  readonly converses: boolean;
  readonly budget: string;
}

/** The mistakes, by the names of the fields; under `""` for the whole input. */
type Problems = Readonly<Record<string, string>>;

export function StartForm({ agent, form }: { readonly agent: string; readonly form: InputForm }) {
  const typed = useFilled(agent, form);
  const { converses, budget } = typed.filled;
  const box = useRef<HTMLFormElement>(null);
  const { start, started, problems, isBusy, error } = useStart(agent, form, typed, box);
  return (
    <form ref={box} noValidate onSubmit={(event) => void start(event)} className="space-y-4">
      <Input form={form} typed={typed} problems={problems} />
      {form.type === "text" && form.canConverse ? (
        <label className="flex items-center gap-2">
          <input
            type="checkbox"
            checked={converses}
            onChange={(event) => typed.change({ converses: event.target.checked })}
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
          onChange={(event) => typed.change({ budget: event.target.value })}
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

type Typed = ReturnType<typeof useFilled>;

function useFilled(agent: string, form: InputForm) {
  const [draft, setDraft] = useDraft(`start of ${agent}`);
  const filled = (
    draft === ""
      ? { values: {}, converses: form.type === "text" && form.canConverse, budget: "" }
      : JSON.parse(draft)
  ) as Filled;
  const change = (to: Partial<Filled>): void => setDraft(JSON.stringify({ ...filled, ...to }));
  return { draft, filled, change, clear: () => setDraft("") };
}

/** The request that starts the session, and the mistakes that the form or the server found. */
function useStart(
  agent: string,
  form: InputForm,
  { draft, filled, clear }: Typed,
  box: RefObject<HTMLFormElement | null>,
) {
  const [started, setStarted] = useState<string>();
  const [problems, setProblems] = useState<Problems>({});
  const { run, isBusy, error } = useRequest();
  const navigate = useNavigate();
  // Each state of the form starts one session, however often its answer is lost.
  const { key } = useRequestKey(draft);
  const latest = useRef(draft);
  latest.current = draft;
  const showProblems = (found: Problems): void => {
    setProblems(found);
    setTimeout(() => box.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus());
  };
  const start = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    const read = readFilled(form, filled);
    if ("problems" in read) return showProblems(read.problems);
    setProblems({});
    let session: Session | undefined;
    await run(async () => {
      session = await call<Session>("POST", "/v1/sessions", {
        agent,
        idempotencyKey: key,
        ...read.request,
      }).catch((thrown: unknown) => {
        showProblems(problemsOf(thrown));
        throw thrown;
      });
    });
    if (session === undefined) return;
    // The person has written on meanwhile.
    if (latest.current !== draft) return setStarted(session.sessionId);
    clear();
    void navigate({
      to: "/sessions/$id",
      params: { id: session.sessionId },
      search: form.type === "text" ? { tab: "conversation" } : {},
    });
  };
  return { start, started, problems, isBusy, error };
}

/** Not the name of a field. */
const BUDGET = "/budget/maxCostMicroUsd";

/** The input and the budget that a request gives to the session, or the mistakes in them. */
function readFilled(
  form: InputForm,
  { values, converses, budget }: Filled,
): { readonly request: object } | { readonly problems: Problems } {
  const read = readInput(form, values, converses);
  const limit = Number(budget);
  const problems = {
    ...("problems" in read ? read.problems : {}),
    ...(budget === "" || limit >= 0.000001 ? {} : { [BUDGET]: "must be an amount of dollars above zero" }),
  };
  if (!("input" in read) || Object.keys(problems).length > 0) return { problems };
  return {
    request: {
      ...(read.input === undefined ? {} : { input: read.input }),
      ...(budget === "" ? {} : { budget: { maxCostMicroUsd: Math.round(limit * 1_000_000) } }),
    },
  };
}

/** The mistakes that the server found, by the fields of the form. */
function problemsOf(thrown: unknown): Problems {
  if (!(thrown instanceof ApiError)) return {};
  return Object.fromEntries(
    thrown.fields.map(({ pointer, message }) => {
      if (pointer === "/input") return ["", message];
      return [pointer.startsWith("/input/") ? pointer.slice("/input/".length) : pointer, message];
    }),
  );
}

/** The fields of the input, or one box for all of it. */
function Input(props: { readonly form: InputForm; readonly typed: Typed; readonly problems: Problems }) {
  const { form, typed, problems } = props;
  const { values } = typed.filled;
  const set = (name: string, text: string): void => typed.change({ values: { ...values, [name]: text } });
  if (form.type === "fields")
    return form.fields.map((field) => (
      <InputField
        key={field.name}
        field={field}
        value={values[field.name] ?? field.initial}
        problem={problems[field.name]}
        onChange={(text) => set(field.name, text)}
      />
    ));
  return (
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
  );
}
