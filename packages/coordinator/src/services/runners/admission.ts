// `admitted` says which runner a process registers as: a new one, or the one of its token.
//
//   - A registration token is used before the runner exists, so that two processes with it do not become two
//     runners.
//   - Registering again with a runner's own token updates that runner.
//   admission-3. A runner registers a runner for trials beside itself by its own token. That runner belongs
//       to the same user. By the token that it gets, it registers again as itself.

import { defined, HoldfastError, mintId } from "@holdfast/core";
import type { RegisterRequest } from "@holdfast/proto";
import { auditOf, type Call } from "../../call/call.ts";
import { tokenId } from "../../call/tokens.ts";
import type { ServiceHost } from "../service-host.ts";

export interface Admitted {
  readonly runnerId: string;
  /** The id of the runner's token, and the token's text if it is new. */
  readonly tokenId: string;
  readonly token?: string;
  readonly owner?: string;
  readonly trialsOf?: string;
}

export async function admitted(host: ServiceHost, request: RegisterRequest, call: Call): Promise<Admitted> {
  const { kind, name: runnerId, tokenId: ofToken, owner } = call.caller;
  if (kind !== "runner") return admit(host, request, call);
  const { trialsOf } = (await host.registry.findFresh(runnerId)) ?? {};
  if (request.forTrials && trialsOf === undefined) return admitForTrials(host, request, call);
  return {
    runnerId,
    tokenId: ofToken,
    ...defined({ owner, trialsOf }),
  };
}

async function admit(
  { tokens, clock, random }: ServiceHost,
  request: RegisterRequest,
  call: Call,
): Promise<Admitted> {
  const { caller } = call;
  const wanted = mintId("rnr", clock.now(), () => random.u32());
  const { process } = request;
  const audit = auditOf(call, "runner.admit", `runner:${wanted}`);
  const used = await tokens.use(caller.tokenId, { runnerId: wanted, process }, audit);
  if (typeof used === "string")
    throw new HoldfastError("token_revoked", "the registration token was already used", {
      fix: "have an admin make another one: `holdfast token create NAME --kind registration`",
    });
  const { owner } = caller;
  const { runnerId } = used;
  const { text, token } = await tokens.create(
    { kind: "runner", name: request.hostname, runnerId, ...defined({ user: owner }) },
    auditOf(call, "token.create", ""),
    used.text,
  );
  return { runnerId, token: text, tokenId: tokenId(token), ...defined({ owner }) };
}

/** admission-3. */
async function admitForTrials(
  { tokens, clock, random }: ServiceHost,
  { hostname }: RegisterRequest,
  call: Call,
): Promise<Admitted> {
  const { name: trialsOf, owner } = call.caller;
  const runnerId = mintId("rnr", clock.now(), () => random.u32());
  const ofUser = owner === undefined ? {} : { owner };
  const { text, token } = await tokens.create(
    { kind: "runner", name: hostname, runnerId, ...defined({ user: owner }) },
    auditOf(call, "runner.admit", `runner:${runnerId}`),
  );
  return { runnerId, token: text, tokenId: tokenId(token), trialsOf, ...ofUser };
}
