// `askMasked`: asks a person for a secret on a terminal, which shows a star for each character.
//
//   - The terminal is restored however the question ends: by an answer, by Ctrl-C, by the end of the input,
//     or by an error.
//   - An answer is not shown. Escape sequences, such as those of the arrow keys, are no part of it.
//   - A paste is one answer with all its lines. Its other lines would otherwise be read as the next answer,
//     or as commands of the shell.

import type { ReadStream } from "node:tty";

interface MaskedPrompt {
  readonly stdin: Pick<ReadStream, "setRawMode" | "on" | "off" | "resume" | "pause" | "unshift">;
  write(text: string): void;
}

/** The answer, or `undefined` when the person stopped with Ctrl-C or Ctrl-D. */
export function askMasked({ stdin, write }: MaskedPrompt, question: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    let answer: string[] = [];
    let escape = "";
    let isPaste = false;
    const decoder = new TextDecoder();
    const end = (result: string | undefined): void => {
      stdin.off("data", onData);
      stdin.off("end", onEnd);
      stdin.off("error", onEnd);
      stdin.setRawMode(false); // However the question ends.
      stdin.pause();
      write(`${PASTE_MODE_OFF}\n`);
      resolve(result);
    };
    const onEnd = (): void => end(undefined);
    const onData = (chunk: Buffer | string): void => {
      const text = typeof chunk === "string" ? chunk : decoder.decode(chunk, { stream: true });
      let at = 0;
      for (const char of text) {
        at += char.length;
        if (escape !== "" || char === ESCAPE) {
          escape += char;
          if (!SEQUENCE.test(escape.slice(1))) continue;
          if (escape === PASTE_BEGIN || escape === PASTE_END) isPaste = escape === PASTE_BEGIN;
          escape = "";
        } else if ((char === "\r" || char === "\n") && !isPaste) {
          const rest = text.slice(at);
          if (rest !== "") stdin.unshift(Buffer.from(rest)); // For the next question.
          return end(answer.join("").trimEnd());
        } else if (char === CTRL_C || (char === CTRL_D && answer.length === 0)) return end(undefined);
        else if (char === "\u007f" || char === "\b") {
          if (answer.pop() !== undefined) write("\b \b");
        } else if (char === CTRL_U) {
          write("\b \b".repeat(answer.length));
          answer = [];
        } else if (char >= " " || isPaste) {
          answer.push(char === "\r" ? "\n" : char);
          write("*");
        }
      }
    };
    stdin.setRawMode(true); // Before the question: the terminal would show a quick answer.
    write(`${PASTE_MODE_ON}${question}`);
    stdin.on("data", onData);
    stdin.on("end", onEnd);
    stdin.on("error", onEnd);
    stdin.resume();
  });
}

const [CTRL_C, CTRL_D, CTRL_U, ESCAPE] = ["\u0003", "\u0004", "\u0015", "\u001b"];
/** The rest of an escape sequence. */
const SEQUENCE = /^(\[[\d;?]*[A-Za-z~]|O.|[^[O])$/;
/** https://invisible-island.net/xterm/xterm.faq.html: the terminal marks what is pasted. */
const [PASTE_MODE_ON, PASTE_MODE_OFF] = ["\u001b[?2004h", "\u001b[?2004l"];
const [PASTE_BEGIN, PASTE_END] = ["\u001b[200~", "\u001b[201~"];
