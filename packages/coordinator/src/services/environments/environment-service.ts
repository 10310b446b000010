// `EnvironmentService`: environments of persons and of projects, changed and listed through the API, and released
// to runners.
//
//   - A user has the environments of its name. The environments of a project are changed and read by admins.
//   - No answer has the value of a secret, but a release to the runner that holds the session.

import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { defined, HoldfastError, UsageError, type Audit } from "@holdfast/core";
import type {
  DeleteEnvironmentRequest,
  EnvironmentService as Contract,
  GetEnvironmentRequest,
  ListEnvironmentsRequest,
  ReleaseEnvironmentsRequest,
  RotateEnvironmentsRequest,
  SetEnvironmentRequest,
  StoredEnvironmentSchema,
} from "@holdfast/proto";
import { auditOf, callOf, type Call } from "../../call/call.ts";
import type { EnvironmentOwner, StoredEnvironment } from "../../environments/stored-environments.ts";
import type { ServiceHost } from "../service-host.ts";
import { releaseEnvironments } from "./release.ts";

export class EnvironmentService implements ServiceImpl<typeof Contract> {
  readonly #host: ServiceHost;

  constructor(host: ServiceHost) {
    this.#host = host;
  }

  async set({ name, project, keys, remove }: SetEnvironmentRequest, context: HandlerContext) {
    const call = callOf(context);
    const owner = ownerOf(call, project);
    const doubled = keys.find((key, at) => keys.findIndex((other) => other.name === key.name) < at);
    if (doubled !== undefined)
      throw new UsageError(`the key ${doubled.name} is given twice`, { at: "keys", fix: "give it once" });
    const change = {
      keys: keys.map((key) => ({
        name: key.name,
        ...defined({ value: key.value }),
        ...(key.secret ? { secret: true } : {}),
        ...(key.required ? { required: true } : {}),
      })),
      remove,
      by: call.caller.name,
    };
    const made = await this.#host.environments.change(owner, name, change, auditPart(call));
    return messageOf(owner, made);
  }

  async list({ project }: ListEnvironmentsRequest, context: HandlerContext) {
    const owner = ownerOf(callOf(context), project);
    const found = await this.#host.environments.list(owner);
    return { environments: found.map((one) => messageOf(owner, one)) };
  }

  async get({ name, project }: GetEnvironmentRequest, context: HandlerContext) {
    const owner = ownerOf(callOf(context), project);
    return messageOf(owner, await this.#host.environments.get(owner, name));
  }

  async delete({ name, project }: DeleteEnvironmentRequest, context: HandlerContext) {
    const call = callOf(context);
    await this.#host.environments.delete(ownerOf(call, project), name, auditPart(call));
    return {};
  }

  async rotate(_request: RotateEnvironmentsRequest, context: HandlerContext) {
    return this.#host.environments.rotate(auditPart(callOf(context)));
  }

  async release({ sessionId, claimToken }: ReleaseEnvironmentsRequest, context: HandlerContext) {
    const claim = { sessionId, claimToken: Number(claimToken) };
    const released = await releaseEnvironments(this.#host, claim, callOf(context));
    return {
      environments: Object.entries(released).map(([name, keys]) => ({
        name,
        keys: Object.entries(keys).map(([key, { value, secret = false, required = false }]) => ({
          name: key,
          ...defined({ value }),
          secret,
          required,
        })),
      })),
    };
  }
}

/** Whose environments a request means. @throws HoldfastError */
function ownerOf({ caller }: Call, project: string | undefined): EnvironmentOwner {
  if (project === undefined) {
    if (caller.kind === "user") return { kind: "person", name: caller.name };
    throw new UsageError(
      "an admin has no environments, because the sessions that an admin starts belong to no person",
      {
        at: "project",
        fix: "name a project, or use the token of a user",
      },
    );
  }
  // mutant: environment-of-a-project-by-users
  if (caller.kind === "admin") return { kind: "project", name: project };
  throw new HoldfastError(
    "insufficient_scope",
    "only an admin changes and reads the environments of a project",
    {
      at: "project",
      fix: "ask an admin, or leave the project out for environments of your own",
    },
  );
}

function auditPart(call: Call): Pick<Audit, "actor" | "requestId"> {
  const { actor, requestId } = auditOf(call, "", "");
  return { actor, ...defined({ requestId }) };
}

function messageOf(
  { kind, name: owner }: EnvironmentOwner,
  { name, keys, changedAt, changedBy }: StoredEnvironment,
): MessageInitShape<typeof StoredEnvironmentSchema> {
  return {
    name,
    ...(kind === "project" ? { project: owner } : {}),
    keys: Object.entries(keys).map(([key, { value, secret = false, required = false }]) => ({
      name: key,
      // mutant: secret-in-an-answer
      ...(secret ? {} : defined({ value })),
      secret,
      required,
    })),
    changedAt: BigInt(changedAt),
    changedBy,
  };
}
