// `visibleText`: a text that a person judges, such as a command, with a sign for each character that is not
// seen as it is.
//
// Leaky: a text that contains such a sign as letters looks the same as the character. Letters of two scripts
// that look alike stay.

/**
 * Characters that nothing draws, that reorder the text, that break a line without being one, or that look
 * like a blank and are none. Emojis keep the joiners and selectors inside of them. Line breaks and tabs stay.
 */
const UNSEEN =
  /(?![\n\t ]|(?<=\p{Extended_Pictographic}\p{Emoji_Modifier}?)\uFE0F|(?<=[\p{Extended_Pictographic}\p{Emoji_Modifier}\uFE0F])\u200D(?=\p{Extended_Pictographic})|\u3000)[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Zs}\p{Default_Ignorable_Code_Point}\u2800]/gu;

/** The text with `\u{200b}` in the place of the invisible character of that number. Doing it twice changes nothing more. */
export function visibleText(text: string): string {
  return text.replace(UNSEEN, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}
