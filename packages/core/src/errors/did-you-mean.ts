// `didYouMean`: suggestions for an unknown word.

/** Comparing costs the product of two lengths, and the sender of a word chooses its length. */
const WORD_CHARS_MAX = 200;

/** "; did you mean x?" when one of the words is close to it, however each of them joins its parts. */
export function didYouMean(word: string, known: Iterable<string>): string {
  if (word.length > WORD_CHARS_MAX) return "";
  let best: string | undefined;
  let bestDistance = Math.max(1, Math.floor(word.length / 3)) + 1;
  for (const candidate of known) {
    const distance = candidate.startsWith(word) && word.length >= 2 ? 1 : distanceOf(word, candidate);
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best === undefined ? "" : `; did you mean ${best}?`;
}

/** `allowed-tools`, `allowed_tools` and `allowedTools` are as close to a word as the closest of them. */
function distanceOf(word: string, candidate: string): number {
  return Math.min(editDistance(word, candidate), editDistance(joined(word), joined(candidate)) + 1);
}

function joined(word: string): string {
  return word.toLowerCase().replaceAll(/[-_ ]/g, "");
}

/** Insertions, deletions, substitutions and swapped neighbours. */
function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      let best = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + cost);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        best = Math.min(best, beforeLast[j - 2]! + 1);
      row.push(best);
    }
    [beforeLast, last] = [last, row];
  }
  return last[b.length]!;
}
