// A death is proven by the kernel alone: each test looks for a real process that is dead, stopped, busy or
// somewhere else.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import {
  findPresence,
  forgetPresence,
  readMark,
  removeDeadSockets,
  showPresence,
  type Found,
  type PresenceMark,
} from "./host-presence.ts";

const MODULE = new URL("host-presence.ts", import.meta.url).href;

beforeEach(() => {
  // A folder of the test's own, as short as a socket's path has to be.
  const folder = mkdtempSync("/tmp/hfp-");
  vi.stubEnv("TMPDIR", folder);
  onTestFinished(() => {
    vi.unstubAllEnvs();
    rmSync(folder, { recursive: true });
  });
});

interface Present {
  readonly mark: PresenceMark;
  send(signal: NodeJS.Signals): void;
  kill(): Promise<void>;
}

/** A process that shows its presence, and then does something. */
async function startPresent(then = ""): Promise<Present> {
  const program = `
    import { showPresence } from ${JSON.stringify(MODULE)};
    import { writeSync } from "node:fs";
    const presence = await showPresence(crypto.randomUUID());
    setInterval(() => {}, 60_000);
    writeSync(1, JSON.stringify(presence.mark) + "\\n");
    ${then}`;
  const child = spawn(process.execPath, ["--no-warnings", "--input-type=module", "--eval", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "close");
  const kill = async (): Promise<void> => {
    child.kill("SIGKILL");
    await ended;
  };
  onTestFinished(kill);
  const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  return { mark: readMark(line)!, send: (signal) => void child.kill(signal), kill };
}

/** The state of the marked process, as one word. */
async function look(mark: PresenceMark): Promise<string> {
  const found = await findPresence(mark);
  if (typeof found === "string") return found;
  found.leave();
  return "connected";
}

function connected(found: Found): Exclude<Found, string> {
  if (typeof found === "string") throw new Error(`found ${found}`);
  return found;
}

test("a process that was killed is gone, and the connection to it ends with it", ofCampaign, async () => {
  const { mark, kill } = await startPresent();
  const { ended } = connected(await findPresence(mark));
  await kill();
  await ended;
  expect(await look(mark)).toBe("gone");
  forgetPresence(mark);
  expect(existsSync(mark.socket)).toBe(false);
});

test("a process that exits without closing anything is gone", ofCampaign, async () => {
  const { mark, kill } = await startPresent("process.exit();");
  await kill();
  expect(await look(mark)).toBe("gone");
});

test("a stopped process is not gone, even when its queue of connections is full", ofCampaign, async () => {
  const { mark, send, kill } = await startPresent();
  send("SIGSTOP");
  const sockets: Socket[] = [];
  const outcomes = await Promise.all(
    Array.from({ length: 600 }, () => {
      const socket = connect(mark.socket);
      sockets.push(socket);
      return new Promise<string>((resolve) => {
        socket.once("connect", () => resolve("connected"));
        socket.once("error", (error) => resolve((error as NodeJS.ErrnoException).code!));
      });
    }),
  );
  // Else the queue was not full, and this proves less than it says.
  expect(new Set(outcomes)).toEqual(new Set(["connected", "EAGAIN"]));
  expect(await look(mark)).toBe("unknown");
  for (const socket of sockets) socket.destroy();
  await kill();
  expect(await look(mark)).toBe("gone");
});

test("a process that never leaves its loop is not gone", async () => {
  const { mark } = await startPresent("for (;;);");
  expect(await look(mark)).toBe("connected");
});

test("a dead process whose mark names another start of the host, or another file, is not known to be gone", async () => {
  const { mark, kill } = await startPresent();
  await kill();
  expect(await look({ ...mark, boot: "other" })).toBe("unknown");
  expect(await look({ ...mark, file: "1:2" })).toBe("unknown");
  expect(await look({ ...mark, socket: join(dirname(mark.socket), "none") })).toBe("unknown");
  expect(await look(mark)).toBe("gone");
});

test(
  "a live process whose file was removed or replaced is not gone, and the other file is left alone",
  ofCampaign,
  async () => {
    const [{ mark }, other] = [await startPresent(), await startPresent()];
    rmSync(mark.socket);
    expect(await look(mark)).toBe("unknown");
    // A dead socket at a live one's path.
    await other.kill();
    renameSync(other.mark.socket, mark.socket);
    expect(await look(mark)).toBe("unknown");
    forgetPresence(mark);
    expect(existsSync(mark.socket)).toBe(true);
  },
);

describe("the sockets that killed processes have left", () => {
  const MINUTE_MS = 60_000;

  test("a dead socket stays a proof for a minute after a start has found it, and another start removes it", async () => {
    const { mark, kill } = await startPresent();
    await kill();
    const folder = dirname(mark.socket);
    const now = Date.now();
    await removeDeadSockets(folder, now);
    await removeDeadSockets(folder, now + MINUTE_MS - 1);
    expect(await look(mark)).toBe("gone");
    await removeDeadSockets(folder, now + MINUTE_MS);
    expect(existsSync(mark.socket)).toBe(false);
  });

  test("a process that starts finds the dead socket of another process", async () => {
    const { mark, kill } = await startPresent();
    await kill();
    const { atimeMs } = statSync(mark.socket);
    expect(atimeMs).not.toBe(0);
    const presence = (await showPresence("name"))!;
    onTestFinished(() => presence.close());
    await vi.waitFor(() => expect(statSync(mark.socket).atimeMs).toBe(0));
  });

  test("a start looks at 64 sockets at most", ofCampaign, async () => {
    const { mark, kill } = await startPresent(`
      import { createServer } from "node:net";
      import { dirname, join } from "node:path";
      for (let i = 0; i < 99; i++) await new Promise((resolve) =>
        createServer().listen(join(dirname(presence.mark.socket), String(i)), resolve));
      writeSync(1, "more\\n");`);
    const folder = dirname(mark.socket);
    await vi.waitFor(() => expect(readdirSync(folder)).toHaveLength(100));
    await kill();
    const isFound = (name: string): boolean => statSync(join(folder, name)).atimeMs === 0;
    await removeDeadSockets(folder);
    expect(readdirSync(folder).filter(isFound)).toHaveLength(64);
    for (let i = 0; i < 100 && !readdirSync(folder).every(isFound); i++) await removeDeadSockets(folder);
    expect(readdirSync(folder).filter(isFound)).toHaveLength(100);
  });

  test("a start leaves the socket of a stopped process alone, and every other file", ofCampaign, async () => {
    const { mark, send } = await startPresent();
    send("SIGSTOP");
    const other = join(dirname(mark.socket), "file");
    writeFileSync(other, "");
    for (const after of [0, MINUTE_MS, 2 * MINUTE_MS])
      await removeDeadSockets(dirname(mark.socket), Date.now() + after);
    expect(await look(mark)).toBe("connected");
    expect(existsSync(other)).toBe(true);
  });
});

test("a presence that was closed leaves nothing, ends its connections, and says nothing of its process", async () => {
  const presence = (await showPresence("name"))!;
  expect(statSync(dirname(presence.mark.socket)).mode & 0o777).toBe(0o700);
  const { ended } = connected(await findPresence(presence.mark));
  await presence.close();
  await ended;
  expect(existsSync(presence.mark.socket)).toBe(false);
  expect(await look(presence.mark)).toBe("unknown");
});

test("a name that is in use is not taken from its owner", async () => {
  const presence = (await showPresence("name"))!;
  onTestFinished(() => presence.close());
  expect(await showPresence("name")).toBeUndefined();
  expect(await look(presence.mark)).toBe("connected");
});

test.each(["", "null", "{}", '{"boot":"b","socket":"relative","file":"1:1","pid":1}', '{"boot":1}'])(
  "%j is no mark",
  (text) => {
    expect(readMark(text)).toBeUndefined();
  },
);
