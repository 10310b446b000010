// `choicesForm`: the questions with choices that a program asks (Claude Code, Codex) as a form, and the
// answers by its questions. Pure.

import type { JsonSchema } from "@holdfast/core";
import type { AskedForm } from "../external-agent-protocol.ts";
import { listOf, textOr, type Fields } from "../fields.ts";

interface Choice {
  /** The name of its field in the form. */
  readonly name: string;
  readonly question: Fields;
}

/** @returns `undefined` where there is no question that a person could read. */
export function choicesForm(questions: unknown): AskedForm | undefined {
  const choices = choicesOf(questions);
  if (choices.length === 0) return undefined;
  const properties = Object.fromEntries(choices.map(({ name, question }) => [name, fieldOf(question)]));
  const schema: JsonSchema = { type: "object", properties, required: Object.keys(properties) };
  return { message: choices.map(({ question }) => textOr(question["question"], "")).join(" "), schema };
}

/** The answers of a form, each with its question. A question with one answer has a list of one text. */
export function answeredChoices(
  questions: unknown,
  filled: Fields,
): readonly { readonly question: Fields; readonly answers: readonly string[] }[] {
  return choicesOf(questions).map(({ name, question }) => {
    const value = filled[name];
    return { question, answers: (Array.isArray(value) ? value : [value ?? ""]).map(String) };
  });
}

/** The header of a question is its name, where no other one has it. */
function choicesOf(questions: unknown): readonly Choice[] {
  const asked = listOf(questions).filter(({ question }) => typeof question === "string" && question !== "");
  const headers = asked.map(({ header }) => textOr(header, ""));
  return asked.map((question, at) => {
    const header = headers[at]!;
    const isName = header !== "" && headers.indexOf(header) === headers.lastIndexOf(header);
    return { name: isName ? header : textOr(question["question"], ""), question };
  });
}

function fieldOf({ question, options, multiSelect }: Fields): Fields {
  const labels = listOf(options).flatMap(({ label }) => (typeof label === "string" ? label : []));
  const text = { type: "string", ...(labels.length === 0 ? {} : { examples: labels }) };
  return { ...(multiSelect === true ? { type: "array", items: text } : text), description: question };
}
