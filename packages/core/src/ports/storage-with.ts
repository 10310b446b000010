// A storage around another one. Whoever wraps one says what he changes; all else is passed on, also what the port is given later.

import type { AgentStorage } from "./storage.ts";

/** Each member there is: one that is forgotten is an error of the compiler's. */
type EveryMember = { readonly [Member in keyof Required<AgentStorage>]: AgentStorage[Member] | undefined };

/** The storage, with these members instead of its own. What it leaves out is left out. */
export function storageWith(storage: AgentStorage, changes: Partial<AgentStorage>): AgentStorage {
  const members: EveryMember = {
    name: storage.name,
    durable: storage.durable,
    groupsMax: storage.groupsMax,
    now: storage.now && (() => storage.now!()),
    commit: (group, now) => storage.commit(group, now),
    claim: (claim) => storage.claim(claim),
    renew: (renewal) => storage.renew(renewal),
    heldClaims: (query) => storage.heldClaims(query),
    load: (sessionId) => storage.load(sessionId),
    arrivals: (sessionId, after) => storage.arrivals(sessionId, after),
    conversation: (sessionId, leaf) => storage.conversation(sessionId, leaf),
    due: (query) => storage.due(query),
    subscribe: (listener) => storage.subscribe(listener),
    follow: storage.follow && ((sessionId, onNotice) => storage.follow!(sessionId, onNotice)),
    lost: storage.lost,
    reader: storage.reader,
    close: () => storage.close(),
  };
  const present = Object.entries(members).filter(([, member]) => member !== undefined);
  return { ...(Object.fromEntries(present) as unknown as AgentStorage), ...changes };
}
