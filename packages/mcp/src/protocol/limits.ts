// The limits of MCP servers (`MCP_LIMITS`). Each keeps one bad server from hanging or filling a session.

import { HOUR_MS, MIB } from "@holdfast/core";

export const MCP_LIMITS = {
  /** From the start of a server to its list of tools. */
  startMs: 30_000,
  /** The wait for an answer to the question which version of MCP the server speaks. Older servers may ignore it. */
  probeMs: 5_000,
  /** A call without any progress. */
  callMs: 300_000,
  /** A call, whatever progress the server reports. */
  callTotalMs: 1_800_000,
  /**
   * A connection that no call has used is closed, for sessions whose end this process does not see. The next
   * call opens it again.
   */
  idleMs: 1_800_000,
  /** A program that failed so often in this time is not started again before its end. */
  failures: 5,
  failuresMs: 600_000,
  /** A server may take this long to end when its input is closed, and again after SIGTERM. */
  endMs: 2_000,
  /** The connection of a request to a server at an address, with TLS. */
  connectMs: 10_000,
  headerBytes: 64 * 1024,
  /** A server of an older version may continue a stream that was cut off. Nothing is sent to it again. */
  reconnection: {
    initialReconnectionDelay: 500,
    maxReconnectionDelay: 5_000,
    reconnectionDelayGrowFactor: 2,
    maxRetries: 3,
  },
  /** One message of a server. */
  messageChars: 16 * MIB,
  /** All messages of a server between two of ours. */
  burstChars: 64 * MIB,
  /** Lines on standard output that are no messages. Some servers print a greeting there. */
  strayLines: 100,
  /** Questions of a server in one call. */
  questions: 10,
  questionChars: 4_000,
  /** How often a person is asked for one form. */
  answersPerForm: 5,
  /** A call stays open in this process until its question has an answer, and no longer than this. */
  answerMs: HOUR_MS,
  /** The wait before a task of a server is asked for again, where the server suggests none; its bounds. */
  taskPollMs: 1_000,
  taskPollMinMs: 100,
  taskPollMaxMs: 300_000,
  /** A task that works for long is asked for less often: each wait is at least this part of all waits before. */
  taskWaitShare: 0.05,
  taskIdChars: 1_000,
  /** How often a call that may be repeated begins again because its server has forgotten its task. */
  taskRestarts: 2,
  /** A person signs in within this time. */
  signInMs: 300_000,
  /** A token is renewed this long before its end. */
  renewAheadMs: 60_000,
  /** The words of a server in an error. */
  reasonChars: 1_000,
  toolsPerServer: 200,
  pages: 20,
  toolDescriptionChars: 2_000,
  toolSchemaChars: 20_000,
  /** The tools of one server, as the session keeps them with each checkpoint. */
  factsChars: 200_000,
  instructionsChars: 4_000,
  /** The recorded text of one result. A model reads far less. */
  resultChars: 256 * 1024,
  /** The base64 of all images, sounds and files that are kept of one result. */
  mediaChars: 5 * MIB,
} as const;
