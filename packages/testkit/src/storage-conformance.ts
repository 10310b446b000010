// What every adapter owes the core. The clauses are those of the `AgentStorage` port; each test is named after the one it
// proves, and every clause has at least one.
//
// An adapter's whole test file is `storageConformance({ name: "…", open: async () => … })`. It imports vitest on purpose:
// the suite is published for authors of adapters, who bring vitest and fast-check along.
//
// Time is an argument everywhere and stands still unless a test moves it. Nothing here sleeps.

import { describe } from "vitest";
import { budgetConformance } from "./conformance/budget-conformance.ts";
import { claimConformance } from "./conformance/claim-conformance.ts";
import { commitConformance } from "./conformance/commit-conformance.ts";
import { contentConformance } from "./conformance/content-conformance.ts";
import { creationConformance } from "./conformance/creation-conformance.ts";
import { deletionConformance } from "./conformance/deletion-conformance.ts";
import { dueConformance } from "./conformance/due-conformance.ts";
import { endConformance } from "./conformance/end-conformance.ts";
import { familyConformance } from "./conformance/family-conformance.ts";
import { useStorage } from "./conformance/fixture.ts";
import { followConformance } from "./conformance/follow-conformance.ts";
import { groupConformance } from "./conformance/group-conformance.ts";
import { importConformance } from "./conformance/import-conformance.ts";
import { leaseConformance } from "./conformance/lease-conformance.ts";
import { ledgerConformance } from "./conformance/ledger-conformance.ts";
import { lostConformance } from "./conformance/lost-conformance.ts";
import { modelConformance } from "./conformance/model-conformance.ts";
import { moveConformance } from "./conformance/move-conformance.ts";
import { pauseConformance } from "./conformance/pause-conformance.ts";
import { broughtInConformance } from "./conformance/brought-in-conformance.ts";
import { placementConformance } from "./conformance/placement-conformance.ts";
import { readConformance } from "./conformance/read-conformance.ts";
import { runConformance } from "./conformance/run-conformance.ts";
import { scheduleConformance } from "./conformance/schedule-conformance.ts";
import { signalConformance } from "./conformance/signal-conformance.ts";
import type { StorageSubject } from "./conformance/storage-subject.ts";
import { transitionConformance } from "./conformance/transition-conformance.ts";

export { type StorageSubject } from "./conformance/storage-subject.ts";

/** Register the suite for one adapter. Call it at the top level of a test file, or inside a `describe`. */
export function storageConformance(subject: StorageSubject): void {
  describe(`storage: ${subject.name}`, () => {
    const fixture = useStorage(subject);
    describe("batches", () => commitConformance(fixture));
    describe("creation", () => creationConformance(fixture));
    describe("groups", () => groupConformance(fixture));
    describe("transitions", () => transitionConformance(fixture));
    describe("claims", () => claimConformance(fixture));
    describe("leases", () => leaseConformance(fixture));
    describe("owners", () => placementConformance(fixture));
    describe("what is brought in", () => broughtInConformance(fixture));
    describe("signals", () => signalConformance(fixture));
    describe("followers", () => followConformance(fixture));
    describe("cancelling and ending", () => endConformance(fixture));
    describe("pausing and deadlines", () => pauseConformance(fixture));
    describe("parents and children", () => familyConformance(fixture));
    describe("budgets", () => budgetConformance(fixture));
    describe("lost attempts", () => lostConformance(fixture));
    describe("imports and states", () => importConformance(fixture));
    describe("moves", () => moveConformance(fixture));
    describe("schedules", () => scheduleConformance(fixture));
    describe("deletion", () => deletionConformance(fixture));
    describe("documents and audit", () => ledgerConformance(fixture));
    describe("runs that have ended", () => runConformance(fixture));
    describe("what is due", () => dueConformance(fixture));
    describe("what is kept", () => contentConformance(fixture));
    describe("reading", () => readConformance(fixture));
    describe("any sequence", () => modelConformance(fixture));
  });
}
