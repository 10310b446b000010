// Seeded randomness for agents: the same numbers on every replay.
//
// The numbers of a session are made of its id, too. Seeds have 32 bits, so that of some ten thousand sessions
// two have the same one, and their UUIDs would be equal.

/** xoshiro128** seeded by splitmix32. Gives integers in [0, 2^32). */
export function seededRandom(seed: number, stream: number): () => number {
  const next = splitmix32(seed ^ Math.imul(stream + 1, GOLDEN));
  return xoshiro128(next(), next(), next(), next());
}

/**
 * The numbers of a session from one of its checkpoints on.
 *
 * @param stream the number of the first command after the checkpoint.
 */
export function sessionRandom(sessionId: string, seed: number, stream: number): () => number {
  let [a, b, c, d] = [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344]; // The first digits of pi.
  // Four hashes, each with a multiplier of MurmurHash3.
  for (let at = 0; at < sessionId.length; at++) {
    const code = sessionId.charCodeAt(at);
    a = Math.imul(a ^ code, 0x239b961b) ^ (a >>> 15);
    b = Math.imul(b ^ code, 0xab0e9789) ^ (b >>> 13);
    c = Math.imul(c ^ code, 0x38b34ae5) ^ (c >>> 16);
    d = Math.imul(d ^ code, 0xa1e38b93) ^ (d >>> 17);
  }
  const next = splitmix32(seed ^ Math.imul(stream + 1, GOLDEN));
  return xoshiro128(a ^ next(), b ^ next(), c ^ next(), d ^ next());
}

const GOLDEN = 0x9e3779b9;

function splitmix32(seed: number): () => number {
  let mix = seed >>> 0;
  return () => {
    mix = (mix + GOLDEN) >>> 0;
    let z = mix;
    z = Math.imul(z ^ (z >>> 16), 0x85ebca6b);
    z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35);
    return (z ^ (z >>> 16)) >>> 0;
  };
}

function xoshiro128(a: number, b: number, c: number, d: number): () => number {
  return () => {
    const result = Math.imul(rotate(Math.imul(b, 5), 7), 9) >>> 0;
    const t = b << 9;
    c ^= a;
    d ^= b;
    b ^= c;
    a ^= d;
    c ^= t;
    d = rotate(d, 11);
    return result;
  };
}

function rotate(value: number, by: number): number {
  return (value << by) | (value >>> (32 - by));
}

/** A version 4 UUID of four integers in [0, 2^32). */
export function randomUuid(draw: () => number): string {
  const hex = Array.from({ length: 4 }, () => draw().toString(16).padStart(8, "0")).join("");
  const variant = ((Number.parseInt(hex.charAt(16), 16) & 0x3) | 0x8).toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20)}`;
}
