/** The text that a screen is searched for, in its address. */
export interface TextSearch {
  readonly text?: string;
}

export function readTextSearch({ text }: Readonly<Record<string, unknown>>): TextSearch {
  const given = typeof text === "number" ? String(text) : text;
  return typeof given === "string" && given !== "" ? { text: given.slice(0, 200) } : {};
}
