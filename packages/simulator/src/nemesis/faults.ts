// `FAULTS` of a nemesis run. Each fault begins, lasts, and is undone. A seed decides which faults happen, to
// which members, and for how long.

import { setTimeout as sleep } from "node:timers/promises";
import { HOUR_MS } from "@holdfast/core";
import { seededRandom } from "@holdfast/core/internal";
import type { Cut } from "./network.ts";
import { monotonicMs, type Freeze } from "./observed.ts";
import { sightings, type Member } from "./processes.ts";
import type { World } from "./world.ts";

/** Chance, from a seed. */
export interface Chance {
  between(least: number, most: number): number;
  pick<const T>(items: readonly [T, ...T[]]): T;
}

/** @param stream of the seed: several draw from one seed, and none changes what another draws. */
export function chanceOf(seed: number, stream: number): Chance {
  const u32 = seededRandom(seed, stream);
  const between = (least: number, most: number): number =>
    least + Math.floor((u32() / 0x1_0000_0000) * (most - least + 1));
  return { between, pick: (items) => items[between(0, items.length - 1)] ?? items[0] };
}

export interface FaultContext {
  readonly world: World;
  readonly chance: Chance;
  readonly freezes: Freeze[];
  /** Promises that were broken during a fault. */
  readonly complaints: string[];
}

export interface Fault {
  readonly name: string;
  /** The reason why the fault is not possible here; `undefined` when it is. */
  without(world: World): string | undefined;
  /** Perform the fault, until it is undone. @returns the name of its target. */
  happen(context: FaultContext): Promise<string>;
}

/** The maximum time in which a process ends after SIGTERM, under any other fault. */
const STOP_MS = 45_000;
const always = (): undefined => undefined;
const needsNetwork = ({ network }: World): string | undefined => network.without;
const needsServer = ({ server }: World): string | undefined =>
  server === undefined ? "the database is not ours to end" : undefined;
const needsStandby = ({ options }: World): string | undefined =>
  options.replicated === undefined ? "the database has no standby" : undefined;
const needsClocks = (world: World): string | undefined =>
  world.options.isSeparate ? world.withoutClocks : "it was not asked for";

export const FAULTS: readonly Fault[] = [
  { name: "kill-runner", without: always, happen: (context) => killed(context, oneOf(context, "runners")) },
  {
    name: "kill-coordinator",
    without: always,
    happen: (context) => killed(context, oneOf(context, "coordinators")),
  },
  { name: "stop-runner", without: always, happen: frozenRunner },
  { name: "stop-coordinator", without: always, happen: frozenCoordinator },
  {
    name: "term-runner",
    without: always,
    happen: (context) => terminate(context, oneOf(context, "runners")),
  },
  {
    name: "term-coordinator",
    without: always,
    happen: (context) => terminate(context, oneOf(context, "coordinators")),
  },
  { name: "cut-runner", without: needsNetwork, happen: (context) => cutRunner(context, 100) },
  { name: "loss-runner", without: needsNetwork, happen: (context) => cutRunner(context, 30) },
  { name: "flap-runner", without: needsNetwork, happen: flappingRunner },
  { name: "outage-coordinators", without: always, happen: stoppedCoordinators },
  { name: "outage-runners", without: needsNetwork, happen: cutRunners },
  { name: "cut-database", without: needsNetwork, happen: cutDatabase },
  {
    name: "postgres-immediate",
    without: needsServer,
    happen: (context) => stoppedServer(context, "SIGQUIT"),
  },
  { name: "postgres-kill", without: needsServer, happen: (context) => stoppedServer(context, "SIGKILL") },
  { name: "failover", without: needsStandby, happen: failover },
  {
    name: "clock-runner",
    without: needsClocks,
    happen: (context) => steppedClock(context, oneOf(context, "runners")),
  },
  {
    name: "clock-coordinator",
    without: needsClocks,
    happen: (context) => steppedClock(context, oneOf(context, "coordinators")),
  },
];

function oneOf({ world, chance }: FaultContext, which: "runners" | "coordinators"): Member {
  return chance.pick(world[which] as [Member, ...Member[]]);
}

/** Kill a member with all processes that it started, like a crash of its machine. */
async function killed({ world, chance }: FaultContext, member: Member): Promise<string> {
  const { pid } = member;
  world.held.add(member);
  member.signal("SIGKILL");
  await member.ended();
  world.endStarted(member, (runnerPid) => runnerPid === pid);
  await sleep(chance.between(0, 1_500));
  world.held.delete(member);
  return member.name;
}

/** Freeze a runner like a suspended machine, for longer than its leases. */
async function frozenRunner(context: FaultContext): Promise<string> {
  const { world, chance, freezes } = context;
  const runner = oneOf(context, "runners");
  const { pid } = runner;
  const from = monotonicMs();
  runner.signal("SIGSTOP");
  const started = sightings().filter(({ runnerPid }) => runnerPid === pid);
  for (const child of started) signalIfThere(child.pid, "SIGSTOP");
  await sleep(world.options.leaseMs + chance.between(1_000, 4_000));
  const freeze = { runner: runner.name, from, to: monotonicMs() };
  freezes.push(freeze);
  for (const child of started) signalIfThere(child.pid, "SIGCONT");
  runner.signal("SIGCONT");
  return runner.name;
}

