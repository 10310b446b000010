import {
  defined,
  isEnded,
  UsageError,
  type Account,
  type Budget,
  type Per,
  type Session,
  type SessionStatus,
  type StorageReader,
} from "@holdfast/core";
import { addCosts, type Cost, NO_COST, raisedLimit, uncountedText } from "@holdfast/proto/view";
import { SESSION_ARGUMENT, type Command, type Io } from "@holdfast/terminal/frame/command";
import { quoted } from "@holdfast/terminal/frame/plain-text";
import { findDatabase } from "@holdfast/place/project";
import { withReaderOf } from "@holdfast/place/find-session";
import {
  accountLines,
  amountText,
  limitUses,
  parseBudget,
  parsePer,
  writtenLimit,
} from "@holdfast/terminal/view/budget-text";
import { isBeyondWindow } from "@holdfast/terminal/view/pause-advice";
import { readBelow, walk } from "@holdfast/terminal/view/session-tree";
import { CostReader } from "@holdfast/terminal/view/session-cost";

export const budget: Command = {
  name: "budget",
  takes: [SESSION_ARGUMENT],
  description:
    "A budget belongs to a session and pays for its whole tree. The command shows every budget that pays for this session, the nearest " +
    "first. Reserved is what running tasks may still use. --raise replaces limits of the session's own budget with higher ones; " +
    "sessions that were paused because of the budget continue. A limit per run, turn, hour, day or month is written with a slash; the " +
    "last three roll, and a session that is paused for one of them continues by itself. --grant begins one of them anew. Lost is the part of the spend that was charged, at the worst case, for " +
    "attempts that died with their process. --release-lost makes that part available again; paused sessions then continue as well.",
  options: {
    "release-lost": { help: "take back what was charged for lost attempts" },
    raise: {
      help: "new limits, in units of usd, tokens, steps, turns, each with /PER behind it if it has a window; other limits stay",
      value: "LIMITS",
    },
    grant: { help: "one more run, turn, hour, day or month, from now", value: "PER" },
  },
  examples: [
    ["budget ses_019a", "limits, spent, reserved and left"],
    ["budget ses_019a --release-lost", "make the charges for crashes available again"],
    ["budget ses_019a --raise 5.00usd,2.00usd/day", "raise its limits"],
    ["budget ses_019a --grant day", "let it spend the limit of a day once more"],
  ],

  async run(args, io) {
    const [id = ""] = args.positionals;
    const database = findDatabase(args, io);
    const text = args.text("raise");
    const grantText = args.text("grant");
    const releases = args.has("release-lost");
    if (text === undefined && grantText === undefined && !releases) {
      return withReaderOf(database, id, async (session, reader) => report(session, reader, io));
    }
    const grant = grantText === undefined ? undefined : parsePer(grantText, "--grant");
    const limits = text === undefined ? undefined : parseBudget(text, "--raise");
    const { resumeHint, withRequests } = await import("../sessions/request-session.ts");
    return withRequests(database, id, async ({ session, requests, access }) => {
      const { sessionId } = session;
      const asked = [
        text === undefined ? [] : `--raise ${quoted(text)}`,
        grant === undefined ? [] : `--grant ${grant}`,
        releases ? "--release-lost" : [],
      ];
      checkOwnBudget(session, asked.flat().join(" "), io);
      if (limits !== undefined) checkRaise(session.account!, limits);
      if (grant !== undefined && limits === undefined) checkGrant(session, grant, io);
      let status: SessionStatus = session.status;
      if (releases) status = await requests.releaseLost(sessionId);
      if (grant !== undefined) status = await requests.grantWindow(sessionId, grant);
      if (limits !== undefined) status = await requests.setBudget(sessionId, limits);
      const now = (await access.storage.reader.session(sessionId)) ?? session;
      const resume = isEnded(status) ? undefined : await resumeHint(access, now, io);
      await report(now, access.storage.reader, io, resume);
      if (limits !== undefined) io.note(`the budget of session ${sessionId} is raised`);
      if (grant !== undefined) io.note(grantedText(now, grant));
      if (releases) io.note(releasedText(session, now));
      if (isEnded(status))
        io.note(
          `it has ended; sessions that it left running spend the budget: ${io.call("list --unfinished")}`,
        );
      if (resume !== undefined) io.note(`no process runs it; continue with: ${resume}`);
      return 0;
    });
  },
};

