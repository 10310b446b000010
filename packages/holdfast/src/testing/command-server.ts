// A process that calls commands for tests, one after another, where the process of a command is not what a
// test is about.
//
// A call saves the start of a process, which is most of the time of a short command. `CommandCalls` starts
// one such process for each worker of the tests, and sends it a message for each command.
//
//   - Each call has its own arguments, folder, environment, input and outputs, as a process has.
//   - A command that ends its process, by an error or by code of a user, ends this one. Its call gets the
//     exit code, or the signal, and what was written until then.
//
// Leaky: what a command leaves open stays open, while it would end with a process of its own.

import { Readable, Writable } from "node:stream";

/** One command. Sent one at a time. */
export interface Call {
  /** The launcher, as it is in the arguments of a process. */
  readonly launcher: string;
  readonly args: readonly string[];
  readonly folder: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: string;
}

export interface Answer {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** An output of a command. */
class Output extends Writable {
  /** No terminal. */
  readonly fd = -1;
  readonly #pieces: Buffer[] = [];

  get text(): string {
    return Buffer.concat(this.#pieces).toString();
  }

  override _write(piece: Buffer, _encoding: BufferEncoding, written: () => void): void {
    this.#pieces.push(piece);
    written();
  }
}

const [, , entry] = process.argv;
const { main } = (await import(entry!)) as { main: (args: string[]) => Promise<number> };
const send = process.send!.bind(process);
const exit = process.exit.bind(process);

process.on("disconnect", () => exit());
process.on("message", ({ launcher, args, folder, env, stdin }: Call) => {
  process.chdir(folder);
  process.env = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined));
  process.argv = [process.execPath, launcher, ...args];
  const [stdout, stderr] = [new Output(), new Output()];
  const input = Readable.from(stdin === "" ? [] : [Buffer.from(stdin)]);
  for (const [name, value] of Object.entries({ stdout, stderr, stdin: input }))
    Object.defineProperty(process, name, { value, configurable: true });
  const answer = (code: number): void =>
    void send({ code, stdout: stdout.text, stderr: stderr.text } satisfies Answer);
  process.exit = (code = process.exitCode ?? 0) => {
    process.exitCode = Number(code);
    process.emit("exit", process.exitCode);
    answer(process.exitCode);
    return exit(0);
  };
  void main([...args]).then((code) => {
    process.removeAllListeners("uncaughtException").removeAllListeners("exit");
    process.chdir("/"); // Tests look for processes that are left in a project.
    answer(code);
  });
});
