// `SessionState`: a session's state as its agent sees and changes it, from one checkpoint to the next (K7).
//
// *Plain* state is a value that is passed whole to each checkpoint. *Typed* state has a definition. The agent
// reads it as `ctx.state` and changes it by `ctx.update`, and a checkpoint stores the changes.
//
//   - Changes are data (`append`, `merge`, `replace` of a field), so that stored state is rebuilt without the
//     author's code. The result of an author's own reducer is stored as the new value of the field.
//   session-state-2. State is stored whole again once the changes since are larger than it. The stored amount
//       is therefore linear in the changes, and a wake-up reads at most twice the state.
//   - Typed state is frozen, so the live and the recovered value are the same. A change that would not be
//     stored is an error.
//
// This file knows no journal: the caller says where a checkpoint is.

import { HoldfastError, toError, UsageError } from "../errors/errors.ts";
import { deepFreeze } from "../json/deep-freeze.ts";
import { decodeJson, encodeJson, type JsonText } from "../json/json.ts";
import { shown } from "../options.ts";
import { validateNow, type StandardSchemaV1 } from "../standard-schema.ts";

/** The way in which `ctx.update` combines a field with the given value. */
export type Reducer<Value = unknown> =
  | "append"
  | "merge"
  | "replace"
  | ((current: Value, patch: unknown) => Value);

/** The reducers that fields of a state may have. */
export type Reducers<State> = { readonly [Field in keyof State]?: Reducer<State[Field]> };

/**
 * The changes that `ctx.update` takes: for each field what its reducer takes. Where the compiler does not
 * know the reducer of a field, it is a value of the field's type. A state without a type has fields of any
 * name.
 */
export type StatePatch<State, Given = Reducers<State>> = unknown extends State
  ? { readonly [field: string]: unknown }
  : [State] extends [object]
    ? {
        readonly [Field in keyof State]?: FieldPatch<
          State[Field],
          Field extends keyof Given ? Given[Field] : undefined
        >;
      }
    : { readonly [field: string]: unknown };

type FieldPatch<Value, How> = "replace" extends How
  ? Value
  : How extends (current: never, patch: infer Patch) => unknown
    ? Patch
    : How extends "append"
      ? Appended<Value>
      : How extends "merge"
        ? Merged<Value>
        : Value;

type Appended<Value> = Value extends readonly (infer Item)[] ? Item | Value : never;
type Merged<Value> = Value extends readonly unknown[] ? never : Value extends object ? Partial<Value> : never;

/** The typed state of an agent: its version, its first value, its schema and its migrations. */
export interface StateDefinition<State = unknown, Input = unknown, Given = Reducers<State>> {
  /** A whole number, which the author raises when the shape changes. */
  readonly version: number;
  /** The state before the first checkpoint. */
  readonly initial: (input: Input) => State;
  /** The schema of the whole state. A state that does not match is `invalid_state`. */
  readonly schema?: StandardSchemaV1<unknown, State>;
  /** `replace` for fields that are not named. */
  readonly reducers?: Given;
  /** The conversion of a state of an older version to this one. */
  readonly migrate?: (state: unknown, fromVersion: number) => State;
}

/** A change of one field. */
type StateChange = readonly ["append" | "merge" | "replace", string, unknown];

/** The state of the last checkpoint. */
interface StoredState {
  readonly value: unknown;
  /** The text of plain state. */
  readonly text?: JsonText;
  /** The version of the definition under which it was stored. */
  readonly version?: number;
  /**
   * The checkpoint that holds the state whole, the size of the state there, and the size of the changes
   * since.
   */
  readonly base?: { readonly seq: number; readonly wholeChars: number; readonly changedChars: number };
}

/** The part of a checkpoint that is stored for the state. */
export interface SealedState {
  readonly payload: JsonText;
  /** `seq` of the checkpoint that holds the whole state, when `payload` is changes. */
  readonly base?: number;
  readonly version?: number;
}

type Encode = (value: unknown, what: string) => JsonText | undefined;

export class SessionState {
  readonly #definition: StateDefinition | undefined;
  readonly #stored: StoredState | undefined;
  #value: unknown;
  readonly #changes: StateChange[] = [];
  #sealed: { readonly state: SealedState; readonly wholeChars: number } | undefined;

  constructor(definition: StateDefinition | undefined, stored: StoredState | undefined) {
    this.#definition = definition;
    this.#stored = stored;
    this.#value = definition === undefined ? stored?.value : deepFreeze(stored?.value);
  }

