// `terminalPicture`: the screen that a command has drawn on a terminal, as an SVG.

/** Each drawing of a screen begins with it. */
const HOME = "\u001b[H";
const LINE_PX = 19;
const CHAR_PX = 7.83;
const EDGE_PX = 18;

const COLOURS: Readonly<Record<number, string>> = {
  31: "#ff7b72",
  32: "#7ee787",
  33: "#e3b341",
  34: "#79c0ff",
  35: "#d2a8ff",
  36: "#76e3ea",
};

interface Look {
  readonly isBold: boolean;
  readonly isDim: boolean;
  readonly colour: string | undefined;
}

const PLAIN: Look = { isBold: false, isDim: false, colour: undefined };

/**
 * @param written all that the command has written; its last drawing counts.
 * @param about a sentence for people who do not see the picture.
 */
export function terminalPicture(
  written: string,
  { columns, rows, about }: { readonly columns: number; readonly rows: number; readonly about: string },
): string {
  const [drawn = ""] = written.slice(written.lastIndexOf(HOME) + HOME.length).split("\u001b[?1049l");
  const lines = drawn.split("\r\n").slice(0, rows);
  const width = Math.ceil(columns * CHAR_PX + 2 * EDGE_PX);
  const height = lines.length * LINE_PX + 2 * EDGE_PX;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escaped(about)}">`,
    "<style>text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#d0d7de}",
    ".b{font-weight:600;fill:#fff}.d{fill:#8b949e}</style>",
    `<rect width="${width}" height="${height}" rx="8" fill="#0d1117"/>`,
    ...lines.flatMap((line, at) => textOf(line, EDGE_PX + 13 + at * LINE_PX)),
    "</svg>",
    "",
  ].join("\n");
}

/** Each part stands at its column: fonts have the characters beyond ASCII in other widths. */
function textOf(line: string, y: number): readonly string[] {
  let column = 0;
  const parts = partsOf(line).map(({ text, look }) => {
    const x = EDGE_PX + column * CHAR_PX;
    column += text.length;
    if (text.trim() === "") return "";
    const names = [...(look.isBold ? ["b"] : []), ...(look.isDim ? ["d"] : [])].join(" ");
    const kind = names === "" ? "" : ` class="${names}"`;
    const fill = look.colour === undefined ? "" : ` style="fill:${look.colour}"`;
    return `<tspan x="${x.toFixed(1)}" textLength="${(text.length * CHAR_PX).toFixed(1)}"${kind}${fill}>${escaped(text)}</tspan>`;
  });
  const shown = parts.join("");
  return shown === "" ? [] : [`<text y="${y}" xml:space="preserve">${shown}</text>`];
}

/** The texts between the codes of a terminal, each with the look that the codes before it ask for. */
function partsOf(line: string): readonly { readonly text: string; readonly look: Look }[] {
  let look = PLAIN;
  const [first = "", ...pieces] = line.split("\u001b[");
  const parts = [{ text: first, look }];
  for (const piece of pieces) {
    const [, codes = "", kind, text = ""] = /^([\d;?]*)([A-Za-z])(.*)$/s.exec(piece) ?? [];
    if (kind === "m") for (const code of codes.split(";")) look = changed(look, Number(code));
    parts.push({ text, look });
  }
  return parts;
}

function changed(look: Look, code: number): Look {
  if (code === 0) return PLAIN;
  if (code === 1) return { ...look, isBold: true };
  if (code === 2) return { ...look, isDim: true };
  if (code === 22) return { ...look, isBold: false, isDim: false };
  if (code === 39) return { ...look, colour: undefined };
  return COLOURS[code] === undefined ? look : { ...look, colour: COLOURS[code] };
}

function escaped(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
