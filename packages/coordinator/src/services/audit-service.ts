// `auditService`: the rows of the audit, page by page.

import type { ServiceImpl } from "@connectrpc/connect";
import type { AuditService } from "@holdfast/proto";
import { bytesOfValue } from "../call/json-field.ts";
import { type ServiceHost } from "./service-host.ts";

const PAGE = 100;

export function auditService({ storage }: ServiceHost): ServiceImpl<typeof AuditService> {
  return {
    async list({ after, limit = PAGE }) {
      const rows = await storage.reader.audit({
        limit,
        ...(after === undefined ? {} : { after: Number(after) }),
      });
      const next = rows.length < limit ? undefined : rows.at(-1)?.seq;
      return { rows: rows.map(bytesOfValue), ...(next === undefined ? {} : { nextAfter: BigInt(next) }) };
    },
  };
}
