// `registeredRunner` makes the stored runner of a registration, and `refuseUnfit` refuses processes that
// cannot be runners here.

import { defined, HoldfastError, UsageError, VERSION } from "@holdfast/core";
import type { RegisterRequest } from "@holdfast/proto";
import { announcedAgents } from "../../input/announced-agents.ts";
import type { StoredRunner } from "../../store/registry.ts";
import type { Admitted } from "./admission.ts";

/**
 * The version of the protocol between runners and the coordinator. A runner with another version is refused.
 */
export const PROTOCOL = 1;
const PROCESS_CHARS = 32;

/** @throws HoldfastError `unsupported_protocol`, UsageError */
export function refuseUnfit({ protocol, process, version }: RegisterRequest): void {
  if (protocol !== PROTOCOL)
    throw new HoldfastError("unsupported_protocol", `the runner speaks protocol ${protocol}`, {
      at: "protocol",
      expected: `protocol ${PROTOCOL}`,
      fix: "use a runner of the coordinator's version",
    });
  if (version !== undefined && isLaterMinor(version))
    throw new HoldfastError(
      "unsupported_protocol",
      `the runner has Holdfast ${version}, and this coordinator ${VERSION}`,
      {
        at: "version",
        expected: `version ${VERSION} or an earlier one`,
        fix: `upgrade the coordinators first: restart each of them with ${version}, and then start the runner`,
      },
    );
  if ((process?.length ?? PROCESS_CHARS) < PROCESS_CHARS)
    throw new UsageError("`process` is too short: it must be impossible to guess", {
      at: "process",
      expected: `at least ${PROCESS_CHARS} random characters`,
    });
}

/**
 * R6. Whether a version has a later minor version than ours. Such a runner may write fields and records that
 * this coordinator does not know and would drop. A patch has none, and a text that is no version is not judged.
 */
function isLaterMinor(version: string): boolean {
  const [[major = 0, minor = 0], [ourMajor = 0, ourMinor = 0]] = [numbersOf(version), numbersOf(VERSION)];
  return major > ourMajor || (major === ourMajor && minor > ourMinor);
}

const numbersOf = (version: string): readonly number[] => version.split(".").map(Number);

interface Registration {
  readonly request: RegisterRequest;
  readonly admitted: Admitted;
  /** The hash of the process that registers. */
  readonly process: string | undefined;
  readonly leaseMs: number;
  readonly now: number;
}

/** @param before the runner that registers again. @throws UsageError for agents that are too large. */
export function registeredRunner(
  { request, admitted, process, leaseMs, now }: Registration,
  before: StoredRunner | undefined,
): StoredRunner {
  const { runnerId, tokenId, owner, trialsOf } = admitted;
  const { name, hostname, project, labels, taskKinds, maxRuns, behaviourFlags, version } = request;
  const refusedAgents = request.refusedAgents.map(({ name: agent, problem }) => ({ name: agent, problem }));
  return {
    runnerId,
    tokenId,
    ...defined({ owner, trialsOf }),
    ...(name === undefined || name === "" ? {} : { name }),
    hostname,
    project,
    labels: { ...labels },
    agents: announcedAgents(request.agents),
    taskKinds: [...taskKinds],
    maxRuns,
    ...defined({ behaviourFlags, version }),
    ...(refusedAgents.length === 0 ? {} : { refusedAgents }),
    leaseMs,
    registeredAt: before?.registeredAt ?? now,
    seenAt: now,
    ...(process === undefined ? {} : { process, processSince: sinceOf(before, process) ?? now }),
  };
}

/** A process that registers again keeps the time of its first registration. */
function sinceOf(before: StoredRunner | undefined, process: string): number | undefined {
  return before?.process === process ? before.processSince : undefined;
}
