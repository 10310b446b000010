// `findHiddenText`: what a person does not see when reading a text that a model will read. It is a warning
// and refuses nothing, because each of it also has honest uses.
//
// Leaky: words that are visible and mislead are not found.

export interface HiddenText {
  /** From 1. */
  readonly line: number;
  readonly what: string;
}

/** Kinds of characters without a shape of their own (Unicode 17, general category Cf and the blank letters). */
const KINDS: readonly (readonly [characters: RegExp, what: string])[] = [
  // Letters and digits of the block "Tags" spell a text that nothing draws. Flags of regions begin with a
  // black flag.
  [
    /(?<!\u{1F3F4})(?<![\u{E0020}-\u{E007E}])[\u{E0001}-\u{E007F}]{2,}/u,
    "characters of the block Tags, which spell a text that nobody sees",
  ],
  [
    /[\u202A-\u202E\u2066-\u2069]/u,
    "characters that change the direction of the text, which is then read in another order than it is shown",
  ],
  // Joiners between letters of other scripts and between emojis belong there.
  [
    /[\u200B\u2060-\u2064\u00AD\u{115F}\u{1160}\u{3164}\u{FFA0}]|[ -~][\u200C\u200D](?=[ -~])|.\uFEFF/u,
    "invisible characters",
  ],
  [/[\u{E0100}-\u{E01EF}]{2,}/u, "a row of variation selectors, which can hold a text that nobody sees"],
  [/[A-Za-z0-9+/]{300,}={0,2}/u, "a long text in base64 or another encoding"],
];

/** At most one of each kind in a line. */
export function findHiddenText(text: string): readonly HiddenText[] {
  return text
    .split("\n")
    .flatMap((line, at) =>
      KINDS.filter(([characters]) => characters.test(line)).map(([, what]) => ({ line: at + 1, what })),
    );
}