function releasedText({ sessionId, account: before }: Session, { account: now }: Session): string {
  if (before?.lost === undefined)
    return `the budget of session ${sessionId} has no charges for lost attempts`;
  return now?.lost === undefined
    ? `the charges for lost attempts of session ${sessionId} are released`
    : `the charges for lost attempts of session ${sessionId} were not released: another attempt was lost meanwhile`;
}

function checkOwnBudget({ sessionId, account, payers }: Session, options: string, io: Io): void {
  if (account !== undefined) return;
  const [payer] = payers;
  throw new UsageError(`session ${sessionId} has no budget of its own`, {
    fix:
      payer === undefined
        ? "set a budget when you start a session: holdfast run FILE --budget 5.00usd"
        : `use the budget of session ${payer}, which pays for it: ${io.call(`budget ${payer} ${options}`)}`,
  });
}

function checkRaise(account: Account, limits: Budget): void {
  for (const { limit, per, title, max } of limitUses(account, Date.now())) {
    const window = limits.windows?.find((one) => one.per === per);
    const raised = (per === "lifetime" ? limits : window)?.[limit];
    if (raised !== undefined && raised < max) {
      throw new UsageError(`this would lower the limit of ${title}`, {
        at: "--raise",
        got: amountText(limit, raised),
        expected: `the new limit, at least ${amountText(limit, max)}`,
      });
    }
  }
}

/** A grant cannot help a session whose next call needs more than a whole window. */
function checkGrant({ sessionId, exhausted }: Session, per: Per, io: Io): void {
  if (exhausted?.payer !== sessionId || exhausted.per !== per || !isBeyondWindow(exhausted)) return;
  const { limit, max, asked = 0 } = exhausted;
  throw new UsageError(
    `one ${per} has ${amountText(limit, max)}, and the next call may need ${amountText(limit, asked)}`,
    {
      at: "--grant",
      fix: `raise the limit: ${io.call(`budget ${sessionId} --raise ${writtenLimit(limit, raisedLimit(exhausted), per)}`)}`,
    },
  );
}

/** The rest of a window after a grant, for people. Reservations of running tasks stay. */
function grantedText({ sessionId, account }: Session, per: Per): string {
  const uses = account === undefined ? [] : limitUses(account, Date.now());
  const left = uses
    .filter((use) => use.per === per)
    .map((use) => `${amountText(use.limit, use.left)} (${use.title})`);
  return `the budget of session ${sessionId} has one more ${per}, with ${left.join(" and ")} left`;
}

/** The accounts that pay for a session. */
async function report(session: Session, reader: StorageReader, io: Io, resume?: string): Promise<number> {
  const accounts = [];
  const lines: string[] = [];
  const losers: string[] = [];
  for (const payer of session.payers) {
    const account = (payer === session.sessionId ? session : await reader.session(payer))?.account;
    if (account === undefined) continue;
    if (account.lost !== undefined) losers.push(payer);
    const { onExhausted = "park", maxTokensPerCall } = account.limits;
    const limits = limitUses(account, Date.now());
    accounts.push({
      payer,
      onExhausted,
      ...defined({ maxTokensPerCall }),
      limits,
    });
    lines.push(io.results.paint.bold(payer), ...accountLines(account, Date.now()).map((line) => `  ${line}`));
  }
  const uncounted = await uncountedBelow(session, reader);
  const { sessionId, status, pauseReason } = session;
  const state = { sessionId, status, ...defined({ pauseReason }) };
  io.show({ ...state, accounts, ...defined({ resume }) }, lines.join("\n"));
  for (const payer of losers) {
    const call = io.call(`budget ${payer} --release-lost`);
    io.note(
      `session ${payer} was charged for attempts that died with their process; release the charge with: ${call}`,
    );
  }
  if (uncounted !== undefined) io.note(`session ${sessionId} and those below it: ${uncounted}`);
  if (accounts.length === 0) io.note(`session ${sessionId} has no budget: nothing limits what it spends`);
  return 0;
}

/** Says how much of coding agents nobody has counted. */
async function uncountedBelow(session: Session, reader: StorageReader): Promise<string | undefined> {
  const tree = [{ session }, ...walk(await readBelow(reader, session))];
  const unpriced = tree.filter((one) => (one.session.cost?.unpriced ?? 0) > 0);
  const costs = await new CostReader().costs(unpriced.map((one) => ({ session: one.session, reader })));
  return uncountedText(costs.reduce<Cost>((sum, cost) => addCosts(sum, cost ?? NO_COST), NO_COST));
}