  get current(): unknown {
    return this.#value;
  }

  /** The length of its texts, as they are stored. */
  get chars(): number {
    const { text, base } = this.#stored ?? {};
    return text?.length ?? (base === undefined ? 0 : base.wholeChars + base.changedChars);
  }

  get isTyped(): boolean {
    return this.#definition !== undefined;
  }

  /** Set the initial state of the definition, before the first checkpoint. */
  begin(input: unknown): void {
    if (this.#definition === undefined || this.#stored !== undefined) return;
    const text = encodeJson(this.#definition.initial(input), "the initial state");
    if (text === undefined)
      throw new UsageError("the agent's state begins with nothing", {
        expected: "initial: (input) => ({ … })",
        fix: "return the first state; is a return missing?",
      });
    this.#value = deepFreeze(this.#checked(decodeJson(text)));
  }

  /** Change fields. @throws the error of a reducer, with the state unchanged. */
  update(patch: unknown, encode: Encode): void {
    const definition = this.#definition;
    if (definition === undefined) {
      throw new UsageError("ctx.update() needs a state that is defined", {
        fix: "give defineAgent a state: { version, initial }, or pass the whole state to ctx.checkpoint(state)",
      });
    }
    const given = decodeJson(encode(patch, "patch of the state"));
    if (typeof given !== "object" || given === null || Array.isArray(given))
      throw new UsageError("ctx.update() was given no object", { expected: "{ field: value }" });
    const reducers = (definition.reducers ?? {}) as { readonly [field: string]: Reducer | undefined };
    const before = this.#value;
    if (!isRecord(before))
      throw new UsageError(`ctx.update() changes fields, and the state is ${shown(before)}`, {
        fix: "make it an object, or give the whole state to ctx.checkpoint(state)",
      });
    const changes = Object.entries(given).map(([field, value]): StateChange => {
      const reducer = Object.hasOwn(reducers, field) ? (reducers[field] ?? "replace") : "replace";
      if (typeof reducer === "string") {
        checkChange(reducer, field, before[field], value);
        return [reducer, field, value];
      }
      const reduced = encode(reducer(before[field], value), `state field "${field}"`);
      if (reduced === undefined)
        throw new UsageError(`the reducer of state field "${field}" gives nothing`, {
          expected: "the field's new value; null where there is none",
          fix: "return it; is a return missing?",
        });
      return ["replace", field, decodeJson(reduced)];
    });
    this.#value = deepFreeze(this.#checked(applyChanges(before, changes)));
    this.#changes.push(...changes);
  }

  /** The part that a checkpoint stores: the given value of plain state, and the changes of typed state. */
  seal(given: unknown, encode: Encode): SealedState {
    if (this.#definition === undefined) return this.#keep({ payload: encode(given, "state") ?? "null" });
    const version = this.#definition.version;
    if (given !== undefined) {
      this.#value = deepFreeze(this.#checked(decodeJson(encode(given, "state"))));
      return this.#keep({ payload: encode(this.#value, "state") ?? "null", version });
    }
    const base = this.#stored?.base;
    if (base !== undefined && this.#stored?.version === version) {
      // No limit holds for the changes: larger ones are stored as the whole state (session-state-2).
      const payload = encodeJson(this.#changes, "changes of the state") ?? "[]";
      if (base.changedChars + payload.length <= base.wholeChars)
        return this.#keep({ payload, base: base.seq, version });
    }
    return this.#keep({ payload: encode(this.#value, "state") ?? "null", version });
  }

  /** Whether the last `seal` differs from the checkpoint before it. */
  get hasChanged(): boolean {
    const sealed = this.#sealed?.state;
    if (sealed === undefined) return false;
    return sealed.base === undefined ? sealed.payload !== this.#stored?.text : this.#changes.length > 0;
  }

  /** The state after the checkpoint that was sealed last, which is at `seq`. */
  after(seq: number): SessionState {
    const sealed = this.#sealed;
    if (sealed === undefined) return this;
    return new SessionState(this.#definition, afterCheckpoint(sealed.state, seq, this.#stored, this.#value));
  }

  #keep(state: SealedState): SealedState {
    this.#sealed = { state, wholeChars: state.payload.length };
    return state;
  }

  #checked(value: unknown): unknown {
    const { schema } = this.#definition ?? {};
    return schema === undefined ? value : validateNow(schema, value, "the agent's state", "invalid_state");
  }
}

/**
 * The stored state after a checkpoint. `value` is the new state; plain state is decoded again from its text.
 */
function afterCheckpoint(
  { payload, base, version }: SealedState,
  seq: number,
  before: StoredState | undefined,
  value: unknown,
): StoredState {
  if (version === undefined) return { value: decodeJson(payload), text: payload };
  const whole = { seq, wholeChars: payload.length, changedChars: 0 };
  const stands =
    base === undefined || before?.base === undefined
      ? whole
      : { ...before.base, changedChars: before.base.changedChars + payload.length };
  return base === undefined
    ? { value, text: payload, version, base: stands }
    : { value, version, base: stands };
}

/** The state of a list of checkpoints: the first holds it whole, the others hold its changes. */
export function readState(
  payloads: readonly JsonText[],
  checkpoint: { readonly seq: number; readonly base?: number; readonly schemaVersion?: number },
): StoredState {
  const { seq, base, schemaVersion: version } = checkpoint;
  const [whole = "null", ...changes] = payloads;
  const value = changes.reduce<unknown>(
    (state, text) => applyChanges(state, decodeJson(text) as StateChange[]),
    decodeJson(whole),
  );
  if (version === undefined) return { value, text: whole };
  const changedChars = changes.reduce((sum, { length }) => sum + length, 0);
  return {
    value,
    ...(changes.length === 0 ? { text: whole } : {}),
    version,
    base: { seq: base ?? seq, wholeChars: whole.length, changedChars },
  };
}

/**
 * A stored state in the shape of the current definition.
 *
 * @throws HoldfastError `state_version` naming both versions; the stored state stays as it is.
 */
export function migrateState(
  definition: StateDefinition | undefined,
  stored: StoredState,
  agent: string,
): StoredState {
  const from = stored.version ?? 0;
  const to = definition?.version ?? 0;
  if (from === to) return stored;
  const what = `the state of agent "${agent}" was stored as version ${from}, and its code has version ${to}`;
  const migrate = definition?.migrate;
  if (definition === undefined || migrate === undefined || from > to) {
    throw new HoldfastError("state_version", what, {
      fix:
        from > to
          ? "resume with the newer code"
          : "give its state a `migrate(state, fromVersion)` in defineAgent, or resume with the old code",
    });
  }
  try {
    const text = encodeJson(migrate(stored.value, from), "the migrated state");
    if (text === undefined) throw new UsageError("it gave nothing; is a return missing?");
    const value = decodeJson(text);
    return {
      value:
        definition.schema === undefined
          ? value
          : validateNow(definition.schema, value, "the migrated state", "invalid_state"),
      version: from,
    };
  } catch (cause) {
    throw new HoldfastError("state_version", `${what}; migrating it failed: ${toError(cause).message}`, {
      fix: "mend `migrate` and resume; the stored state is as it was",
      cause,
    });
  }
}

/** Refuse a value that the reducer would silently lose or take apart. @throws UsageError */
function checkChange(how: StateChange[0], field: string, current: unknown, value: unknown): void {
  if (how === "replace") return;
  const isFit = how === "append" ? Array.isArray(current) : isRecord(current);
  if (!isFit && current !== undefined && current !== null)
    throw new UsageError(`state field "${field}" is ${shown(current)}, and its reducer is "${how}"`, {
      expected: how === "append" ? "a list" : "an object",
    });
  if (how === "merge" && !isRecord(value))
    throw new UsageError(`state field "${field}" cannot be merged with ${shown(value)}`, {
      expected: "an object with what is to change",
    });
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function applyChanges(state: unknown, changes: readonly StateChange[]): unknown {
  const next: Record<string, unknown> = { ...(state as Record<string, unknown>) };
  for (const [how, field, value] of changes) define(next, field, changed(next[field], how, value));
  return next;
}

function changed(current: unknown, how: StateChange[0], value: unknown): unknown {
  switch (how) {
    case "replace":
      return value;
    case "append": {
      const list = Array.isArray(current) ? (current as unknown[]) : [];
      return [...list, ...(Array.isArray(value) ? (value as unknown[]) : [value])];
    }
    case "merge": {
      const merged: Record<string, unknown> = { ...(current as Record<string, unknown>) };
      for (const [key, part] of Object.entries(value as object)) define(merged, key, part);
      return merged;
    }
  }
}

/** A field named `__proto__` is a field, too. */
function define(target: Record<string, unknown>, key: string, value: unknown): void {
  Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
}
