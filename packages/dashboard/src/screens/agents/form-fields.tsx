// The fields of a form, each with its label, its hint and the problem that was found in it.
//
// A refusal stands at its field, and is read to the person with it.

import type { ReactNode } from "react";
import type { Field } from "../../api/input-form.ts";
import { shown } from "../../parts/text.ts";

export const FIELD = "field w-full";

export function InputField(props: {
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

export function described(id: string, problem: string | undefined) {
  return {
    id,
    "aria-invalid": problem !== undefined,
    "aria-describedby": `${id}-hint`,
  };
}

export function Labelled(props: {
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
      <p id={`${id}-hint`} className="text-sm">
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
