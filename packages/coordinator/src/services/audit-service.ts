// `AuditService`: the rows of the audit, page by page.
//
// Rows are numbered without gaps, so a page before a number begins at a number that is known.

import type { ServiceImpl } from "@connectrpc/connect";
import { auditBefore, auditEnd, UsageError, type StorageReader } from "@holdfast/core";
import type { AuditService as Contract, ListAuditRequest } from "@holdfast/proto";
import { bytesOfValue } from "../call/json-field.ts";
import type { ServiceHost } from "./service-host.ts";

const PAGE = 100;

export class AuditService implements ServiceImpl<typeof Contract> {
  readonly #reader: StorageReader;

  constructor({ storage }: Pick<ServiceHost, "storage">) {
    this.#reader = storage.reader;
  }

  async list({ after, before, limit = PAGE }: ListAuditRequest) {
    if (before !== undefined) {
      if (after !== undefined)
        throw new UsageError("`after` and `before` exclude each other", {
          at: "before",
          fix: "give `after` for oldest rows first, or `before` for newest rows first",
        });
      return this.#newestFirst(Number(before), limit);
    }
    const rows = await this.#reader.audit({
      limit,
      ...(after === undefined ? {} : { after: Number(after) }),
    });
    const next = rows.length < limit ? undefined : rows.at(-1)?.seq;
    return { rows: rows.map(bytesOfValue), ...(next === undefined ? {} : { nextAfter: BigInt(next) }) };
  }

  async #newestFirst(before: number, limit: number) {
    const end = await auditEnd(this.#reader, before);
    const rows = await auditBefore(this.#reader, end, limit);
    const first = rows[0]?.seq;
    // Where rows are missing, those before them were removed.
    const hasMore = first !== undefined && first > 1 && first === end - limit;
    return {
      rows: rows.toReversed().map(bytesOfValue),
      ...(hasMore ? { nextBefore: BigInt(first) } : {}),
    };
  }
}
