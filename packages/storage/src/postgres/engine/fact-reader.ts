// `FactReader` reads the facts that a group of changes needs, and caches the heads among them.

import { keyOf, type Facts, type Wanted } from "../write/group-facts.ts";
import { asHead, type Head, type Heads } from "../tables/heads.ts";
import { AUDIT, type Item } from "../tables/items.ts";
import type { Reads } from "../read/reads.ts";
import type { WorkingSet } from "../write/working-set.ts";

export class FactReader {
  readonly #reads: Reads;
  readonly #heads: Heads;
  /** The end of the audit as this process last wrote it. A write on top is refused if another process wrote since. */
  #auditEnd: Item | undefined;

  constructor(reads: Reads, heads: Heads) {
    this.#reads = reads;
    this.#heads = heads;
  }

  /** Notes a group that was written. */
  written(set: WorkingSet): void {
    this.#auditEnd = set.writes.items.get(keyOf(AUDIT.kind, AUDIT.key))?.item ?? this.#auditEnd;
  }

  /** Reads the named heads that are not cached, and the heads of their parents and payers. */
  async fetch(names: Iterable<string>, facts: Facts): Promise<void> {
    let wanted = new Set(names);
    while (wanted.size > 0) {
      const missing = [...wanted].filter(
        (id) =>
          this.#heads.get(id) === undefined &&
          ![facts.heads, facts.absent, facts.damaged].some((found) => found.has(id)),
      );
      const near = new Set<string>();
      if (missing.length > 0) {
        const found = await this.#reads.heads(missing);
        for (const id of missing) {
          const head = asHead(this.#keep(id, found.get(id), facts));
          if (head === undefined) continue;
          for (const payer of head.session.payers) near.add(payer);
          if (head.session.parent !== undefined) near.add(head.session.parent.sessionId);
        }
      }
      for (const id of wanted) near.delete(id);
      wanted = near;
    }
  }

  #keep(sessionId: string, found: Head | Error | undefined, facts: Facts): Head | Error | undefined {
    if (found === undefined) facts.absent.add(sessionId);
    else if (found instanceof Error) facts.damaged.set(sessionId, found);
    else {
      facts.heads.set(sessionId, found);
      this.#heads.put(found);
    }
    return found;
  }

  /** Reads the fact that the group lacked. */
  async find(wanted: Wanted, facts: Facts): Promise<void> {
    switch (wanted.type) {
      case "head":
        return this.fetch([wanted.sessionId], facts);
      case "landing":
        return void (await Promise.allSettled([wanted.flight]));
      case "children": {
        const { head } = wanted;
        const tree = await this.#reads.tree(head.sessionId);
        for (const [id, found] of tree) {
          // The cached head may be of the same version, and lack its children.
          const known = this.#heads.get(id);
          const fresh = asHead(found);
          if (known !== undefined && fresh !== undefined && known.flight === undefined) {
            if (known.version === fresh.version) known.childIds = fresh.childIds;
          }
          this.#keep(id, found, facts);
        }
        return;
      }
      case "exhausted": {
        const { payer, version } = wanted;
        return void facts.exhausted.set(keyOf(payer, version), await this.#reads.exhaustedBy(payer));
      }
      case "journal": {
        const { head, from, to } = wanted;
        const records = await this.#reads.journal(head.sessionId, from, to - from);
        return void facts.journals.set(keyOf(head.sessionId, from, to), records);
      }
      case "seen": {
        const { head, mark } = wanted;
        return void facts.seen.set(keyOf(head.sessionId, mark), await this.#reads.hasSeen(head, mark));
      }
      case "oldest_audit": {
        const { limit } = wanted;
        return void facts.oldestAudit.set(limit, await this.#reads.audit(0, limit));
      }
      case "item": {
        const { kind, key } = wanted;
        const known = kind === AUDIT.kind && !facts.isCareful ? this.#auditEnd : undefined;
        return void facts.items.set(keyOf(kind, key), known ?? (await this.#reads.item(kind, key)));
      }
    }
  }
}