async function frozenCoordinator(context: FaultContext): Promise<string> {
  const coordinator = oneOf(context, "coordinators");
  coordinator.signal("SIGSTOP");
  await sleep(context.chance.between(1_000, context.world.options.leaseMs + 2_000));
  coordinator.signal("SIGCONT");
  return coordinator.name;
}

/** Stop a member by SIGTERM; its supervisor starts it again. */
async function terminate({ complaints }: FaultContext, member: Member): Promise<string> {
  const { pid } = member;
  member.signal("SIGTERM");
  const over = new AbortController();
  const inTime = await Promise.race([
    member.ended().then(() => true),
    sleep(STOP_MS, false, { signal: over.signal }).catch(() => true),
  ]);
  over.abort();
  if (!inTime && member.pid === pid) {
    complaints.push(`O3: ${member.name} did not end within ${STOP_MS} ms of SIGTERM`);
    member.signal("SIGKILL");
  }
  return member.name;
}

const WAYS = ["both", "both", "in", "out"] as const;

async function cutRunner(context: FaultContext, share: number): Promise<string> {
  const { world, chance } = context;
  const { name } = oneOf(context, "runners");
  const way = chance.pick(WAYS);
  for (const cut of cutsOf(world, name, way)) world.network.cut({ ...cut, share });
  await sleep(chance.between(2_000, world.options.leaseMs + 4_000));
  world.network.heal(name);
  return `${name} ${way}`;
}

async function flappingRunner(context: FaultContext): Promise<string> {
  const { world, chance } = context;
  const { name } = oneOf(context, "runners");
  const times = chance.between(4, 10);
  for (let i = 0; i < times; i++) {
    for (const cut of cutsOf(world, name, "both")) world.network.cut(cut);
    await sleep(chance.between(200, 1_200));
    world.network.heal(name);
    await sleep(chance.between(100, 800));
  }
  return `${name} ${times} times`;
}

/** All coordinators are gone for longer than a lease. */
async function stoppedCoordinators(context: FaultContext): Promise<string> {
  const { world } = context;
  const { coordinators } = world;
  for (const coordinator of coordinators) {
    world.held.add(coordinator);
    coordinator.signal("SIGKILL");
  }
  await sleep(outageMs(context));
  for (const coordinator of coordinators) world.held.delete(coordinator);
  return "all coordinators";
}

/** Every runner reaches no coordinator, or gets no answers, for longer than a lease. */
async function cutRunners(context: FaultContext): Promise<string> {
  const { world, chance } = context;
  const way = chance.pick(WAYS);
  for (const { name } of world.runners) for (const cut of cutsOf(world, name, way)) world.network.cut(cut);
  await sleep(outageMs(context));
  for (const { name } of world.runners) world.network.heal(name);
  return `all runners ${way}`;
}

function outageMs({ world, chance }: FaultContext): number {
  return world.options.leaseMs + chance.between(1_000, world.options.leaseMs);
}

function cutsOf({ network, coordinators }: World, member: string, way: Cut["way"]): readonly Cut[] {
  return coordinators.map((coordinator) => ({ member, way, peer: network.address(coordinator.name) }));
}

async function cutDatabase(context: FaultContext): Promise<string> {
  const { world, chance } = context;
  const { name } = oneOf(context, "coordinators");
  const way = chance.pick(WAYS);
  const port = Number(new URL(world.databaseUrl).port);
  world.network.cut({ member: name, way, peer: world.network.host, port });
  await sleep(chance.between(1_000, world.options.leaseMs + 2_000));
  world.network.heal(name);
  return `${name} ${way}`;
}

async function stoppedServer(
  { world, chance }: FaultContext,
  signal: "SIGQUIT" | "SIGKILL",
): Promise<string> {
  const server = world.server!;
  if (signal === "SIGKILL") await server.kill();
  else await server.stopImmediately();
  await sleep(chance.between(0, 2_000));
  await server.start();
  return "database";
}

/** The primary dies, and the address leads to its standby, which is promoted some time later. */
async function failover({ world, chance, complaints }: FaultContext): Promise<string> {
  const server = world.options.replicated!;
  await server.losePrimary();
  server.address.pointAt(server.standby.url);
  await sleep(chance.between(0, world.options.leaseMs));
  for (const url of world.urls) {
    const { status } = await fetch(`${url}/healthz`);
    if (status !== 503) complaints.push(`D4: ${url} says ${status} of its health over a standby`);
  }
  await server.promote();
  await server.rebuild();
  return "database";
}

async function steppedClock({ world, chance }: FaultContext, { name }: Member): Promise<string> {
  const offset = chance.pick([-HOUR_MS, HOUR_MS]);
  world.setClock(name, offset);
  await sleep(chance.between(3_000, world.options.leaseMs + 3_000));
  world.setClock(name, 0);
  return `${name} ${offset / HOUR_MS} h`;
}

function signalIfThere(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended meanwhile.
  }
}
