// ST40 to ST42: what is no session. Documents, which two writers must not overwrite for one another, and the
// audit, in which nothing is changed or left out unseen.

import { createHash } from "node:crypto";
import {
  defined,
  verifyAudit,
  type Audit,
  type AuditRow,
  type Change,
  type PutDocument,
  type RemoveDocument,
} from "@holdfast/core";
import { describe, expect, test } from "vitest";
import { listen } from "./arrival-listener.ts";
import { cancelling, creating, INVALID, LEASE_MS, signalling, statuses, type Fixture } from "./fixture.ts";

const sha256 = (text: string): string => createHash("sha256").update(text).digest("base64url");

export function ledgerConformance(fixture: Fixture): void {
  const put = (id: string, body: string, more: Partial<PutDocument> = {}): PutDocument => ({
    type: "put_document",
    collection: "token",
    id,
    body,
    ...more,
  });
  const remove = (id: string, more: Partial<RemoveDocument> = {}): RemoveDocument => ({
    type: "remove_document",
    collection: "token",
    id,
    ...more,
  });
  const stored = (id: string, collection = "token") => fixture.storage.reader.document(collection, id);

  describe("documents", () => {
    test("ST40: a document is stored as it is, and replaced by one of its id", async () => {
      expect(await stored("t1")).toBeUndefined();
      expect(await fixture.apply(put("t1", '{"n":1}'), 5)).toEqual({ status: "done", version: 1 });
      expect(await stored("t1")).toEqual({ id: "t1", body: '{"n":1}', version: 1, updatedAt: 5 });
      const text = '{"nul":"\\u0000","lone":"\\ud800","é":"\\n","breaks":\n[1,\n 2]}';
      expect(await fixture.apply(put("t1", text), 9)).toEqual({ status: "done", version: 2 });
      expect(await stored("t1")).toEqual({ id: "t1", body: text, version: 2, updatedAt: 9 });
      expect(await stored("t1", "runner")).toBeUndefined();
    });

    test("ST40: the second of two puts at the same expected version is a conflict", async () => {
      await fixture.apply(put("t1", "1"));
      const both = [put("t1", "2", { expected: 1 }), put("t1", "3", { expected: 1 })];
      expect(await fixture.storage.commit(both, 1)).toEqual([
        { status: "done", version: 2 },
        { status: "conflict", version: 2 },
      ]);
      expect(await stored("t1")).toMatchObject({ body: "2" });
    });

    test("ST40: a document that must not exist is put once", async () => {
      const expected = 0;
      expect(await fixture.apply(put("t1", "1", { expected }))).toEqual({ status: "done", version: 1 });
      expect(await fixture.apply(put("t1", "2", { expected }))).toEqual({ status: "conflict", version: 1 });
      expect(await fixture.apply(put("t2", "1", { expected: 1 }))).toEqual({
        status: "conflict",
        version: 0,
      });
      expect(await stored("t1")).toMatchObject({ body: "1" });
      expect(await stored("t2")).toBeUndefined();
    });

    test("ST40: a document is removed once, and only at the version that is expected", async () => {
      await fixture.apply(put("t1", "1"));
      await fixture.apply(put("t1", "2"));
      expect(await fixture.apply(remove("t1", { expected: 1 }))).toEqual({ status: "conflict", version: 2 });
      expect(await stored("t1")).toMatchObject({ version: 2 });
      expect(await fixture.apply(remove("t1", { expected: 2 }))).toEqual({ status: "done" });
      expect(await stored("t1")).toBeUndefined();
      expect(await fixture.apply(remove("t1"))).toEqual({ status: "not_found" });
      expect(await fixture.apply(put("t1", "3"))).toEqual({ status: "done", version: 1 });
    });

    test("ST40: a name that not every storage would sort alike is refused", async () => {
      for (const name of ["", " ", "a b", "é", "a\n", "a\u0000", "x".repeat(257)]) {
        expect(await fixture.apply(put(name, "1")), JSON.stringify(name)).toEqual(INVALID);
        expect(await fixture.apply(put("t1", "1", { collection: name }))).toEqual(INVALID);
      }
      expect(await fixture.apply(put("x".repeat(256), "1"))).toMatchObject({ status: "done" });
    });

    test("ST40: a large body is whole", async () => {
      const body = JSON.stringify("é".repeat(300_000));
      await fixture.apply(put("t1", body));
      expect((await stored("t1"))?.body).toBe(body);
    });

    test("ST41: documents of a collection are listed by id, page by page", async () => {
      const ids = ["b", "a", "Z", "~", "!", "a1", "10", "9", "_", "a-1"];
      await fixture.storage.commit(
        ids.map((id) => put(id, "1")),
        1,
      );
      await fixture.apply(put("other", "1", { collection: "runner" }));
      const page = async (limit: number, after?: string) => {
        const query = { collection: "token", limit, ...defined({ after }) };
        return (await fixture.storage.reader.documents(query)).map(({ id }) => id);
      };
      const sorted = ids.toSorted();
      expect(await page(100)).toEqual(sorted);
      expect(await page(3)).toEqual(sorted.slice(0, 3));
      expect(await page(3, sorted[2])).toEqual(sorted.slice(3, 6));
      expect(await page(100, "a")).toEqual(["a-1", "a1", "b", "~"]);
      expect(await page(100, "a0")).toEqual(["a1", "b", "~"]);
      expect(await page(100, "~")).toEqual([]);
      expect(await fixture.storage.reader.documents({ collection: "none", limit: 5 })).toEqual([]);
    });

    if (fixture.subject.reopen !== undefined) {
      test("ST40: documents survive closing and opening again", async () => {
        await fixture.apply(put("t1", "1"));
        await fixture.apply(put("t1", "2"));
        await fixture.apply(put("t2", "1"));
        await fixture.apply(remove("t2"));
        await fixture.reopen();
        expect(await fixture.storage.reader.documents({ collection: "token", limit: 5 })).toEqual([
          { id: "t1", body: "2", version: 2, updatedAt: 1 },
        ]);
        expect(await fixture.apply(put("t1", "3", { expected: 2 }))).toEqual({ status: "done", version: 3 });
      });
    }
  });

  describe("audit", () => {
    type Unaudited = Exclude<Change, { type: "audited" }>;
    const CREATE: Audit = { actor: "anna", action: "session.start", object: "ses-1", requestId: "req-1" };
    const audited = (change?: Unaudited, audit: Audit = CREATE): Change =>
      change === undefined ? { type: "audited", audit } : { type: "audited", change, audit };
    const rows = (after?: number, limit = 100) =>
      fixture.storage.reader.audit(after === undefined ? { limit } : { after, limit });

    test("ST42: an audited change is applied, answered as ever, and recorded with what became of it", async () => {
      expect(await rows()).toEqual([]);
      const claimFor = { owner: "owner-1", leaseMs: LEASE_MS };
      const result = await fixture.apply(audited(creating("ses-1", { claimFor })), 7);
      expect(result).toEqual({ status: "created", token: expect.any(Number) });
      expect((await fixture.session("ses-1")).createdAt).toBe(7);
      expect(await rows()).toEqual([
        {
          seq: 1,
          at: 7,
          actor: "anna",
          action: "session.start",
          object: "ses-1",
          requestId: "req-1",
          outcome: "created",
          hash: expect.any(String),
        },
      ]);
    });

    test("ST42: a change without effect, or a refused one, is recorded as well", async () => {
      const all = [
        audited(creating("ses-1")),
        audited(creating("ses-1")),
        audited(signalling("ses-none", "sig-1")),
        audited(put("", "1")),
        audited(undefined, { ...CREATE, action: "login", outcome: "denied" }),
        audited(),
      ];
      expect(statuses(await fixture.storage.commit(all, 1))).toEqual([
        "created",
        "exists",
        "not_found",
        "invalid",
        "done",
        "done",
      ]);
      expect((await rows()).map(({ seq, outcome }) => [seq, outcome])).toEqual([
        [1, "created"],
        [2, "exists"],
        [3, "not_found"],
        [4, "invalid"],
        [5, "denied"],
        [6, "done"],
      ]);
    });

    test("ST42: listeners hear of an audited arrival, and it reaches the tree below", async () => {
      const parent = await fixture.createClaimed();
      await fixture.spawn(parent, "ses-2");
      const listener = listen(fixture);
      expect(await fixture.apply(audited(cancelling("ses-1")))).toMatchObject({ status: "requested" });
      expect((await listener.received(2)).map(({ sessionId }) => sessionId)).toEqual(["ses-1", "ses-2"]);
    });

    test("ST42: rows are read in order, from any on, as many as asked for", async () => {
      await fixture.storage.commit(
        [1, 2, 3, 4, 5].map((n) => audited(undefined, { ...CREATE, object: `ses-${n}` })),
        1,
      );
      const seqs = async (after?: number, limit?: number) => (await rows(after, limit)).map(({ seq }) => seq);
      expect(await seqs()).toEqual([1, 2, 3, 4, 5]);
      expect(await seqs(2, 2)).toEqual([3, 4]);
      expect(await seqs(5)).toEqual([]);
      expect(await seqs(undefined, 0)).toEqual([]);
    });

    test("ST42: rows are a chain, in which a change, a gap and another order show", async () => {
      const texts = ['"\\\n', "é\u{1f600}", "x".repeat(10_000), ""];
      for (const [n, object] of texts.entries()) {
        const more = n === 0 ? {} : { requestId: `req-${n}`, details: JSON.stringify({ answer: object }) };
        await fixture.apply(audited(undefined, { actor: "anna", action: "a", object, ...more }), n + 1);
      }
      const all = await rows();
      expect(all.map(({ object }) => object)).toEqual(texts);
      expect(all.map(({ details }) => details)).toEqual([
        undefined,
        ...texts.slice(1).map((answer) => JSON.stringify({ answer })),
      ]);
      const hashOf = ({ hash: _hash, ...row }: AuditRow, before = "") =>
        sha256(`${before}\n${JSON.stringify(row)}`);
      expect(all[0]!.hash).toBe(hashOf(all[0]!));
      expect(all[1]!.hash).toBe(hashOf(all[1]!, all[0]!.hash));
      expect(verifyAudit(all, sha256)).toEqual({ status: "intact", last: { seq: 4, hash: all[3]!.hash } });
      expect(verifyAudit(all.slice(2), sha256, all[1])).toMatchObject({ status: "intact" });
      const forged = all.with(1, { ...all[1]!, actor: "bert" });
      for (const changed of [forged, all.with(1, { ...all[1]!, details: "{}" })])
        expect(verifyAudit(changed, sha256)).toMatchObject({ status: "broken", seq: 2 });
      // With a hash that fits, it is the next one that tells.
      const fitting = { ...forged[1]!, hash: hashOf(forged[1]!, all[0]!.hash) };
      expect(verifyAudit(all.with(1, fitting), sha256)).toMatchObject({ status: "broken", seq: 3 });
      expect(verifyAudit(all.toSpliced(1, 1), sha256)).toMatchObject({ status: "broken", seq: 3 });
      expect(verifyAudit([all[1]!, all[0]!], sha256)).toMatchObject({ status: "broken", seq: 2 });
    });

    test("ST42: a text that not every storage would keep is refused, and what it was about with it", async () => {
      for (const object of ["a\ud800", "a\u0000"])
        expect(await fixture.apply(audited(creating("ses-1"), { ...CREATE, object }))).toEqual(INVALID);
      expect(await rows()).toEqual([]);
      expect(await fixture.storage.reader.session("ses-1")).toBeUndefined();
    });

    if (fixture.subject.reopen !== undefined) {
      test("ST42: the chain goes on after opening again", async () => {
        await fixture.apply(audited(creating("ses-1")));
        await fixture.apply(audited(creating("ses-1")));
        await fixture.reopen();
        await fixture.apply(audited(creating("ses-1")));
        const all = await rows();
        expect(all.map(({ seq }) => seq)).toEqual([1, 2, 3]);
        expect(verifyAudit(all, sha256)).toMatchObject({ status: "intact" });
      });
    }
  });
}
