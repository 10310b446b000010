// `factsOf` returns the contract's options of a field. They are read once, because reading an option parses
// the bytes of all of them.

import { getOption, hasOption, type DescField, type DescMessage, type Message } from "@bufbuild/protobuf";
import {
  eventIdOption,
  fieldOption,
  idempotencyHeaderOption,
  jsonOption,
  lastEventIdOption,
  type FieldRules,
} from "@holdfast/proto";

export interface FieldFacts {
  readonly rules: FieldRules | undefined;
  readonly isRequired: boolean;
  /** Whether the field is a user's JSON. */
  readonly isJson: boolean;
  /** Whether the field is a number that is not `optional`, which is 0 when it is absent. */
  readonly isPlainNumber: boolean;
  readonly isEventId: boolean;
  readonly isLastEventId: boolean;
  readonly isIdempotencyKey: boolean;
}

/** At most one entry for each field of the contract. */
const FACTS = new Map<DescField, FieldFacts>();

export function factsOf(field: DescField): FieldFacts {
  let facts = FACTS.get(field);
  if (facts === undefined) {
    const rules = hasOption(field, fieldOption) ? getOption(field, fieldOption) : undefined;
    const isNumber = rules?.type.case === "int32" || rules?.type.case === "int64";
    facts = {
      rules,
      isRequired: rules?.required === true,
      isJson: getOption(field, jsonOption),
      isPlainNumber: isNumber && field.fieldKind === "scalar" && !field.proto.proto3Optional,
      isEventId: getOption(field, eventIdOption),
      isLastEventId: getOption(field, lastEventIdOption),
      isIdempotencyKey: getOption(field, idempotencyHeaderOption),
    };
    FACTS.set(field, facts);
  }
  return facts;
}

export function findField(desc: DescMessage, is: (facts: FieldFacts) => boolean): DescField | undefined {
  return desc.fields.find((field) => is(factsOf(field)));
}

/** A field's value by its local name; members of a `oneof` are nested in it. */
export function valueOf(field: DescField, message: Message): unknown {
  const fields = message as unknown as Readonly<Record<string, unknown>>;
  if (field.oneof === undefined) return fields[field.localName];
  return (fields[field.oneof.localName] as { readonly value?: unknown }).value;
}
