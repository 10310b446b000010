// A session's state as its agent sees and changes it, from one checkpoint to the next (K7).
//
// *Plain* state is a value given to each checkpoint whole. *Typed* state has a definition: it is read at `ctx.state`, changed by
// `ctx.update`, and a checkpoint stores what changed.
//
//   session-state-1. Changes are data (`append`, `merge`, `replace` of a field), so that what was stored is rebuilt
//       without the author's code. A reducer of the author's own is stored as what it made of the field.
//   session-state-2. Changes are stored whole again once they are larger than the whole was: what is stored in all is
//       linear in what was changed, and what is read at a wake-up is at most twice the state.
//   session-state-3. Typed state is frozen: live and recovered are the same value, and a change that would not be
//       stored is an error.
//
// It knows no journal: where a checkpoint stands is told to it.

import { HoldfastError, toError, UsageError } from "../errors/errors.ts";
import { decodeJson, encodeJson, type JsonText } from "../json/json.ts";
import { shown } from "../options.ts";
import { validateNow, type StandardSchemaV1 } from "../standard-schema.ts";

/** What is made of a field and what `ctx.update` is given for it. */
export type Reducer<Value = unknown> =
  | "append"
  | "merge"
  | "replace"
  | ((current: Value, patch: unknown) => Value);

export interface StateDefinition<State = unknown, Input = unknown> {
  /** A whole number, raised when the shape changes. */
  readonly version: number;
  /** The state before the first checkpoint. */
  readonly initial: (input: Input) => State;
  readonly schema?: StandardSchemaV1<unknown, State>;
  /** `replace` for fields that are not named. */
  readonly reducers?: { readonly [Field in keyof State]?: Reducer<State[Field]> };
  /** A state of an older version as one of this. */
  readonly migrate?: (state: unknown, fromVersion: number) => State;
}

/** How a field changed. */
type StateChange = readonly ["append" | "merge" | "replace", string, unknown];

/** Where the state stood at the last checkpoint. */
export interface StoredState {
  readonly value: unknown;
  /** Its text, when it is plain. */
  readonly text?: JsonText;
  /** Of the definition it was stored under. */
  readonly version?: number;
  /** The checkpoint that holds it whole, how large it was there, and how large the changes since are. */
  readonly base?: { readonly seq: number; readonly wholeChars: number; readonly changedChars: number };
}

/** What a checkpoint stores of it. */
export interface SealedState {
  readonly payload: JsonText;
  /** `seq` of the checkpoint that holds the whole, when `payload` is changes. */
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

  /** How long its texts are, as they are stored. */
  get chars(): number {
    const { text, base } = this.#stored ?? {};
    return text?.length ?? (base === undefined ? 0 : base.wholeChars + base.changedChars);
  }

  get isTyped(): boolean {
    return this.#definition !== undefined;
  }

  /** Before the first checkpoint: what the definition begins with. */
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

  /** Change fields. @throws what a reducer throws, leaving the state as it was. */
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

  /** What a checkpoint stores: of plain state what it was given, of typed state what changed. */
  seal(given: unknown, encode: Encode): SealedState {
    if (this.#definition === undefined) return this.#keep({ payload: encode(given, "state") ?? "null" });
    const version = this.#definition.version;
    if (given !== undefined) {
      this.#value = deepFreeze(this.#checked(decodeJson(encode(given, "state"))));
      return this.#keep({ payload: encode(this.#value, "state") ?? "null", version });
    }
    const base = this.#stored?.base;
    if (base !== undefined && this.#stored?.version === version) {
      // No limit holds for these: the whole is stored where they are larger than that (session-state-2).
      const payload = encodeJson(this.#changes, "changes of the state") ?? "[]";
      if (base.changedChars + payload.length <= base.wholeChars)
        return this.#keep({ payload, base: base.seq, version });
    }
    return this.#keep({ payload: encode(this.#value, "state") ?? "null", version });
  }

  /** Whether the last `seal` says anything else than the checkpoint before it. */
  get hasChanged(): boolean {
    const sealed = this.#sealed?.state;
    if (sealed === undefined) return false;
    return sealed.base === undefined ? sealed.payload !== this.#stored?.text : this.#changes.length > 0;
  }

  /** The state after the checkpoint that was sealed last, which stands at `seq`. */
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

/** How the state stands after a checkpoint. `value` is what it is then; plain state is decoded anew from its text. */
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

/** The state that checkpoints hold: the first whole, the others its changes. */
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
 * A stored state as the definition of today has it.
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

/** What would be lost or taken apart without a word. @throws UsageError */
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

/** Also a field named `__proto__` is a field. */
function define(target: Record<string, unknown>, key: string, value: unknown): void {
  Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
}

/** Parts that are frozen already are shared with the state before. */
function deepFreeze(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  for (const part of Object.values(value)) deepFreeze(part);
  return Object.freeze(value);
}
