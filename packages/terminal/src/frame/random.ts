// Randomness for ids that the command makes itself.

export function randomU32(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0]!;
}
