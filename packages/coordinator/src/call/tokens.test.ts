import { MemoryStorage, countingRandom, TestClock } from "@holdfast/testkit/test-runtime";
import { describe, expect, test, vi } from "vitest";
import { kindOf, mintToken, REGISTRATION_MS_MAX, tokenId, Tokens, type TokenKind } from "./tokens.ts";

const KINDS: readonly TokenKind[] = ["admin", "user", "runner", "job", "registration", "metrics"];
const AUDIT = { actor: "test", action: "token.create", object: "" };

function open() {
  const storage = new MemoryStorage();
  const clock = new TestClock();
  const tokens = new Tokens({ storage, clock, random: countingRandom() });
  return { storage, clock, tokens, another: () => new Tokens({ storage, clock, random: countingRandom(9) }) };
}

describe("a token", () => {
  test("a token names its kind, has 256 bits, and is invalid after a change in any place", () => {
    const random = countingRandom();
    for (const kind of KINDS) {
      const text = mintToken(kind, () => random.u32());
      expect(text).toMatch(/^hf_(adm|usr|rnr|job|reg|met)_[0-9a-f]{72}$/);
      expect(kindOf(text)).toBe(kind);
      for (let i = 0; i < text.length; i++) {
        const other = text[i] === "a" ? "b" : "a";
        expect(kindOf(text.slice(0, i) + other + text.slice(i + 1))).toBeUndefined();
      }
    }
    for (const nonsense of ["", "hf_", "hf_adm_", "x".repeat(5_000)])
      expect(kindOf(nonsense)).toBeUndefined();
  });

  test("X11: a token is stored only as its hash, and its text is in no document and no audit row", async () => {
    const { storage, tokens } = open();
    const { text, token } = await tokens.create({ kind: "user", name: "ada", user: "ada" }, AUDIT);
    const secret = text.slice("hf_usr_".length);
    const kept = JSON.stringify([
      await storage.reader.documents({ collection: "token", limit: 10 }),
      await storage.reader.audit({ limit: 10 }),
    ]);
    expect(kept).toContain(token.hash);
    expect(kept).not.toContain(secret.slice(0, 16));
    expect(await tokens.check(text)).toMatchObject({ kind: "user", user: "ada" });
  });

  test("that nobody made is unknown", async () => {
    const { tokens } = open();
    const random = countingRandom(77);
    expect(await tokens.check(mintToken("admin", () => random.u32()))).toBe("unknown");
    expect(await tokens.check("hf_adm_nonsense")).toBe("unknown");
  });

  test("that has expired is refused, from that moment on", async () => {
    const { clock, tokens } = open();
    const { text } = await tokens.create({ kind: "user", name: "ada", ttlMs: 1_000 }, AUDIT);
    await clock.advance(999);
    expect(await tokens.check(text)).toMatchObject({ name: "ada" });
    await clock.advance(1);
    expect(await tokens.check(text)).toBe("expired");
  });

  test("that is revoked is refused here at once, and by every other coordinator within a second", async () => {
    const { clock, tokens, another } = open();
    const other = another();
    const { text, token } = await tokens.create({ kind: "user", name: "ada" }, AUDIT);
    expect(await other.check(text)).toMatchObject({ name: "ada" });
    expect(await tokens.revoke(tokenId(token), AUDIT)).toBe(true);
    expect(await tokens.check(text)).toBe("revoked");
    await clock.advance(1_000);
    expect(await other.check(text)).toBe("revoked");
    expect(await tokens.revoke(tokenId(token), AUDIT)).toBe(true); // Asked twice.
    expect(await tokens.revoke("0123456789abcdef", AUDIT)).toBe(false);
    expect(await tokens.revoke(text, AUDIT)).toBe(false);
  });

  test("to register with is used once, however many try at once", async () => {
    const { tokens, another } = open();
    const { text, token } = await tokens.create({ kind: "registration", name: "box" }, AUDIT);
    const tries = await Promise.all(
      [tokens, another(), another()].map((each, i) => {
        return each.use(tokenId(token), { runnerId: `rnr_${i}`, process: undefined }, AUDIT);
      }),
    );
    expect(tries.filter((used) => typeof used === "object")).toHaveLength(1);
    expect(await tokens.check(text)).toBe("used");
  });

  test("to register with brings its process the same again, and nobody else anything; nothing of that is kept in the clear", async () => {
    const { storage, clock, tokens, another } = open();
    const { text, token } = await tokens.create({ kind: "registration", name: "box" }, AUDIT);
    const use = (by: Tokens, process: string | undefined, runnerId = "rnr_1") =>
      by.use(tokenId(token), { runnerId, process }, AUDIT);
    const tries = await Promise.all([tokens, another()].map((by, i) => use(by, "p".repeat(32), `rnr_${i}`)));
    expect(tries[1]).toEqual(tries[0]);
    const first = tries[0] as { runnerId: string; text: string };
    expect(kindOf(first.text)).toBe("runner");
    expect(await use(tokens, "q".repeat(32))).toBe("used");
    expect(await use(tokens, undefined)).toBe("used");
    const kept = JSON.stringify(await storage.reader.documents({ collection: "token", limit: 10 }));
    for (const secret of [first.text.slice(7), "p".repeat(32), text.slice(7)])
      expect(kept).not.toContain(secret);
    await clock.advance(10 * 60_000);
    expect(await use(tokens, "p".repeat(32))).toBe("used");
    expect(await tokens.check(text)).toBe("used");
  });

  test("a registration token whose use cannot be stored registers no runner, and is not tried without end", async () => {
    const { storage, tokens } = open();
    const { token } = await tokens.create({ kind: "registration", name: "box" }, AUDIT);
    const commit = vi.spyOn(storage, "commit").mockResolvedValueOnce([{ status: "invalid", reason: "so" }]);
    const using = tokens.use(tokenId(token), { runnerId: "rnr_1", process: undefined }, AUDIT);
    await expect(using).rejects.toThrow(`answered "invalid"`);
    expect(commit).toHaveBeenCalledTimes(1);
  });

  test("a token reports when it was last used, to ten minutes", async () => {
    const { clock, tokens } = open();
    const { text } = await tokens.create({ kind: "user", name: "ada" }, AUDIT);
    const lastUsed = async () => (await tokens.list(undefined, 10))[0]!.lastUsedAt;
    await tokens.check(text);
    const first = await lastUsed();
    expect(first).toBe(clock.now());
    await clock.advance(5 * 60_000);
    await tokens.check(text);
    expect(await lastUsed()).toBe(first);
    await clock.advance(6 * 60_000);
    await tokens.check(text);
    expect(await lastUsed()).toBe(clock.now());
  });

  test("lists go by pages", async () => {
    const { tokens } = open();
    for (let i = 0; i < 5; i++) await tokens.create({ kind: "user", name: `u${i}` }, AUDIT);
    const first = await tokens.list(undefined, 3);
    const rest = await tokens.list(first.at(-1)!.hash, 3);
    expect([...first, ...rest].map(({ name }) => name).toSorted()).toEqual(["u0", "u1", "u2", "u3", "u4"]);
  });
});

test("an hour is the most that a registration token lives", () => {
  expect(REGISTRATION_MS_MAX).toBe(3_600_000);
});
