// `storageWith`: a storage around another one. The wrapper names the members that it changes; every other
// member is passed on, also a member that the port gets later.

import type { AgentStorage } from "./storage.ts";

/** All members of the port, so that a forgotten one is a compiler error. */
type EveryMember = { readonly [Member in keyof Required<AgentStorage>]: AgentStorage[Member] | undefined };

/** The storage with these members in place of its own. A member that the storage leaves out is left out. */
export function storageWith(storage: AgentStorage, changes: Partial<AgentStorage>): AgentStorage {
  const members: EveryMember = {
    name: storage.name,
    durable: storage.durable,
    groupsMax: storage.groupsMax,
    now: storage.now && (() => storage.now!()),
    commit: (group, now) => storage.commit(group, now),
    claim: (claim) => storage.claim(claim),
    renew: (renewal) => storage.renew(renewal),
    renewal: storage.renewal && (() => storage.renewal!()),
    heldClaims: (query) => storage.heldClaims(query),
    load: (sessionId) => storage.load(sessionId),
    arrivals: (sessionId, after) => storage.arrivals(sessionId, after),
    conversation: (sessionId, leaf) => storage.conversation(sessionId, leaf),
    due: (query) => storage.due(query),
    subscribe: (listener) => storage.subscribe(listener),
    follow: storage.follow && ((sessionId, onNotice) => storage.follow!(sessionId, onNotice)),
    lost: storage.lost,
    drafts: storage.drafts,
    reader: storage.reader,
    close: () => storage.close(),
  };
  const present = Object.entries(members).filter(([, member]) => member !== undefined);
  return { ...(Object.fromEntries(present) as unknown as AgentStorage), ...changes };
}
