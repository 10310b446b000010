// `methodOf` returns the contract's options of a method, which are read once.

import { getOption, type DescMethod } from "@bufbuild/protobuf";
import {
  batchOption,
  httpOption,
  Role,
  rolesOption,
  SERVICES,
  startsOption,
  statusOption,
  statusWhenDoneOption,
  type HttpRule,
} from "@holdfast/proto";
import type { Caller } from "../call/caller.ts";

export interface Method {
  readonly desc: DescMethod;
  readonly name: string;
  /** The kinds of callers that may call the method. The set is empty if the contract names none. */
  readonly callers: ReadonlySet<Caller["kind"]>;
  /** Whether the method needs no token. */
  readonly isOpen: boolean;
  /** The HTTP status of success. */
  readonly status: number;
  /** The HTTP status of a call that changed nothing, if it differs. */
  readonly statusWhenDone: number | undefined;
  readonly isBatch: boolean;
  readonly isStream: boolean;
  /** The rate that a call counts for. Reads are not counted. */
  readonly counts: "start" | "event" | undefined;
  readonly rules: readonly Rule[];
}

/** A REST route of the method. */
export interface Rule {
  readonly verb: string;
  readonly path: string;
  /** `*` for all fields that are not in the path, a field's name, or empty. */
  readonly body: string;
}

const KINDS: Readonly<Record<Role, Caller["kind"] | undefined>> = {
  [Role.UNSPECIFIED]: undefined,
  [Role.ADMIN]: "admin",
  [Role.USER]: "user",
  [Role.RUNNER]: "runner",
  [Role.JOB]: "job",
  [Role.REGISTRATION]: "registration",
  [Role.NONE]: "none",
};

export const METHODS: readonly Method[] = SERVICES.flatMap((service) => service.methods).map(readMethod);

const BY_DESC: ReadonlyMap<DescMethod, Method> = new Map(METHODS.map((method) => [method.desc, method]));

export function methodOf(desc: DescMethod): Method {
  const method = BY_DESC.get(desc);
  if (method === undefined) throw new Error(`${desc.parent.typeName}.${desc.name} is not in the contract`);
  return method;
}

export function mayCall(method: Method, kind: Caller["kind"]): boolean {
  // mutant: any-role-allowed
  return method.isOpen || method.callers.has(kind);
}

function readMethod(desc: DescMethod): Method {
  const callers = new Set(getOption(desc, rolesOption).flatMap((role) => KINDS[role] ?? []));
  const rules = readRules(getOption(desc, httpOption));
  const isRead = rules.every(({ verb }) => verb === "GET");
  const starts = getOption(desc, startsOption);
  return {
    desc,
    name: `${desc.parent.name}.${desc.name}`,
    callers,
    isOpen: callers.has("none"),
    status: getOption(desc, statusOption) || 200,
    statusWhenDone: getOption(desc, statusWhenDoneOption) || undefined,
    isBatch: getOption(desc, batchOption),
    isStream: desc.methodKind === "server_streaming",
    counts: starts ? "start" : isRead ? undefined : "event",
    rules,
  };
}

function readRules(rule: HttpRule): readonly Rule[] {
  const { case: verb, value: path } = rule.pattern;
  const own =
    verb === undefined || verb === "custom" ? [] : [{ verb: verb.toUpperCase(), path, body: rule.body }];
  return [...own, ...rule.additionalBindings.flatMap(readRules)];
}
