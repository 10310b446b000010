// `systemctl --user` and `launchctl` of tests: a program that starts and ends services. It reads their files, as
// systemd and launchd do. A service has the variables that its file names. Calls are lines of the file `calls`
// in the folder, and the output of a service is in a file beside it.
//
//   node user-services.ts FOLDER systemctl --user restart NAME
//   node user-services.ts FOLDER launchctl bootstrap DOMAIN FILE

import { spawn } from "node:child_process";
import { appendFileSync, existsSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { defined } from "@holdfast/core";
import { processIdentity } from "@holdfast/system/processes";

interface Service {
  readonly words: readonly string[];
  readonly variables: Readonly<Record<string, string>>;
  readonly folder: string;
}

const LOOK_MS = 20;

/** The service of a unit of systemd. */
function readUnit(text: string): Service {
  const value = (key: string): string => new RegExp(`^${key}=(.*)$`, "m").exec(text)?.[1] ?? "";
  const wordsOf = (line: string): string[] =>
    [...line.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, word = ""]) =>
      word.replaceAll(/\\(.)/g, "$1").replaceAll("%%", "%"),
    );
  const variables = [...text.matchAll(/^Environment=(.*)$/gm)].flatMap(([, line = ""]) => wordsOf(line));
  return {
    words: wordsOf(value("ExecStart")).map((word) => word.replaceAll("$$", "$")),
    variables: Object.fromEntries(variables.map((one) => one.split(/=(.*)/s).slice(0, 2))),
    folder: value("WorkingDirectory").replaceAll("%%", "%"),
  };
}

/** The service of an agent of launchd. */
function readAgent(text: string): Service {
  const plain = (xml = ""): string =>
    xml.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
  const behind = (key: string, element: string): string =>
    new RegExp(`<key>${key}</key>\\s*<${element}>([^]*?)</${element}>`).exec(text)?.[1] ?? "";
  const words = behind("ProgramArguments", "array").matchAll(/<string>([^]*?)<\/string>/g);
  const pairs = behind("EnvironmentVariables", "dict").matchAll(
    /<key>([^]*?)<\/key>\s*<string>([^]*?)<\/string>/g,
  );
  return {
    words: [...words].map(([, word]) => plain(word)),
    variables: Object.fromEntries([...pairs].map(([, name, value]) => [plain(name), plain(value)])),
    folder: plain(behind("WorkingDirectory", "string")),
  };
}

class UserServices {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async systemctl([, action, ...names]: readonly string[]): Promise<void> {
    const name = names.find((word) => !word.startsWith("-")) ?? "";
    if (action === "restart") {
      await this.#end(name);
      const units = join(process.env["XDG_CONFIG_HOME"] ?? "", "systemd/user");
      this.#start(name, readUnit(readFileSync(join(units, name), "utf8")));
    }
    if (action === "disable") await this.#end(name);
    if (action === "show") console.log(`ActiveState=${this.#isRunning(name) ? "active" : "failed"}`);
  }

  async launchctl([action, target = "", file = ""]: readonly string[]): Promise<void> {
    if (action === "bootstrap") this.#start(basename(file, ".plist"), readAgent(readFileSync(file, "utf8")));
    if (action === "bootout") await this.#end(basename(target));
    if (action === "print" && !this.#isRunning(basename(target))) console.log("last exit code = 1");
  }

  #start(name: string, { words: [program = "", ...args], variables, folder }: Service): void {
    // NODE_OPTIONS make the machine a Mac (`local-service.test.ts`).
    const { HOME, NODE_OPTIONS } = process.env;
    const env = { HOME, ...defined({ NODE_OPTIONS }), ...variables };
    const log = openSync(join(this.#folder, `${name}.log`), "a");
    const child = spawn(program, args, { cwd: folder, env, detached: true, stdio: ["ignore", log, log] });
    writeFileSync(this.#pidFile(name), String(child.pid));
    child.unref();
  }

  async #end(name: string): Promise<void> {
    if (!this.#isRunning(name)) return;
    process.kill(this.#pid(name), "SIGTERM");
    while (this.#isRunning(name)) await delay(LOOK_MS);
    rmSync(this.#pidFile(name));
  }

  #isRunning(name: string): boolean {
    return existsSync(this.#pidFile(name)) && processIdentity(this.#pid(name)) !== undefined;
  }

  #pid(name: string): number {
    return Number(readFileSync(this.#pidFile(name), "utf8"));
  }

  #pidFile(name: string): string {
    return join(this.#folder, `${name}.pid`);
  }
}

const [place = "", program = "", ...words] = process.argv.slice(2);
appendFileSync(join(place, "calls"), `${program} ${words.join(" ")}\n`);
const services = new UserServices(place);
await (program === "systemctl" ? services.systemctl(words) : services.launchctl(words));
