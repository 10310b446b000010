// The public API for programs that ask a coordinator: `import { createClient } from "holdfast/client"`. It
// has the client, and the check of an audit that a coordinator has kept.

export {
  createClient,
  type ClientOptions,
  type HoldfastClient,
  type RemoteEvent,
  type RemoteSession,
  type RemoteStartOptions,
  type RemoteStatus,
} from "@holdfast/client";
export {
  verifyAudit,
  type AuditLink,
  type AuditRow,
  type AuditVerdict,
  type Hash,
  type QuotaWait,
} from "@holdfast/core";
