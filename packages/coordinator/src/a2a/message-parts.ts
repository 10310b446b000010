// `readParts`, `inputFor`, `answerFor`: the parts of a message as the input of a session, or as the answer to its
// question.
//
//   - A message is text, or one JSON value, or a text beside an object. Files are refused.
//   - An answer is never refused here. The session may have taken the message before, and only the session
//     knows what its question accepts.

import type { Message, Part } from "@a2a-js/sdk";
import { ContentTypeNotSupportedError } from "@a2a-js/sdk/errors";
import { readApproval, UsageError } from "@holdfast/core";

export interface Given {
  readonly text?: string;
  /** A JSON value, in a field because it may be `null`. */
  readonly data?: { readonly value: unknown };
}

/** @throws ContentTypeNotSupportedError, UsageError */
export function readParts({ parts }: Message): Given {
  const texts: string[] = [];
  const values: unknown[] = [];
  for (const { content, mediaType } of parts) {
    if (content?.$case === "text") texts.push(content.value);
    else if (content?.$case === "data") values.push(content.value);
    else throw notTaken(content, mediaType);
  }
  const [value] = values;
  if (values.length > 1 || (texts.length > 0 && values.length > 0 && !isObject(value)))
    throw new UsageError("the parts of the message are not one input", {
      at: "message.parts",
      expected: "texts, or one data part, or texts beside a data part with an object",
    });
  return {
    ...(texts.length === 0 ? {} : { text: texts.join("\n") }),
    ...(values.length === 0 ? {} : { data: { value } }),
  };
}

function notTaken(content: Part["content"], mediaType: string): Error {
  const kind = content === undefined ? "a part without content" : `a file as ${content.$case}`;
  const type = mediaType === "" ? "" : ` (${mediaType.slice(0, 100)})`;
  return new ContentTypeNotSupportedError(
    `${kind}${type} is not taken; expected: parts with text, or with data, which is any JSON`,
  );
}

/** The input of a new session. @param schema the JSON Schema of the agent's inputs, if it announces one. */
export function inputFor({ text, data }: Given, schema: unknown): unknown {
  if (data === undefined) return isObject(schema) && schema["type"] === "string" ? text : { prompt: text };
  return text === undefined ? data.value : { ...(data.value as object), prompt: text };
}

/** The next input of a conversation: a text as it is, as a person types it. */
export function nextInputFor({ text, data }: Given): unknown {
  if (data === undefined) return text;
  return text === undefined ? data.value : { ...(data.value as object), prompt: text };
}

export interface GivenAnswer {
  /** The question that the message names. */
  readonly question?: string;
  readonly answer: unknown;
}

/** @param shape the answers that the question accepts. */
export function answerFor({ text, data }: Given, shape: string | undefined): GivenAnswer {
  if (data === undefined) return { answer: (shape === "any" ? undefined : readApproval(text ?? "")) ?? text };
  const { value } = data;
  const names = isObject(value) ? Object.keys(value).toSorted().join() : "";
  if (isObject(value) && names === "answer,question" && typeof value["question"] === "string")
    return { question: value["question"], answer: value["answer"] };
  return { answer: value };
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
