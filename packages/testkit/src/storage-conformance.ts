// `storageConformance` tests the duties of every adapter. The clauses are those of the `AgentStorage` port.
// Each test is named after the clause that it proves, and every clause has at least one.
//
// An adapter's whole test file is `storageConformance({ name: "…", open: async () => … })`. It imports vitest
// on purpose: the suite is published for authors of adapters, who bring vitest and fast-check along.
//
// Time is an argument everywhere and stands still unless a test moves it. Nothing here sleeps.

import { describe } from "vitest";
import { budgetConformance } from "./conformance/budgets/budget-conformance.ts";
import { claimConformance } from "./conformance/claim-conformance.ts";
import { commitConformance } from "./conformance/commit-conformance.ts";
import { contentConformance } from "./conformance/content-conformance.ts";
import { creationConformance } from "./conformance/creation/creation-conformance.ts";
import { deletionConformance } from "./conformance/deletion/deletion-conformance.ts";
import { dueConformance } from "./conformance/due-conformance.ts";
import { endConformance } from "./conformance/end-conformance.ts";
import { callbackConformance } from "./conformance/families/callback-conformance.ts";
import { familyConformance } from "./conformance/families/family-conformance.ts";
import { useStorage } from "./conformance/fixture.ts";
import { followConformance } from "./conformance/follow-conformance.ts";
import { groupConformance } from "./conformance/group-conformance.ts";
import { importConformance } from "./conformance/import-conformance.ts";
import { leaseConformance } from "./conformance/lease-conformance.ts";
import { ledgerConformance } from "./conformance/ledger-conformance.ts";
import { lostConformance } from "./conformance/budgets/lost-conformance.ts";
import { modelConformance } from "./conformance/model-conformance.ts";
import { moveConformance } from "./conformance/move-conformance.ts";
import { pauseConformance } from "./conformance/pause-conformance.ts";
import { detachmentConformance } from "./conformance/families/detachment-conformance.ts";
import { placementConformance } from "./conformance/placement-conformance.ts";
import { readConformance } from "./conformance/read-conformance.ts";
import { removalConformance } from "./conformance/deletion/removal-conformance.ts";
import { runConformance } from "./conformance/run-conformance.ts";
import { scheduleConformance } from "./conformance/schedule-conformance.ts";
import { signalConformance } from "./conformance/signal-conformance.ts";
import type { StorageSubject } from "./conformance/storage-subject.ts";
import { titleConformance } from "./conformance/creation/title-conformance.ts";
import { transitionConformance } from "./conformance/transition-conformance.ts";
import { windowConformance } from "./conformance/budgets/window-conformance.ts";

export { type StorageSubject } from "./conformance/storage-subject.ts";

const PARTS = {
  batches: commitConformance,
  creation: creationConformance,
  groups: groupConformance,
  transitions: transitionConformance,
  claims: claimConformance,
  leases: leaseConformance,
  owners: placementConformance,
  titles: titleConformance,
  "detached sessions": detachmentConformance,
  signals: signalConformance,
  followers: followConformance,
  "cancelling and ending": endConformance,
  "pausing and deadlines": pauseConformance,
  "parents and children": familyConformance,
  callbacks: callbackConformance,
  budgets: budgetConformance,
  windows: windowConformance,
  "lost attempts": lostConformance,
  "imports and states": importConformance,
  moves: moveConformance,
  schedules: scheduleConformance,
  deletion: deletionConformance,
  "removal of the ended": removalConformance,
  "documents and audit": ledgerConformance,
  "runs that have ended": runConformance,
  "what is due": dueConformance,
  "what is kept": contentConformance,
  reading: readConformance,
  "any sequence": modelConformance,
} as const;

export type ConformancePart = keyof typeof PARTS;

/**
 * Register the suite for one adapter. Call it at the top level of a test file, or inside a `describe`.
 *
 * `only` names the parts to run, for a second way to a storage that another call proves whole.
 */
export function storageConformance(subject: StorageSubject, only?: readonly ConformancePart[]): void {
  describe(`storage: ${subject.name}`, () => {
    const fixture = useStorage(subject);
    for (const [name, conformance] of Object.entries(PARTS)) {
      if (only?.some((part) => part === name) ?? true) describe(name, () => conformance(fixture));
    }
  });
}
